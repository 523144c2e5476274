"""What happened in each epoch, and which one the model holds."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Epoch:
    """One epoch of a run.

    - `number`: counted from 0.
    - `fit`, `calibration`: mean over steps of the training losses, before the weight;
      `calibration` is `None` where none was trained on.
    - `weight`: of calibration, at the end of the epoch.
    - `accuracy`, `error`: on the validation data, after the epoch; not a number without any.
    """

    number: int
    fit: float
    calibration: float | None = None
    weight: float | None = None
    accuracy: float = float("nan")
    error: float = float("nan")

    def __str__(self) -> str:
        parts = [f"epoch {self.number}", f"fit {self.fit:.4f}"]
        if self.calibration is not None:
            price = f"times {self.weight:g}" if self.weight else "watched, not descended"
            parts.append(f"calibration {self.calibration:z.4f} {price}")
        if self.accuracy == self.accuracy:
            parts.append(f"accuracy {self.accuracy:.2%}, calibration error {self.error:.2%}")
        return ", ".join(parts)


@dataclass
class History:
    """Every epoch of a run, in order.

    - `best`: the epoch whose weights the model holds in the end.
    - `rule`: how it was chosen, in words.
    """

    epochs: list[Epoch] = field(default_factory=list)
    best: Epoch | None = None
    rule: str = "the last epoch"

    def __str__(self) -> str:
        lines = [str(epoch) for epoch in self.epochs]
        if self.best is not None:
            lines.append(f"kept epoch {self.best.number}: {self.rule}")
        return "\n".join(lines)

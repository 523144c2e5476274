"""How a fit went."""

from dataclasses import dataclass
from textwrap import wrap

from .. import _html as html


@dataclass(frozen=True)
class Outcome:
    """What a method says of its own search.

    - `converged`: whether it reached what it was looking for.
    - `iterations`: steps it took; zero where there was nothing to search.
    - `message`: a sentence where there is something to say.
    """

    converged: bool = True
    iterations: int = 0
    message: str = ""


@dataclass(frozen=True)
class FitReport:
    """What fitting did, judged on predictions that the judged fit had not seen.

    - `method`: whose fit; `n`: samples used; `classes`: how many.
    - `converged`, `iterations`, `message`: the search, as in `Outcome`.
    - `folds`: in how many parts the samples were judged, each by a fit to the others; 0 where
      that was skipped, and then the four numbers below are None.
    - `nll_before`, `nll_after`: negative log-likelihood of the given and of the mapped logits.
    - `ece_before`, `ece_after`: expected calibration error over 15 bins, the same way; of the
      predicted class, or of the chance of 1 where one score was given per sample.

    >>> print(FitReport("TemperatureScaling", 500, 10, True, 6, "", 5, 0.52, 0.41, 0.11, 0.02))
    TemperatureScaling: 500 samples, 10 classes; converged in 6 iterations
    on 5 held-out folds   before    after
    nll                   0.5200   0.4100
    ece                   0.1100   0.0200
    """

    method: str
    n: int
    classes: int
    converged: bool
    iterations: int
    message: str = ""
    folds: int = 0
    nll_before: float | None = None
    nll_after: float | None = None
    ece_before: float | None = None
    ece_after: float | None = None

    def _heading(self) -> str:
        went = "converged" if self.converged else "did not converge"
        steps = "1 iteration" if self.iterations == 1 else f"{self.iterations} iterations"
        took = f"{went} in {steps}" if self.iterations else went
        return f"{self.method}: {self.n} samples, {self.classes} classes; {took}"

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        parts = [html.paragraph(self._heading())]
        if self.nll_before is not None:
            head = [f"on {self.folds} held-out folds", "before", "after"]
            pairs = {
                "nll": (self.nll_before, self.nll_after),
                "ece": (self.ece_before, self.ece_after),
            }
            rows = [[name, *(f"{x:.4f}" for x in pair)] for name, pair in pairs.items()]
            parts.append(html.table(head, rows))
        if self.message:
            parts.append(html.paragraph(self.message))
        return "".join(parts)

    def __str__(self) -> str:
        lines = _wrapped(self._heading())
        if self.nll_before is not None:
            lines.append(f"{f'on {self.folds} held-out folds':20}{'before':>8}{'after':>9}")
            lines += [
                _row("nll", self.nll_before, self.nll_after),
                _row("ece", self.ece_before, self.ece_after),
            ]
        if self.message:
            lines += _wrapped(self.message)
        return "\n".join(lines)


def _row(name: str, before: float | None, after: float | None) -> str:
    return f"{name:20}{before:8.4f}{after:9.4f}"


def _wrapped(text: str) -> list[str]:
    return wrap(text, 80, break_long_words=False, break_on_hyphens=False)

"""What was found out about both forms of one case, and the rows of the table it makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cases import FORMS, Case
from record import Row, circumstances, number
from timing import Spread

# Below this a process's resident memory says more about its pages than about the measure.
_LEAST_CPU_MIB = 1.0


@dataclass
class Comparison:
    """One case; for each form its times and its memory, or a note on why it was not run.

    - `eager`: milliseconds as a user gets them. `replayed`: those of a captured CUDA graph.
    - `peak`: MiB above the inputs.
    """

    case: Case
    device: str
    notes: dict[str, str] = field(default_factory=dict)
    eager: dict[str, Spread] = field(default_factory=dict)
    replayed: dict[str, Spread | None] = field(default_factory=dict)
    peak: dict[str, float | None] = field(default_factory=dict)

    def __str__(self) -> str:
        times = (
            f"{form} {self.notes.get(form) or f'{self.eager[form].median:.3f} ms'}"
            for form in FORMS
        )
        return f"{self.case}: {', '.join(times)}"

    @property
    def forms(self) -> list[str]:
        """Those that are run."""
        return [form for form in FORMS if form not in self.notes]

    def rows(self) -> list[Row]:
        """Two rows, the ratios on ours."""
        medians = {form: spread.median for form, spread in self.eager.items()}
        least = _LEAST_CPU_MIB if self.device == "cpu" else 0.0
        ratios = {
            "time_ratio": number(_ratio(medians, least=0.0)),
            "memory_ratio": number(_ratio(self.peak, least)),
        }
        return [
            self._row(form, ratios if form == "ours" else dict.fromkeys(ratios, ""))
            for form in FORMS
        ]

    def _row(self, form: str, ratios: Row) -> Row:
        eager, replayed = self.eager.get(form), self.replayed.get(form)
        return {
            "measure": self.case.measure,
            "form": form,
            "n": str(self.case.n),
            "classes": str(self.case.classes or ""),
            "device": self.device,
            "ms_median": number(eager.median if eager else None),
            "ms_quartile_low": number(eager.low if eager else None),
            "ms_quartile_high": number(eager.high if eager else None),
            "ms_replayed": number(replayed.median if replayed else None),
            "peak_mib": number(self.peak.get(form)),
            **ratios,
            "note": self.notes.get(form, ""),
            **circumstances(self.device),
        }


def _ratio(of_form: Mapping[str, float | None], least: float) -> float | None:
    """Quadratic over ours, where both are known and large enough to divide."""
    ours, quadratic = of_form.get("ours"), of_form.get("quadratic")
    if ours is None or quadratic is None or min(ours, quadratic) <= least:
        return None
    return quadratic / ours

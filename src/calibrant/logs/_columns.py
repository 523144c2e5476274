"""Which column of a file is what: by the names people give, or as told."""

from collections.abc import Sequence
from dataclasses import dataclass

from ._names import FORECASTS, TRUTHS, Asked, Kind, Names, check_asked, listed


@dataclass(frozen=True)
class Columns:
    """The columns of a prediction log, by what they hold.

    - `kind`: what the forecasts are; `forecast`: the columns they lie in, one per class or one
      in all; `truth`: labels, or outcomes where `kind` is `"confidence"`.
    """

    kind: Kind
    forecast: tuple[str, ...]
    truth: str
    weights: str | None = None
    groups: str | None = None

    @property
    def numbers(self) -> list[str]:
        """Every column that is read as numbers."""
        some = [*self.forecast, self.truth]
        return some if self.weights is None else [*some, self.weights]

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return self.numbers if self.groups is None else [*self.numbers, self.groups]


def choose(found: Sequence[str], where: str, asked: dict[str, Asked]) -> Columns:
    """Decide, from names alone and never from the numbers, what each column holds.

    - `found`: the names in the file; `where`: the file, for the sentence.
    - `asked`: by role (`logits`, `labels`, ...), what was named by the caller.

    >>> chosen = choose(["id", "logit_0", "logit_1", "label"], "log.csv", {})
    >>> chosen.kind, chosen.forecast, chosen.truth
    ('logits', ('logit_0', 'logit_1'), 'label')
    """
    names = Names(found, where)
    kind, forecast = choose_forecast(names, asked)
    role, other = ("outcome", "labels") if kind == "confidence" else ("labels", "outcome")
    if asked.get(other) is not None:
        raise ValueError(
            f"{kind} is judged by {role}, not by {other}; got {other}={asked[other]!r}. "
            f"Name the column as {role}."
        )
    truth = names.told(role, asked[role]) if asked.get(role) else names.known(role, TRUTHS[role])
    if not truth:
        raise ValueError(
            f"{where} must have a column of {role}, such as {listed(TRUTHS[role])}; "
            f"found {names}. Name yours as {role}, in a shell by --{role}."
        )
    more = {
        role: names.told(role, asked[role])[0] if asked.get(role) else None
        for role in ("weights", "groups")
    }
    chosen = Columns(kind, forecast, truth[0], **more)
    names.check_unique(chosen.all)
    twice = [name for name in chosen.numbers if chosen.numbers.count(name) > 1]
    if twice:
        raise ValueError(
            f"a column of {where} must be one thing only; got {twice[0]!r} for two of {kind}, "
            f"{role} and weights. Name another."
        )
    if chosen.groups in chosen.numbers:
        raise ValueError(
            f"groups, or times, must have a column of their own in {where}; got "
            f"{chosen.groups!r}, which is read as numbers."
        )
    return chosen


def choose_forecast(names: Names, asked: dict[str, Asked]) -> tuple[Kind, tuple[str, ...]]:
    """What the forecasts are, and the columns they lie in."""
    check_asked(asked)
    told: list[Kind] = [kind for kind in FORECASTS if asked.get(kind)]
    if len(told) > 1:
        raise ValueError(
            f"a log is judged by one kind of forecast; got {' and '.join(told)}. Name one of them."
        )
    if told:
        return told[0], names.told(told[0], asked[told[0]])
    present = {
        kind: columns for kind, known in FORECASTS.items() if (columns := names.known(kind, known))
    }
    # Whoever names the truth has said which kind of forecast is meant.
    if asked.get("outcome"):
        present = {kind: present[kind] for kind in present if kind == "confidence"}
    elif asked.get("labels"):
        present.pop("confidence", None)
    if not present:
        raise ValueError(
            f"{names.where} must have columns of logits (logits; logit_0, logit_1, ...), of "
            "probabilities (probabilities, probs; prob_0, prob_1, ...) or a confidence; "
            f"found {names}. Name yours as logits, probabilities or confidence, in a shell by "
            "--logits, --probabilities or --confidence."
        )
    if len(present) > 1:
        options = " and ".join(f"{kind} ({columns[0]})" for kind, columns in present.items())
        some = next(iter(present))
        raise ValueError(
            f"{names.where} holds more than one kind of forecast: {options}. "
            f"Name the one to judge, for instance {present[some][0]} as {some}."
        )
    return next(iter(present.items()))

"""One training run as a value: everything that makes it what it is, and nothing else."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

from ..recalibration import RECALIBRATORS
from ..training import AdaptiveWeight

Procedure = Literal["plain", "joint", "interleaved", "two_phase", "meta"]
Optimiser = Literal["adamw", "sgd"]
Schedule = Literal["cosine", "constant", "steps"]
Precision = Literal["float32", "bfloat16"]
Keep = Literal["last", "calibrated", "accurate"]
JudgedOn = Literal["validation", "test"]
Settings = Mapping[str, Any]

# What each word of a trial may be.
_WORDS: dict[str, Any] = {
    "procedure": Procedure,
    "optimiser": Optimiser,
    "schedule": Schedule,
    "precision": Precision,
    "keep": Keep,
    "judged_on": JudgedOn,
}
_NAMES = ("data", "model", "fit")
_COUNTS = {"seed": 0, "epochs": 1, "batch": 1, "bins": 1, "history_every": 1}
_SWITCHES = ("leak", "augment", "flip")
_LISTS = ("steps", "shift", "recalibrators")
_NUMBERS = ("weight", "held_out", "lr", "weight_decay", "momentum", "clip", "margin")
_ARGUMENTS = tuple(
    f"{part}_settings" for part in ("model", "fit", "calibration", "weight", "knowledge")
)
# Of all arguments of models and criteria, those that are no real numbers.
_WHOLE_ARGUMENTS = ("bins", "rounds", "leaves", "channels", "depth", "factor")
_SLICED = ("interleaved", "two_phase", "meta")
_GROUPED = ("interleaved", "two_phase")


@dataclass(frozen=True)
class Trial:
    """One training run: data, model, objective, optimiser, seed. Two equal trials are one run.

    - `data`, `model`: names in `DATASETS` and `MODELS`; `model_settings`: arguments of the latter.
    - `seed`: of everything that is drawn, the validation split included.
    - `procedure`: `"plain"` fits alone; `"joint"` adds calibration of the same batch;
      `"interleaved"` and `"two_phase"` that of a held-out slice; `"meta"` learns the regulariser.
    - `fit`, `fit_settings`: a name in `SCORES`, and its arguments, such as `{"gamma": 2.0}`.
    - `calibration`, `calibration_settings`: the same of a measure in `MEASURES`; for `"meta"`, what
      the coefficients descend. `calibration_groups`: judge each group of the held-out slice on
      its own, such as `"sex"`, and average the groups.
    - `weight`: of calibration, or `"adaptive"`; `weight_settings` are `AdaptiveWeight`'s.
    - `held_out`: the slice kept from the fit, a tenth where the procedure needs one. A plain trial
      with a slice leaves it unused: the fit of as little data as the others have.
    - `leak`, `knowledge_settings`: of `fit_meta` and its `WeightL2`.
    - `optimiser`, `lr`, `weight_decay`, `momentum`, `schedule`, `clip`: of the optimiser. `"steps"`
      divides the rate by ten at each share in `steps` of the epochs.
    - `augment`: move images about, where the data set says how; `flip`: also reflect them, or
      not, whatever it says.
    - `precision`: of the network.
    - `keep`: which epoch's weights are judged: the last, the best calibrated of those that lose
      less than `margin` of accuracy to the most accurate, or the most accurate. `bins`: of the
      error that choices are made by.
    - `judged_on`: `"validation"` never opens the test split. `shift`: severities of the
      corruptions, also judged, such as `[1, 3, 5]`. `recalibrators`: names in `RECALIBRATORS`.
    - `history_every`: keep the weights every so many epochs, to judge them all in the end.

    >>> trial = Trial("digits", "mlp", procedure="interleaved", calibration="esd", weight=1.0)
    >>> trial.held_out
    0.1
    >>> Trial.from_dict(trial.to_dict()) == trial
    True
    """

    data: str
    model: str
    model_settings: Settings = field(default_factory=dict)
    seed: int = 0
    procedure: Procedure = "plain"
    fit: str = "nll"
    fit_settings: Settings = field(default_factory=dict)
    calibration: str | None = None
    calibration_settings: Settings = field(default_factory=dict)
    calibration_groups: str | None = None
    weight: float | Literal["adaptive"] | None = None
    weight_settings: Settings = field(default_factory=dict)
    held_out: float | None = None
    leak: bool = False
    knowledge_settings: Settings = field(default_factory=dict)
    optimiser: Optimiser = "adamw"
    lr: float = 1e-3
    weight_decay: float = 1e-2
    momentum: float = 0.9
    schedule: Schedule = "cosine"
    steps: tuple[float, ...] = ()
    clip: float | None = None
    epochs: int = 30
    batch: int = 512
    augment: bool = True
    flip: bool | None = None
    precision: Precision = "float32"
    keep: Keep = "last"
    margin: float = 0.015
    bins: int = 20
    judged_on: JudgedOn = "test"
    shift: tuple[int, ...] = ()
    recalibrators: tuple[str, ...] = ("temperature", "vector", "temperature_sb_ece")
    history_every: int | None = None

    def __post_init__(self) -> None:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in _typed(given).items():
            object.__setattr__(self, name, value)
        for name, word in _WORDS.items():
            if getattr(self, name) not in get_args(word):
                raise ValueError(
                    f"{name} must be one of {', '.join(get_args(word))}; "
                    f"got {getattr(self, name)!r}."
                )
        if self.held_out is None:
            object.__setattr__(self, "held_out", 0.1 if self.procedure in _SLICED else 0.0)
        self._check()

    def _check(self) -> None:
        if (self.procedure == "plain") != (self.calibration is None):
            needed = "no calibration" if self.procedure == "plain" else "a calibration"
            raise ValueError(
                f"a {self.procedure} trial must have {needed}; got {self.calibration!r}. "
                "Plain trials only fit; all others also calibrate."
            )
        weighted = self.procedure not in ("plain", "meta")
        if weighted == (self.weight is None):
            needed = "given" if weighted else "left out"
            raise ValueError(
                f"weight must be {needed} for a {self.procedure} trial; got {self.weight!r}."
            )
        if self.weight == "adaptive" and self.procedure == "joint":
            raise ValueError(
                "weight must be a number for a joint trial, since an adaptive one learns from "
                "held-out batches; got 'adaptive'. Interleave."
            )
        if self.calibration_groups is not None and self.procedure not in _GROUPED:
            raise ValueError(
                "calibration_groups must be left out for trials that do not weigh calibration of a "
                f"held-out slice; got {self.calibration_groups!r} for a {self.procedure} one. "
                "Interleave."
            )
        if self.procedure in _SLICED and not self.held_out:
            raise ValueError(
                f"held_out must be above 0 for a {self.procedure} trial; got {self.held_out!r}. "
                "The papers hold out 0.1."
            )
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is None or (name == "weight" and value == "adaptive"):
                continue
            if not isinstance(value, float) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number; got {value!r}.")
        for name in _NAMES:
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a name; got {getattr(self, name)!r}.")
        for name, least in _COUNTS.items():
            count = getattr(self, name)
            whole = isinstance(count, int) and not isinstance(count, bool)
            if not (whole and count >= least) and not (count is None and name == "history_every"):
                raise ValueError(f"{name} must be a whole number from {least} on; got {count!r}.")
        unknown = [name for name in self.recalibrators if name not in RECALIBRATORS]
        if unknown:
            raise ValueError(
                f"recalibrators must be names of {', '.join(RECALIBRATORS)}; got {unknown[0]!r}."
            )

    def __hash__(self) -> int:
        return hash(self.identity)

    @cached_property
    def identity(self) -> str:
        """Twelve letters that every equal trial has, on every machine.

        Trials of an adaptive weight are equal as long as its rule is.
        """
        told = self.to_dict()
        if self.weight == "adaptive":
            told["rule"] = AdaptiveWeight.rule
        text = json.dumps(told, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as JSON has it, besides the data and the model."""
        own = json.loads(json.dumps(asdict(self)))
        usual = json.loads(json.dumps(asdict(Trial(self.data, self.model))))
        return {
            name: value
            for name, value in own.items()
            if name in ("data", "model", "seed", "procedure", "fit") or value != usual[name]
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Trial":
        """What `to_dict` gave, or a line of a file of trials."""
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(kept) - known)
        if unknown:
            raise ValueError(
                f"a trial has no {unknown[0]!r}; got {dict(kept)!r}. "
                f"There are {', '.join(sorted(known))}."
            )
        return cls(**_typed(kept))

    def but(self, **changes: Any) -> "Trial":
        """The same trial with some settings changed."""
        if "procedure" in changes and "held_out" not in changes:
            changes["held_out"] = None
        return replace(self, **_typed(changes))

    def __str__(self) -> str:
        """What a person would call it: `cifar10 resnet18 nll + 1 esd (interleaved) seed 0`."""
        what = self.fit + _arguments(self.fit_settings)
        if self.calibration is not None:
            price = self.weight if isinstance(self.weight, str) else f"{self.weight or 0:g}"
            price = "learnt by" if self.procedure == "meta" else f"+ {price}"
            leaky = ", leak" if self.leak else ""
            name = self.calibration + _arguments(self.calibration_settings)
            apart = "" if self.calibration_groups is None else f" by {self.calibration_groups}"
            what += f" {price} {name}{apart} ({self.procedure}{leaky})"
        return f"{self.data} {self.model} {what} seed {self.seed}"


def _typed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON has no type for: tuples, and floats that are whole numbers.

    A number is written in one way, so that equal trials have one identity.
    """
    told = dict(settings)
    for name in _LISTS:
        if name in told:
            if not isinstance(told[name], list | tuple):
                raise ValueError(f"{name} must be a list, such as [1, 3]; got {told[name]!r}.")
            told[name] = tuple(told[name])
    for name in told.keys() & set(_NUMBERS):
        told[name] = _real(told[name])
    for name in told.keys() & _COUNTS.keys():
        told[name] = _whole(told[name])
    for name in told.keys() & set(_SWITCHES):
        if told[name] in (0, 1):
            told[name] = bool(told[name])
    for name, as_it_is in (("shift", _whole), ("steps", _real)):
        if name in told:
            told[name] = tuple(as_it_is(value) for value in told[name])
    for name in told.keys() & set(_ARGUMENTS):
        told[name] = {
            argument: _whole(value) if argument in _WHOLE_ARGUMENTS else _real(value)
            for argument, value in told[name].items()
        }
    return told


def _real(value: Any) -> Any:
    """A number as a float, of which zero has no sign; anything else as it is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) + 0.0 if is_number else value


def _whole(value: Any) -> Any:
    """A float that is a whole number as an integer; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _arguments(settings: Settings) -> str:
    return (
        f"[{', '.join(f'{name}={value}' for name, value in settings.items())}]" if settings else ""
    )

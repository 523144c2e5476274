"""The shared step and loop, with coefficients that are kept and put back like everything else."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ._history import Epoch, History
from ._loop import Loop
from ._meta_regulariser import MetaRegulariser
from ._step import Part, Step


class MetaStep(Step):
    """A step after whose failure the coefficients, too, are as they were before it."""

    def __init__(self, *parts: Any, meta: MetaRegulariser, **settings: Any) -> None:
        super().__init__(*parts, **settings)
        self.meta = meta

    def __call__(self, parts: Sequence[Part], at: str) -> dict[str, float]:
        """Take the step and return the value of each loss; `at` says when, should it fail."""
        kept = deepcopy(self.meta.state_dict())
        try:
            return super().__call__(parts, at)
        except BaseException:
            self.meta.load_state_dict(kept)
            raise


@dataclass
class MetaHistory(History):
    """Every epoch of a run, and the regulariser as it was in the end.

    - `regulariser`: its `coefficients` are what was learnt, also when the model holds the weights
      of an earlier epoch.
    """

    regulariser: MetaRegulariser | None = None


class MetaLoop(Loop):
    """A loop whose checkpoints hold the coefficients and the state of their optimiser."""

    step: MetaStep

    def run(
        self, epochs: int, progress: bool | None, after_epoch: Callable[[Epoch], object] | None
    ) -> MetaHistory:
        """Train until `epochs` epochs are done, from the checkpoint if there is one."""
        self.history = MetaHistory(regulariser=self.step.meta)
        super().run(epochs, progress, after_epoch)
        return self.history

    def _keepers(self) -> dict[str, Any]:
        return super()._keepers() | {"meta": self.step.meta}

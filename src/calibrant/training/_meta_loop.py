"""The shared loop, with coefficients that are kept and put back like everything else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._history import Epoch, History
from ._loop import Loop
from ._meta_regulariser import MetaRegulariser


@dataclass
class MetaHistory(History):
    """Every epoch of a run, and the regulariser as it was in the end.

    - `regulariser`: its `coefficients` are what was learnt, also when the model holds the weights
      of an earlier epoch.
    """

    regulariser: MetaRegulariser | None = None


class MetaLoop(Loop):
    """A loop whose checkpoints hold the coefficients and the state of their optimiser."""

    def __init__(self, *parts: Any, meta: MetaRegulariser, **settings: Any) -> None:
        super().__init__(*parts, **settings)
        self.meta = meta

    def run(
        self, epochs: int, progress: bool | None, after_epoch: Callable[[Epoch], object] | None
    ) -> MetaHistory:
        """Train until `epochs` epochs are done, from the checkpoint if there is one."""
        self.history = MetaHistory(regulariser=self.meta)
        super().run(epochs, progress, after_epoch)
        return self.history

    def _keepers(self) -> dict[str, Any]:
        return super()._keepers() | {"meta": self.meta}

"""The weights of epochs that may turn out best."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from ._history import Epoch
from ._selection import Selection


@dataclass
class Keeper:
    """Copies the weights of every epoch the rule may yet choose, and drops those it cannot.

    Which epoch is best is known only at the end, since later epochs may raise the accuracy that
    earlier ones are held against. The copies are in main memory, rarely more than a few.
    """

    selection: Selection
    kept: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    def keep(self, epochs: Sequence[Epoch], model: nn.Module) -> None:
        """Take note of the latest epoch, whose weights the model has now."""
        possible = {epoch.number for epoch in self.selection.possible(epochs)}
        self.kept = {number: kept for number, kept in self.kept.items() if number in possible}
        if epochs[-1].number in possible:
            self.kept[epochs[-1].number] = {
                name: part.detach().to("cpu", copy=True)
                for name, part in model.state_dict().items()
            }

    def restore_best(self, epochs: Sequence[Epoch], model: nn.Module) -> Epoch:
        """Give the model the weights of the epoch the rule chooses."""
        best = self.selection.best(epochs)
        model.load_state_dict(self.kept[best.number])
        return best

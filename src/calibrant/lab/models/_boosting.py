"""Gradient-boosted trees: the strongest usual model of tables, and no network."""

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn


class Boosting(nn.Module):
    """Scikit-learn's `HistGradientBoostingClassifier`, with logits like any model of the lab.

    - `rounds`: of boosting, each a tree per class. `rate`: the share of each tree that is added.
    - `leaves`: of a tree, at most.

    It has no weights to train by gradients: `fit` grows all trees at once, by likelihood. No
    samples are set aside to stop early, so that all it sees are those it is given.
    """

    def __init__(
        self, classes: int, *, rounds: int = 100, rate: float = 0.1, leaves: int = 31
    ) -> None:
        super().__init__()
        self.classes = classes
        self.trees: Any = _ensemble()(
            max_iter=int(rounds),
            learning_rate=rate,
            max_leaf_nodes=int(leaves),
            early_stopping=False,
            random_state=int(torch.randint(2**31, ())),
        )

    def fit(self, inputs: Tensor, labels: Tensor) -> "Boosting":
        """Grow the trees."""
        self.trees.fit(inputs.flatten(1).cpu().numpy(), labels.cpu().numpy())
        if list(self.trees.classes_) != list(range(self.classes)):
            raise ValueError(
                f"boosting must see samples of all {self.classes} classes; got those of "
                f"{len(self.trees.classes_)}."
            )
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits: the sums of the trees, zero for the first of two classes."""
        sums = torch.from_numpy(self.trees.decision_function(inputs.flatten(1).cpu().numpy()))
        logits = sums if sums.ndim == 2 else torch.stack([torch.zeros_like(sums), sums], dim=1)
        return logits.float().to(inputs.device)


def _ensemble() -> Any:
    try:
        return import_module("sklearn.ensemble").HistGradientBoostingClassifier
    except ImportError as missing:
        raise ImportError(
            "gradient boosting needs scikit-learn: pip install 'calibrant[sklearn]'"
        ) from missing

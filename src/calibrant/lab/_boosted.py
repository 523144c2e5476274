"""Fit a model that is no network, and tell it as training tells of one."""

import torch

from ..predictions import Predictions
from ..scores import accuracy, nll
from ..training import Epoch, History
from ._parts import selection_of
from ._samples import Samples
from ._trial import Trial
from .augment import Batches
from .models import Boosting


@torch.no_grad()
def fit_boosting(trial: Trial, model: Boosting, to_fit: Batches, validation: Batches) -> History:
    """Grow the trees of a trial; a history of one epoch, after which all of them stand.

    Settings of optimisers mean nothing here, and images are not moved about; what would change
    the objective or look into the middle is refused.
    """
    if trial.procedure != "plain" or trial.fit != "nll" or trial.history_every is not None:
        raise ValueError(
            "boosting must be fitted by likelihood at once: procedure 'plain', fit 'nll' and no "
            f"history_every; got {trial.procedure!r}, {trial.fit!r} and {trial.history_every!r}. "
            "Recalibrate it instead."
        )
    seen, unseen = _as_judged(to_fit), _as_judged(validation)
    model.fit(seen.inputs, seen.labels)
    fitted = Predictions(model(seen.inputs), seen.labels)
    judged = Predictions(model(unseen.inputs), unseen.labels)
    epoch = Epoch(
        0,
        float(nll(fitted)),
        accuracy=float(accuracy(judged)),
        error=float(selection_of(trial).measure(judged)),
    )
    return History([epoch], epoch)


def _as_judged(batches: Batches) -> Samples:
    """All samples of a loader as one batch, images only resized and normalised."""
    samples = batches.samples
    if batches.augment is None:
        return samples
    return Samples(batches.augment(samples.inputs), samples.labels)

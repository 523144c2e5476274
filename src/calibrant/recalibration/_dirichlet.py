"""Every class's logit made of all classes' log-probabilities."""

from torch import Tensor

from ._matrix import MatrixScaling


class DirichletCalibration(MatrixScaling):
    r"""Mix the log-probabilities of all classes: $p \mapsto \mathrm{softmax}(W \log p + b)$.

    What Bayes' rule gives where the probabilities of each class are spread by a Dirichlet law of
    its own. Fitted as `MatrixScaling` is, with the same regularisation and the same settings, to
    log-probabilities in place of logits; so a constant added to a row of logits changes nothing.

    With two classes and no penalty this is `BetaCalibration` without its bounds.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> logits, labels = torch.randn(500, 3), torch.arange(500) % 3
    >>> calibration = DirichletCalibration().fit(logits, labels, folds=0)
    >>> bool(torch.allclose(calibration.transform(logits + 5), calibration.transform(logits)))
    True

    Kull et al., "Beyond Temperature Scaling: Obtaining Well-Calibrated Multiclass Probabilities
    with Dirichlet Calibration", NeurIPS 2019.
    """

    def _scores(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(dim=1)

"""When to interleave."""


def should_interleave(
    *,
    plain: float | None = None,
    interleaved: float | None = None,
    train: float | None = None,
    suspicious: float = 0.01,
) -> bool:
    """Whether to train calibration on a held-out slice, as the soft-calibration paper advises.

    With a calibration set, interleave if that gives a lower error on it. Without one,
    interleave if the error on the training set is suspiciously low: the network has memorised
    it, and there is nothing left on it for a calibration loss to lower.

    - `plain`, `interleaved`: calibration error on the calibration set after training both ways.
    - `train`: calibration error of plain training on its own training set.
    - `suspicious`: below which that is too good to be true.

    All are fractions, not percentages; the paper's are ECE of equal-width bins. The calibration
    set has the last word where both are given. The paper names another way out: a fit that does
    not memorise, such as `focal`.

    >>> should_interleave(train=0.0045)  # NLL on CIFAR-100, whose test ECE is 6.88%
    True
    >>> should_interleave(plain=0.03, interleaved=0.04)
    False

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021,
    appendix B.
    """
    for name, error in (("plain", plain), ("interleaved", interleaved), ("train", train)):
        if error is not None and not 0 <= error <= 1:
            raise ValueError(
                f"{name} must be an error between 0 and 1; got {error!r}. "
                "Pass a fraction: 1% is 0.01."
            )
    if plain is not None and interleaved is not None:
        return interleaved < plain
    if plain is not None or interleaved is not None or train is None:
        raise ValueError(
            "should_interleave needs plain and interleaved, the errors on a calibration set, "
            "or train, the error on the training set; got neither. "
            "Measure one with top_label(ece)."
        )
    return train < suspicious

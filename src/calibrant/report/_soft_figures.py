"""What soft bins and soft uncertainty look like: figures 3 and 4 of the soft-calibration paper."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .._checks import check_bins, check_positive
from ..measures._soft_bins import SoftBins
from ._axes import room, rooms, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 1001


def soft_bin_memberships(
    *, bins: int = 5, temperatures: Sequence[float] = (0.1, 0.01, 0.001)
) -> "tuple[Figure, list[Axes]]":
    r"""How much a confidence belongs to each soft bin, one pair of axes per temperature.

    $$u_j(c) \propto \exp(-(c - \xi_j)^2 / T), \qquad \xi_j = (j + \tfrac12) / M$$

    - `bins`: $M$. `temperatures`: $T$; towards zero, bins become hard.

    >>> figure, axes = soft_bin_memberships(bins=4, temperatures=[0.01, 0.001])
    >>> len(axes), len(axes[0].lines)
    (2, 4)

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021, figure 3.
    """
    check_bins(bins)
    for temperature in temperatures:
        check_positive(temperature=temperature)
    figure, table = rooms(1, len(temperatures), 2.4 * len(temperatures), 2.2)
    confidence = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    for axes, temperature in zip(table[0], temperatures, strict=True):
        for k, bin_of in enumerate(SoftBins(bins, temperature).memberships(confidence)):
            axes.plot(confidence, bin_of, lw=1.3, ls=("-", "--", "-.", ":")[k % 4])
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="confidence", title=f"T = {temperature:g}")
        tidy(axes)
    table[0, 0].set_ylabel("membership of each bin")
    return figure, list(table[0])


def soft_uncertainty_curves(
    *,
    thresholds: Sequence[float] = (0.25, 0.5, 0.75),
    temperatures: Sequence[float] = (1.0, 0.1),
    axes: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    r"""How uncertain a share of the largest entropy counts as in `soft_avuc`.

    $$t_{\kappa, T}(h) = \operatorname{logistic}\Bigl(\frac1T
      \log\frac{h (1 - \kappa)}{(1 - h)\,\kappa}\Bigr)$$

    - `thresholds`: $\kappa$, where it counts one half. `temperatures`: $T$; towards zero it
      becomes a step, and at 1 with a threshold of one half it is the identity.

    >>> figure, axes = soft_uncertainty_curves(thresholds=[0.5], temperatures=[1.0])
    >>> axes.lines[0].get_ydata()[500].item()
    0.5

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021, figure 4.
    """
    for threshold in thresholds:
        if not 0 < threshold < 1:
            raise ValueError(f"a threshold must lie between 0 and 1; got {threshold!r}.")
    for temperature in temperatures:
        check_positive(temperature=temperature)
    figure, main = room(axes, 4.8, 3.0)
    share = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    for k, temperature in enumerate(temperatures):
        for j, threshold in enumerate(thresholds):
            odds = share.logit() - torch.tensor(threshold, dtype=torch.float64).logit()
            main.plot(
                share.numpy(), (odds / temperature).sigmoid().numpy(), lw=1.4, color=f"C{j}",
                ls=("-", "--", "-.", ":")[k % 4],
                label=f"$\\kappa$ = {threshold:g}, T = {temperature:g}",
            )  # fmt: skip
    main.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="soft uncertainty")
    main.set_xlabel("entropy, as a share of the largest")
    main.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    tidy(main)
    return figure, main

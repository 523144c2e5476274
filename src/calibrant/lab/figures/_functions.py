"""Figures of the soft functions themselves, which need no run."""

from typing import Any

import torch

from .._plan import Plan, Rows
from .._study import Study
from ._panels import legend, panels


def membership(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    bins, temperatures = study.figure_settings["bins"], study.figure_settings["temperatures"]
    figure, axes = panels(pyplot, len(temperatures))
    confidence = torch.linspace(0, 1, 501)
    centres = (torch.arange(bins) + 0.5) / bins
    for axis, temperature in zip(axes[0], temperatures, strict=True):
        member = (-((confidence[:, None] - centres) ** 2) / temperature).softmax(dim=1)
        axis.plot(confidence.numpy(), member.numpy())
        axis.set(xlabel="confidence", ylabel="membership", title=f"T = {temperature:g}")
    return figure


def uncertainty(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    settings = study.figure_settings
    figure, axes = panels(pyplot, len(settings["thresholds"]))
    entropy = torch.linspace(0.001, 0.999, 501)
    for axis, kappa in zip(axes[0], settings["thresholds"], strict=True):
        for temperature in settings["temperatures"]:
            odds = entropy * (1 - kappa) / ((1 - entropy) * kappa)
            soft = (odds.log() / temperature).sigmoid()
            axis.plot(entropy.numpy(), soft.numpy(), label=f"T = {temperature:g}")
        axis.set(xlabel="normalised entropy", ylabel="uncertainty", title=f"kappa = {kappa:g}")
        legend(axis)
    return figure

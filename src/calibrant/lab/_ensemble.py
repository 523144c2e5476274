"""Small models of one shape as one set of stacked parameters, trained in one vectorised pass."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from ..predictions import Predictions
from ..scores import accuracy
from ..training import Epoch, History, interleave
from ._parts import criterion_of, optimiser_of, schedule_of, selection_of
from ._run_trial import Run


class Ensemble:
    """The models of a group as one set of stacked parameters."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs, self.trial = runs, runs[0].trial
        device = runs[0].device
        models: list[nn.Module] = [run.model for run in runs]
        stacked, buffers = stack_module_state(models)
        if buffers:
            raise ValueError(
                "models trained together must have no running statistics; got "
                f"{', '.join(buffers)}. Run them one by one."
            )
        # As parameters of a module, so that they have the optimiser of any other model.
        self.parameters = {name: nn.Parameter(own.detach()) for name, own in stacked.items()}
        self.shape = models[0]
        seeds = sorted({run.trial.seed for run in runs})
        # Models of one seed see the same batches, which are made once.
        self.leaders = [next(run for run in runs if run.trial.seed == seed) for seed in seeds]
        self.seed_of = torch.tensor([seeds.index(run.trial.seed) for run in runs], device=device)
        weights = [run.trial.weight or 0.0 for run in runs]
        self.weights = torch.tensor(weights, device=device)
        self.fit = criterion_of(self.trial.fit, self.trial.fit_settings)
        self.calibration = None
        if self.trial.calibration is not None:
            self.calibration = criterion_of(self.trial.calibration, self.trial.calibration_settings)

    def train(self) -> list[History | None]:
        """Every model's history, its weights loaded; `None` for a model that diverged."""
        holder = nn.ParameterList(self.parameters.values())
        optimiser = optimiser_of(self.trial, holder)
        schedule = schedule_of(self.trial, optimiser)
        keepers = [Kept(run) for run in self.runs]
        pairs = [self._pairs(run) for run in self.leaders]
        for number in range(self.trial.epochs):
            told = []
            for step in zip(*pairs, strict=True):
                losses, parts = self._losses(step)
                optimiser.zero_grad(set_to_none=True)
                losses.sum().backward()
                optimiser.step()
                told.append(parts.detach())
            if schedule is not None:
                schedule.step()
            self._judge(number, torch.stack(told).double().mean(dim=0), keepers)
        return [keeper.history() for keeper in keepers]

    def _pairs(self, run: Run) -> Any:
        """What each step of an epoch is trained on; gone through once an epoch."""
        to_fit, to_judge, _ = run.batches
        if to_judge is None:
            return _Alone(to_fit)
        return interleave(to_fit, to_judge)

    def _losses(self, step: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """The loss of every model, and its parts: fit and calibration."""
        fitted = self._dealt([pair[0] for pair in step])
        interleaved = step[0][1] is not None
        judged = self._dealt([pair[1] for pair in step]) if interleaved else fitted

        def one(
            own: Any,
            weight: Tensor,
            x: Tensor,
            y: Tensor,
            held: Tensor,
            truth: Tensor,
        ) -> tuple[Tensor, Tensor]:
            predictions = Predictions(functional_call(self.shape, own, (x,)), y)
            value = self.fit(predictions)
            if self.calibration is None:
                return value, torch.stack([value, torch.zeros_like(value)])
            if interleaved:
                predictions = Predictions(functional_call(self.shape, own, (held,)), truth)
            price = self.calibration(predictions)
            loss = value + weight.to(price) * price
            # A joint run tells its whole loss, an interleaved one its parts, as alone.
            return loss, torch.stack([value if interleaved else loss, price])

        return vmap(one)(self.parameters, self.weights, *fitted, *judged)

    def _dealt(self, batches: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Inputs and labels of every model, from those of every seed."""
        inputs = torch.stack([inputs for inputs, _ in batches])[self.seed_of]
        labels = torch.stack([labels for _, labels in batches])[self.seed_of]
        return inputs, labels

    @torch.no_grad()
    def _judge(self, number: int, means: Tensor, keepers: Sequence["Kept"]) -> None:
        """Accuracy and error of every model on its validation data."""
        logits, labels = [], []
        for step in zip(*(run.batches[-1] for run in self.leaders), strict=True):
            inputs, truth = self._dealt(step)
            logits.append(
                vmap(lambda own, x: functional_call(self.shape, own, (x,)))(self.parameters, inputs)
            )
            labels.append(truth)
        whole, truths = torch.cat(logits, dim=1), torch.cat(labels, dim=1)
        for i, keeper in enumerate(keepers):
            predictions = Predictions(whole[i], truths[i])
            fit, price = means[i].tolist()
            told = self.trial.procedure == "interleaved"
            epoch = Epoch(
                number,
                fit,
                price if told else None,
                float(self.weights[i]) if told else None,
                float(accuracy(predictions)),
                float(keeper.selection.measure(predictions)),
            )
            keeper.keep(epoch, {name: part[i] for name, part in self.parameters.items()})


class Kept:
    """The epochs of one model, and the weights of those the rule may yet choose."""

    def __init__(self, run: Run) -> None:
        self.run, self.selection = run, selection_of(run.trial)
        self.epochs: list[Epoch] = []
        self.weights: dict[int, dict[str, Tensor]] = {}

    def keep(self, epoch: Epoch, weights: dict[str, Tensor]) -> None:
        """Take note of the latest epoch."""
        self.epochs.append(epoch)
        possible = {each.number for each in self.selection.possible(self.epochs)}
        self.weights = {n: own for n, own in self.weights.items() if n in possible}
        if epoch.number in possible:
            self.weights[epoch.number] = {n: own.detach().clone() for n, own in weights.items()}

    def history(self) -> History | None:
        """All epochs, and the chosen one's weights in the model; `None` if it diverged."""
        if not all(epoch.fit == epoch.fit for epoch in self.epochs):
            return None
        best = self.selection.best(self.epochs)
        self.run.model.load_state_dict(self.weights[best.number])
        return History(self.epochs, best, str(self.selection))


class _Alone:
    """A loader as pairs without a held-out batch."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[tuple[Any, None]]:
        return ((batch, None) for batch in self.loader)

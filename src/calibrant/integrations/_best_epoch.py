"""The best epoch of a run in transformers' Trainer, also of one that was interrupted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..training._history import Epoch
from ..training._keeper import Keeper
from ..training._selection import Selection
from ._kept_epochs import judged_epochs, read_epochs, write_epochs

_EPOCHS = "best_epoch.safetensors"  # beside Trainer's own files of a checkpoint


class BestEpoch(TrainerCallback):
    """Leaves the model with the weights of the evaluation that the papers' rule chooses.

    - `selection`: the rule; its `measure` is not used, since `compute_metrics` measures.
    - `accuracy`, `error`: what `compute_metrics` calls them, as `calibration_metrics` does by
      default.

    Where there are several evaluation data sets, name the metrics of one; those of others, and
    evaluations before and after training, are left alone.

    A run that goes on from a checkpoint knows the evaluations before it: each checkpoint also
    holds the weights that may yet be chosen, rarely more than a few copies of the model.
    """

    def __init__(
        self,
        selection: Selection | None = None,
        *,
        accuracy: str = "eval_accuracy",
        error: str = "eval_ece",
    ) -> None:
        self.keeper, self.epochs = Keeper(selection or Selection()), list[Epoch]()
        self.names = (accuracy, error)
        self.best: Epoch | None = None
        self.training = False
        self._missing: str | None = None
        self._judged_at: int | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Begin anew or, in a run that goes on, with what its checkpoint knows."""
        self.epochs, self.keeper.kept, self.best = [], {}, None
        self.training, self._missing, self._judged_at = True, None, None
        logged = [self._judged(each) for each in state.log_history if set(self.names) <= set(each)]
        if state.global_step == 0 or not logged:
            return
        # Trainer does not say which folder it reads; the step and what was logged tell.
        folders = [_checkpoint_of(args, state)]
        if args.resume_from_checkpoint:
            folders.insert(0, Path(args.resume_from_checkpoint))
        for path in (folder / _EPOCHS for folder in folders):
            if path.is_file():
                epochs, kept = read_epochs(path)
                # As text, since what is not a number does not equal itself.
                if repr(epochs) == repr(judged_epochs(logged)):
                    self.epochs, self.keeper.kept = epochs, kept
                    return
        raise ValueError(
            f"the checkpoint of a run with BestEpoch must hold {_EPOCHS} with its {len(logged)} "
            f"evaluations; got none in {folders[0]}. Where the checkpoint is in another folder, "
            "name it in TrainingArguments(resume_from_checkpoint=...) as well; a run begun without "
            "BestEpoch goes on without it."
        )

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Take note of an evaluation during training."""
        if not self.training:
            return
        metrics = given["metrics"]
        missing = [name for name in self.names if name not in metrics]
        if missing:  # which may be among those of another data set
            self._missing = missing[0]
            return
        right, wrong = self._judged(metrics)
        self.epochs.append(Epoch(len(self.epochs), float("nan"), accuracy=right, error=wrong))
        self.keeper.keep(self.epochs, given["model"])
        self._judged_at = state.global_step

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Every data set has been evaluated by now."""
        self._check_judged(state.global_step)

    def _check_judged(self, step: int) -> None:
        missing, self._missing = self._missing, None
        if missing is not None and self._judged_at != step:
            raise ValueError(
                f"evaluation must give {' and '.join(self.names)}; got no {missing}. Pass "
                "compute_metrics=calibration_metrics to the Trainer, and where it evaluates "
                "several data sets name the metrics of one: BestEpoch(accuracy=..., error=...)."
            )

    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Put into the checkpoint what a run that goes on from it must know."""
        # A search over settings has folders of its own, and nobody goes on from its trials.
        resumable = not (args.save_only_model or state.is_hyper_param_search)
        if self.epochs and resumable and args.should_save:
            write_epochs(_checkpoint_of(args, state) / _EPOCHS, self.epochs, self.keeper.kept)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Put back the best."""
        self.training = False
        self._check_judged(state.global_step)
        if self.epochs:
            self.best = self.keeper.restore_best(self.epochs, given["model"])

    def _judged(self, metrics: Mapping[str, Any]) -> tuple[float, float]:
        right, wrong = (float(metrics[name]) for name in self.names)
        return right, wrong


def _checkpoint_of(args: Any, state: Any) -> Path:
    """Where Trainer keeps the run as it is at this step."""
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"

"""What each step is trained on: a batch to fit, a held-out batch to judge, or both."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

from ._stream import Stream

Schedule = Literal["every_step", "two_phase"]


def interleave(train_loader: Iterable[Any], calibration_loader: Iterable[Any]) -> "Interleaved":
    """Pairs of a training batch and a held-out batch, for people who own their loop.

    Going through it once is one epoch: every training batch, each beside the next batch of
    the calibration loader. When those run out the loader is begun again, so a loader that
    shuffles gives another order (`itertools.cycle` would replay the first). The cycle goes on
    from one epoch to the next, so that every held-out sample is judged equally often.

    - `train_loader`: what the likelihood is fitted on.
    - `calibration_loader`: the slice kept from it; batches as large as fit, since calibration
      belongs to a batch.

    `state_dict` and `load_state_dict` keep the place, as those of `fit_interleaved` do.

    >>> for batch, held_out in interleave([1, 2, 3, 4, 5], ["a", "b"]):
    ...     print(batch, held_out)
    1 a
    2 b
    3 a
    4 b
    5 a

    Yoon et al., "ESD", ICLR 2023, section 4.2.
    """
    return Interleaved(train_loader, calibration_loader)


class Interleaved:
    """The pairs of `interleave`, an epoch each time it is gone through."""

    def __init__(
        self,
        train_loader: Iterable[Any],
        calibration_loader: Iterable[Any] | None,
        schedule: Schedule = "every_step",
    ) -> None:
        if schedule not in get_args(Schedule):
            raise ValueError(
                f"schedule must be 'every_step' or 'two_phase'; got {schedule!r}. The first adds "
                "calibration to every step, the second calibrates after each epoch of fitting."
            )
        self.schedule = schedule
        self.to_fit = Stream(train_loader, "the training loader")
        self.to_judge = None if calibration_loader is None else Stream(calibration_loader)
        self._resumed = False

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """The steps of an epoch; of the rest of one, after `load_state_dict`."""
        if not self._resumed:
            self._begin_epoch()
        self._resumed = False
        if self.to_judge is None:
            yield from ((batch, None) for batch in self.to_fit.rest())
        elif self.schedule == "every_step":
            yield from zip(self.to_fit.rest(), self.to_judge.endless(), strict=False)
        else:
            yield from ((batch, None) for batch in self.to_fit.rest())
            yield from ((None, held_out) for held_out in self.to_judge.rest())
        self._begin_epoch()  # a place kept from here on is the beginning of the next

    def _begin_epoch(self) -> None:
        self.to_fit.renew()
        if self.to_judge is not None and self.schedule == "two_phase":
            self.to_judge.renew()

    def __len__(self) -> int:
        """Steps of an epoch, where the loaders know their length."""
        steps = [each for each in self.lengths if each is not None]
        if len(steps) < len(self.lengths):
            raise TypeError(
                "a loader must know its length to tell that of an epoch; got one that does not."
            )
        return sum(steps)

    @property
    def lengths(self) -> list[int | None]:
        """Batches of each loader that an epoch goes through once; `None` where it cannot know."""
        once = [self.to_fit]
        if self.to_judge is not None and self.schedule == "two_phase":
            once.append(self.to_judge)
        return [_length(stream.loader) for stream in once]

    @property
    def streams(self) -> list[Stream]:
        """Both streams, or the one there is."""
        return [self.to_fit] if self.to_judge is None else [self.to_fit, self.to_judge]

    def state_dict(self) -> dict[str, Any]:
        """The place in both loaders."""
        return {"streams": [stream.state_dict() for stream in self.streams]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Find the place again; the next epoch gone through is the rest of that one."""
        for stream, place in zip(self.streams, state["streams"], strict=True):
            stream.load_state_dict(place)
        self._resumed = True


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # of a stream of samples, for example
        return None

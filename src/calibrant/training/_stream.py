"""A loader read batch by batch, whose place can be kept and found again."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ._random import generators_of, random_state, restore_random_state, samplers_of, undisturbed


class Stream:
    """One loader, pass after pass.

    A place is the state of every generator when the pass began, and the number of batches
    read since. To find it again the pass is begun from that state and those batches are
    read and dropped: samplers draw the order of samples at the beginning of a pass, so it comes
    out the same. Workers are seeded then as well, so their augmentation does too; in the main
    process it goes on from the global generators, which are the caller's to restore. The
    generators of the loader itself are put back to where they were.

    - `name`: of the loader, for a sentence about it.
    """

    def __init__(self, loader: Iterable[Any], name: str = "the calibration loader") -> None:
        self.loader, self.name = loader, name
        self.generators = generators_of(loader)
        self.passes = 0
        self.renew()

    def renew(self) -> None:
        """Forget the pass under way; the next batch begins another."""
        self._batches: Iterator[Any] | None = None
        self._began: dict[str, Any] | None = None
        self._read = 0
        self._over = False

    def rest(self) -> Iterator[Any]:
        """The batches of this pass that have not been read; a pass without any is refused."""
        while not self._over:
            try:
                batch = self._next()
            except StopIteration:
                self._check_not_empty()
                self._over = True
                return
            yield batch

    def endless(self) -> Iterator[Any]:
        """Batches without end: after the last, another pass in another order."""
        while True:
            yield from self.rest()
            self.renew()

    def _next(self) -> Any:
        if self._batches is None:
            self._began = random_state(self.generators)
            self._batches = self._begin()
        batch = next(self._batches)
        self._read += 1
        return batch

    def _begin(self) -> Iterator[Any]:
        # Samplers for several processes draw the order from the number of the pass.
        for sampler in samplers_of(self.loader):
            set_epoch = getattr(sampler, "set_epoch", None)
            if callable(set_epoch):
                set_epoch(self.passes)
        self.passes += 1
        return iter(self.loader)

    def _check_not_empty(self) -> None:
        if self._read > 0:
            return
        if self.passes > 1:
            raise ValueError(
                f"{self.name} must yield batches each time it is gone through; got none in pass "
                f"{self.passes}. Its data must begin anew: pass a list, or a data set whose "
                "__iter__ makes a new iterator."
            )
        raise ValueError(
            f"{self.name} must yield at least one batch; got none. With drop_last=True it needs "
            "a whole batch of samples."
        )

    def state_dict(self) -> dict[str, Any]:
        """The place, for a checkpoint."""
        return {
            "passes": self.passes,
            "began": self._began,
            "read": self._read,
            "over": self._over,
            "own": [generator.get_state() for generator in self.generators],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Find the place again; the global generators stay as they are."""
        self.renew()
        self.passes, self._over = state["passes"], state["over"]
        if state["began"] is not None and not self._over:
            self._read_again(state)
        for generator, own in zip(self.generators, state["own"], strict=True):
            generator.set_state(own)

    def _read_again(self, state: dict[str, Any]) -> None:
        self._began, self.passes = state["began"], state["passes"] - 1
        with undisturbed():
            restore_random_state(state["began"], self.generators)
            self._batches = self._begin()
            self._read = sum(1 for _ in islice(self._batches, state["read"]))
        if self._read < state["read"]:
            raise ValueError(
                "the loader must yield at least the batches read before the interruption, "
                f"{state['read']}; got {self._read}. Resume with the same data."
            )

"""Batches of calibration data without end, whose place a checkpoint keeps."""

from collections.abc import Callable, Iterator
from typing import Any

from ..training._stream import Stream


class CalibrationSlice:
    """Reads a loader that it makes when it is first asked for a batch.

    - `make_loader`: called again whenever reading begins anew.
    """

    def __init__(self, make_loader: Callable[[], Any]) -> None:
        self.make_loader = make_loader
        self._size: int | None = None
        self.forget()

    def forget(self) -> None:
        """The next batch is the first of a new loader."""
        self._stream: Stream | None = None
        self._batches: Iterator[Any] = iter(())

    def draw(self, batches: int, size: int) -> list[Any]:
        """The next few batches.

        - `size`: samples a batch should have. Trainer lowers it where memory runs out.
        """
        if self._stream is None or size != self._size:
            self._begin(size)
        return [next(self._batches) for _ in range(batches)]

    def _begin(self, size: int, place: dict[str, Any] | None = None) -> None:
        loader = self.make_loader()
        self._stream, self._size = Stream(loader), size
        if place is not None:
            # Accelerate's loaders count their passes themselves, and shuffle by the count.
            if hasattr(loader, "set_epoch"):
                loader.set_epoch(place["passes"] - 1)
            self._stream.load_state_dict(place)
        self._batches = self._stream.endless()

    def state_dict(self) -> dict[str, Any] | None:
        """The place, for a checkpoint; `None` before the first batch."""
        return None if self._stream is None else self._stream.state_dict()

    def load_state_dict(self, place: dict[str, Any], size: int) -> None:
        """Go on at the place where a checkpoint was written."""
        self._begin(size, place)

"""A file as memory, of which no more is held than is being looked at."""

import mmap
from pathlib import Path


class Mapped:
    """A file mapped for reading, for as long as anything refers to its `memory`."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise OSError("it is empty")
            self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def check_whole(self) -> None:
        """Whoever looks beyond the end of a file that was cut since ends the whole process."""
        if self.memory.size() < len(self.memory):
            raise OSError("it was cut short while it was read")

    def forget(self) -> None:
        """Give back what was read so far, which would stay mapped; looked at, it is read again."""
        if hasattr(self.memory, "madvise"):
            self.memory.madvise(mmap.MADV_DONTNEED)

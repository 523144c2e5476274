"""Who may write to the journal of searches."""

from contextlib import ExitStack
from pathlib import Path

from ._store import locked


class JournalLock:
    """A lock on the journal itself, which ends with the process that holds it.

    Those of Optuna are files that a kill leaves behind, and that others wait for.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def acquire(self) -> bool:
        """Wait until nobody else writes."""
        held = ExitStack()
        held.enter_context(locked(self._path))
        self._held = held  # not before: until now it was another thread's
        return True

    def release(self) -> None:
        """Let others write."""
        self._held.close()

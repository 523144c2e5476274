"""Files of named arrays with a row per sample."""

from collections.abc import Sequence

from ._table import Table


class ArrayTable(Table):
    """Arrays by name; those that are used must have the same number of rows."""

    shapes: dict[str, tuple[int, ...]]

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """The arrays that have rows."""
        return [name for name, shape in self.shapes.items() if shape]

    def width(self, name: str) -> int | None:
        """The second dimension, where there is one."""
        return self.shapes[name][1] if len(self.shapes[name]) > 1 else None

    def count(self, names: Sequence[str]) -> int:
        """The rows these arrays share."""
        for name in names:
            if len(self.shapes[name]) > 2:
                raise ValueError(
                    f"array {name!r} of {self.path.name} must have the shape (rows,) or (rows, "
                    f"classes); got {self.shapes[name]}. Flatten pixels or tokens before saving."
                )
        rows = {name: self.shapes[name][0] for name in names}
        if len(set(rows.values())) > 1:
            told = ", ".join(f"{name} {count:,}" for name, count in rows.items())
            raise ValueError(
                f"the arrays of {self.path.name} must have a row per sample; got rows {told}."
            )
        return next(iter(rows.values()))

"""From numbers to places in a drawing."""

from dataclasses import dataclass
from math import ceil, floor, log10


@dataclass(frozen=True)
class Frame:
    """A rectangle of a drawing, and the numbers at its edges.

    >>> frame = Frame(left=10, top=10, width=100, height=50)
    >>> frame.x(0.5), frame.y(1.0), frame.y(0.0)
    (60.0, 10.0, 60.0)
    """

    left: float
    top: float
    width: float
    height: float
    x0: float = 0.0
    x1: float = 1.0
    y0: float = 0.0
    y1: float = 1.0

    def x(self, value: float) -> float:
        """To the right."""
        return self.left + self.width * (value - self.x0) / (self.x1 - self.x0)

    def y(self, value: float) -> float:
        """Upwards."""
        return self.top + self.height * (1 - (value - self.y0) / (self.y1 - self.y0))

    @property
    def bottom(self) -> float:
        """Where the horizontal axis lies."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """Where the drawing ends."""
        return self.left + self.width

    def x_ticks(self) -> list[float]:
        """Round numbers along the horizontal axis."""
        return ticks(self.x0, self.x1)

    def y_ticks(self) -> list[float]:
        """Round numbers along the vertical axis."""
        return ticks(self.y0, self.y1)

    def path(self, xs: list[float], ys: list[float]) -> str:
        """A line through points, as SVG writes it."""
        places = (f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        return "M" + "L".join(places)

    def area(self, xs: list[float], low: list[float], high: list[float]) -> str:
        """What lies between two lines."""
        return self.path([*xs, *xs[::-1]], [*low, *high[::-1]]) + "Z"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two others.

    >>> ticks(0, 1), ticks(0, 0.05)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
    """
    rough = (high - low) / about
    scale = 10 ** floor(log10(rough))
    step = min((scale * s for s in (1, 2, 5, 10)), key=lambda s: abs(s - rough))
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [round(k * step, 10) for k in range(first, last + 1)]

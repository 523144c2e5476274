"""The papers' figures, drawn from stored rows by matplotlib."""

from ._draw import FIGURES as FIGURES
from ._draw import draw as draw

"""Handwritten digits through noise: seven ways to train, one way to repair, and a report.

Run as `calibrant demo` or `python -m calibrant.demo`.
"""

from ._run import Judged as Judged
from ._run import run as run
from ._show import main as main

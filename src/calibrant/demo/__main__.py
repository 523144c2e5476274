"""`python -m calibrant.demo`."""

import sys

from . import main

if __name__ == "__main__":
    try:
        main()
    except ImportError as missing:
        sys.exit(str(missing))

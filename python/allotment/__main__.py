"""``python -m allotment``."""

import sys

from allotment.cli import main

if __name__ == "__main__":
    sys.exit(main())

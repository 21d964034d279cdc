"""``python -m eigenfeat``: the command line."""

import sys

from eigenfeat.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m eigenfeat`` and ``eigenfeat``: the command line."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C before it has begun ends it without a word."""
    try:
        from eigenfeat.cli import main as run
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())

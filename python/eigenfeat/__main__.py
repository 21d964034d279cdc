"""``python -m eigenfeat`` and ``eigenfeat``: the command line."""

import os
import sys


def main() -> int:
    """Run the command line; Ctrl-C before a command has begun ends the program silently."""
    if sys.argv[1:2] == ["moments"]:
        # Files are decoded while the core computes, and idle OpenMP threads that spin would slow
        # decoding down by 16% (Parquet). OpenMP reads the variable when the core is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for name in ("stdout", "stderr"):  # None if the caller has closed them
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, for the whole run
    try:
        from eigenfeat.cli.main import main as run
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())

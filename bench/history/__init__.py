"""Benchmarks for asv: seconds of our own from commit to commit. `bench/run.py` has the rivals.

With asv installed, from the folder `bench`::

    asv run main^..main          # builds the commit in an environment of its own
    asv run --quick -E existing  # the package that is installed, once, no history
    asv publish && asv preview

Real data is read from the folder that EIGENFEAT_BENCH_DATA names; elsewhere rows are random.
"""

import sys
from pathlib import Path

# asv imports this folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

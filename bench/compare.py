"""Compare two result files of bench/run.py: base and head, measured on the same machine.

python bench/compare.py base.csv head.csv
"""

import sys

import pandas as pd


def main():
    """Print head / base for every measurement that both files have."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    keys = ["task", "implementation", "threads", "tier"]
    base, head = (
        pd.read_csv(file).groupby(keys, sort=False)["best"].last() for file in sys.argv[1:]
    )
    print((head / base).reindex(base.index).dropna().to_string(float_format="%.2f"))


if __name__ == "__main__":
    main()

"""Compare two result files of bench/run.py: base and head, measured on the same machine.

python bench/compare.py base.csv head.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path


def read(path: Path) -> dict[tuple[str, str, str], float]:
    """Best seconds by (task, implementation, threads)."""
    with path.open(newline="") as file:
        return {
            (row["task"], row["implementation"], row["threads"]): float(row["best"])
            for row in csv.DictReader(file)
        }


def main() -> None:
    """Print head / base for every measurement that both files have."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    base, head = read(Path(sys.argv[1])), read(Path(sys.argv[2]))
    for key in base:
        if key in head:
            task, implementation, threads = key
            ratio = head[key] / base[key]
            print(f"{ratio:6.2f}  {task} | {implementation} | {threads} thread(s)")


if __name__ == "__main__":
    main()

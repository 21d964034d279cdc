"""Figures as the papers print them: a CSV file a table."""

from __future__ import annotations

import csv
from pathlib import Path

__all__ = ["figures"]


def figures(table: str) -> dict[str, dict[str, str]]:
    """Read what a table prints, by row and column; cells that it leaves empty are left out."""
    path = Path(__file__).with_name(f"{table}.csv")
    with path.open(newline="", encoding="utf-8") as file:
        _, *columns = next(lines := csv.reader(file))
        return {
            name: {column: cell for column, cell in zip(columns, cells, strict=True) if cell}
            for name, *cells in lines
        }

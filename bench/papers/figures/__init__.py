"""Figures that the papers print: a CSV file for each table.

gem: Tables 2 to 4 of Karampatziakis and Mineiro, "Discriminative Features via Generalized
Eigenvectors", ICML 2014. thesis: N. Parrish, "Supervised Dimensionality Reduction for Different
Learning Architectures", University of Washington, 2012: accuracies in percent and seconds, without
standard deviations. mmds: Wangni and Chen, "Nonlinear Feature Extraction with Max-Margin Data
Shifting", AAAI 2016.
"""

import csv
from functools import cache
from pathlib import Path


@cache
def figures(table):
    """Read a table by row and column, without empty cells."""
    path = Path(__file__).with_name(f"{table}.csv")
    with path.open(newline="", encoding="utf-8") as file:
        _, *columns = next(lines := csv.reader(file))
        return {
            name: {column: cell for column, cell in zip(columns, cells, strict=True) if cell}
            for name, *cells in lines
        }


TABLE_3_1 = figures("thesis-3.1")
TABLE_3_1_SECONDS = figures("thesis-3.1-seconds")
TABLE_3_3 = figures("thesis-3.3")
TABLE_3_4 = figures("thesis-3.4")
TABLE_3_5 = figures("thesis-3.5")

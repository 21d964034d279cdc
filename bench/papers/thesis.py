"""What the thesis prints of LDG and the methods that it is compared with, in percent and seconds.

N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", University
of Washington, 2012: Tables 3.1, 3.3, 3.4 and 3.5. It prints no spreads.
"""

from __future__ import annotations

from bench.papers.figures import figures

__all__ = ["TABLE_3_1", "TABLE_3_1_SECONDS", "TABLE_3_3", "TABLE_3_4", "TABLE_3_5"]

TABLE_3_1 = figures("thesis-3.1")
TABLE_3_1_SECONDS = figures("thesis-3.1-seconds")
TABLE_3_3 = figures("thesis-3.3")
TABLE_3_4 = figures("thesis-3.4")
TABLE_3_5 = figures("thesis-3.5")

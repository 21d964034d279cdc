"""The sets of chapter 5 of the thesis, and the figures of its tables."""

from __future__ import annotations

from dataclasses import dataclass

from bench.papers.figures import figures

__all__ = ["FIRST_STEP", "QUICK_SETS", "SECONDS", "SETS", "FirstStep"]

SETS = (
    "SyntheticControl",
    "ItalyPowerDemand",
    "MedicalImages",
    "TwoPatterns",
    "ChlorineConcentration",
    "Wafer",
)
QUICK_SETS = SETS[:3]


@dataclass(frozen=True)
class FirstStep:
    """Table 5.4: features of LDG, and milliseconds at t = 1 with all samples and with LDG."""

    features: int
    all_milliseconds: int
    ldg_milliseconds: int


FIRST_STEP = {
    name: FirstStep(*map(int, row.values())) for name, row in figures("thesis-5.4").items()
}

# Tables 5.2 and 5.3: seconds a test row at tau 0.9, for the first, third and fourth set above.
SECONDS = {
    method: tuple(map(float, row.values())) for method, row in figures("thesis-5.2-5.3").items()
}

"""The sets of chapter 5 of the thesis, and the figures of its tables."""

from __future__ import annotations

from dataclasses import dataclass

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
    "ChlorineConcentration": FirstStep(42, 76, 4),
    "ItalyPowerDemand": FirstStep(2, 2, 1),
    "MedicalImages": FirstStep(11, 18, 2),
    "SyntheticControl": FirstStep(7, 9, 1),
    "TwoPatterns": FirstStep(22, 31, 2),
    "Wafer": FirstStep(17, 55, 2),
}

# Tables 5.2 and 5.3: seconds a test row at tau 0.9, for the first, third and fourth set above.
SECONDS = {
    "local QDA, Chebyshev": (1.8, 27.1, 12.45),
    "local QDA, quadratic": (0.7, 2.7, 2.0),
    "local QDA, box": (0.4, 1.4, 1.0),
    "local QDA, quadratic, mixture": (0.9, 5.5, 3.4),
    "linear SVM, Chebyshev": (0.4, 1.9, 1.8),
    "linear SVM, quadratic": (0.3, 1.0, 0.5),
    "linear SVM, box": (0.3, 0.8, 0.3),
    "linear SVM, quadratic, mixture": (0.7, 2.7, 0.8),
}

"""What the thesis prints of LDG and the methods that it is compared with, in percent and seconds.

N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", University
of Washington, 2012: Tables 3.1, 3.3, 3.4 and 3.5. It prints no spreads.
"""

from __future__ import annotations

__all__ = ["TABLE_3_1", "TABLE_3_1_SECONDS", "TABLE_3_3", "TABLE_3_4", "TABLE_3_5"]

Figures = dict[str, dict[str, str]]

_METHODS_3_1 = ("LDG", "PCA", "FDA", "LFDA", "ITML", "NCA")
_PAIRS_3_1 = {
    "diabetes": "71.3 1 67.9 <1 72.7 <1 69.2 <1 69.7 40 70.7 135",
    "wine": "97.7 <1 95.8 <1 98.5 <1 98.5 <1 97.2 54 97.9 6",
    "german": "71.1 <1 68.9 <1 71.4 <1 71.9 <1 69.5 15 71.1 1015",
    "ringnorm": "86.9 9 85.8 5 71.9 1 85.8 6 80.6 23 85.7 9119",
    "dermatology": "89.2 <1 92.5 <1 91.5 <1 92.5 <1 93.4 139 95.5 381",
    "ionosphere": "86.2 <1 85.2 <1 83.2 <1 83.1 <1 84.3 10 89.1 222",
    "satimage": "90.1 10 90.1 5 86.6 3 88.3 6 88.0 232 - -",
    "isolet": "87.9 94 73.1 15 88.9 18 90.2 21 - - - -",
    "mnist": "89.1 55 87.5 13 76.2 10 32.7 34 - - - -",
    "arcene": "76.0 578 61.3 15 53.7 39 - - - - - -",
    "dexter": "84.0 4365 58.1 2 - - - - - - - -",
}

_METHODS_SMALL = (
    "LDG",
    "PCA",
    "PCA FDA",
    "Reg. FDA",
    "DLDA",
    "GDA",
    "PCA LFDA",
    "Reg. LFDA",
    "ITML",
)
_LINES_3_3 = {
    "Beef": "87.7 42.3 86.3 87 37.3 87.3 59.7 81.7 -",
    "Coffee": "99.6 58.2 100 100 61.4 100 100 100 99.6",
    "DiatomSizeReduction": "90.1 86.7 87.8 89.4 88.7 88.6 80.8 87 -",
    "ECGFiveDays": "93.6 51.3 94.8 94.8 77.1 94.8 94.8 92 93.8",
    "FaceFour": "81.7 67.5 82.2 82.3 77.6 83.1 65.9 80.9 -",
    "Fish": "74.2 64.5 65.3 83.1 70.2 62.6 35.7 78.9 -",
    "Haptics": "40.3 32 32.2 40.5 36 33 26.8 38.7 -",
    "Lightning2": "70.7 65.2 60.7 67 70 61 60.5 66.9 -",
    "MoteStrain": "85.3 74.7 82.2 84.6 84.6 80.9 82.3 84.3 83.3",
    "OSULeaf": "47.5 49.7 32.5 44 47.4 33.2 23.7 50.4 -",
    "SonyAIBORobotSurface1": "87.4 67.1 86.2 87.8 88.1 85.9 86.5 87.8 88.6",
    "SonyAIBORobotSurface2": "80.7 75.1 81.1 81.4 79.2 81.1 81.1 81.6 82.2",
    "Symbols": "73.4 73.5 71 74.4 59.9 58.3 55.7 70 -",
    "Trace": "75.2 71.3 73.9 74.9 76 63.4 68.2 78.8 76.4",
    "WordSynonyms": "58.7 58 20.9 54.7 40.5 5.3 7.1 59.3 56.3",
}
_LINES_3_4 = {
    "Beef": "87.7 43 86.3 87 37.3 87.3 59.7 81.7 -",
    "Coffee": "99.6 68.9 100 100 61.4 100 100 100 99.6",
    "DiatomSizeReduction": "90.1 88.7 87.8 89.4 88.7 88.6 80.8 87 -",
    "ECGFiveDays": "93.8 76.8 94.8 94.8 77.1 94.8 94.8 92.4 91.9",
    "FaceFour": "82.8 74.1 82.2 82.3 77.6 83.1 65.9 80.9 -",
    "Fish": "75.1 76.6 65.3 83.1 70.2 62.6 35.7 82.9 -",
    "Haptics": "40.1 37.2 32.2 40.5 36 33 26.7 41.4 -",
    "Lightning2": "72.1 74.3 60.7 67 70 61 60.5 69.5 -",
    "MoteStrain": "85.2 83 82.2 84.6 84.6 80.9 82.3 84.3 83.2",
    "OSULeaf": "51 54.8 32.5 44 47.4 33.2 23.7 53.4 -",
    "SonyAIBORobotSurface1": "90 86.4 86.2 87.8 88.1 85.9 86.5 87.8 87.4",
    "SonyAIBORobotSurface2": "81.2 78.4 81.1 81.4 79.2 81.1 81.1 81.6 81.2",
    "Symbols": "73.2 73.9 71 74.4 59.9 58.3 55.7 70 -",
    "Trace": "79.6 78.7 73.9 74.9 76 63.4 68.2 79.6 80.2",
    "WordSynonyms": "58.6 57.9 20.9 54.7 40.5 5.3 7.1 59.2 56.8",
}
_LINES_3_5 = {
    "Beef": "3.5 0.1 <0.1 1.3 0.4 0.4 0.5 1.3 -",
    "Coffee": "1.1 0.1 <0.1 0.9 0.1 0.1 0.2 0.9 346.5",
    "DiatomSizeReduction": "1.8 <0.1 <0.1 1.1 0.2 0.1 0.3 1.1 -",
    "ECGFiveDays": "0.3 <0.1 <0.1 0.8 <0.1 <0.1 0.1 0.8 45.2",
    "FaceFour": "1.8 0.1 <0.1 1.2 0.2 0.1 0.3 1.2 -",
    "Fish": "3.9 0.3 0.1 1.6 0.4 1.8 1.4 1.6 -",
    "Haptics": "31.0 0.6 0.2 6.2 3.0 11.9 4.6 6.2 -",
    "Lightning2": "7.7 0.3 0.1 2.1 0.7 1.4 1.2 2.1 -",
    "MoteStrain": "0.2 <0.1 <0.1 0.6 <0.1 <0.1 0.1 0.6 8.6",
    "OSULeaf": "2.0 0.2 0.1 0.9 0.2 1.2 1.0 0.9 -",
    "SonyAIBORobotSurface1": "0.2 <0.1 <0.1 0.6 <0.1 <0.1 0.1 0.6 7.3",
    "SonyAIBORobotSurface2": "0.2 <0.1 <0.1 0.6 <0.1 <0.1 <0.1 0.6 5.6",
    "Symbols": "2.4 0.1 <0.1 1.3 0.3 0.2 0.4 1.3 -",
    "Trace": "0.7 0.1 <0.1 0.7 0.1 0.1 0.5 0.7 1637.0",
    "WordSynonyms": "1.8 0.2 0.1 1.5 0.1 0.3 1.2 1.5 3358.2",
}


def _table(methods: tuple[str, ...], lines: dict[str, str], every: int = 1, at: int = 0) -> Figures:
    """Take every so-many-th figure of each line, and give those that there are their names."""
    return {
        name: {
            method: figure
            for method, figure in zip(methods, line.split()[at::every], strict=True)
            if figure != "-"
        }
        for name, line in lines.items()
    }


TABLE_3_1 = _table(_METHODS_3_1, _PAIRS_3_1, every=2)
TABLE_3_1_SECONDS = _table(_METHODS_3_1, _PAIRS_3_1, every=2, at=1)
TABLE_3_3 = _table(_METHODS_SMALL, _LINES_3_3)
TABLE_3_4 = _table(_METHODS_SMALL, _LINES_3_4)
TABLE_3_5 = _table(_METHODS_SMALL, _LINES_3_5)

"""Colours that several pictures share."""

__all__ = [
    *("ACCENT", "BAND", "CLASS_COLOURS", "COLOURS", "FILTER_COLOURS", "KNOWN", "MARKS", "MUTED"),
    "SPECTRUM_COLOURS",
]

ACCENT, MUTED = "#b2182b", "#9aa5b1"
FILTER_COLOURS = "RdBu_r"
SPECTRUM_COLOURS = "viridis"
KNOWN, BAND = "#1b7837", "#2166ac"
COLOURS = (ACCENT, BAND, KNOWN, "#e08214", "#542788", "#35978f", "#8c510a", "#c51b7d")

# Those of Okabe and Ito, which colour-blind readers can distinguish; lines have marks as well.
CLASS_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")

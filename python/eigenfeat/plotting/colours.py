"""Colours that several pictures share."""

__all__ = ["ACCENT", "BAND", "COLOURS", "FILTER_COLOURS", "KNOWN", "MUTED", "SPECTRUM_COLOURS"]

ACCENT, MUTED = "#b2182b", "#9aa5b1"
FILTER_COLOURS = "RdBu_r"
SPECTRUM_COLOURS = "viridis"
KNOWN, BAND = "#1b7837", "#2166ac"
COLOURS = (ACCENT, BAND, KNOWN, "#e08214", "#542788", "#35978f", "#8c510a", "#c51b7d")

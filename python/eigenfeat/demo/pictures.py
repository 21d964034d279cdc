"""Pictures of the demonstrations, in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_errors", "save_pictures"]


def draw_errors(errors: Mapping[str, list[float]], best: str) -> Figure:
    """Draw error rates of several methods: a bar for the mean and a circle for each split."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 0.6 * len(errors) + 1.3), dpi=110, layout="constrained")
    ax = figure.subplots()
    for place, (name, rates) in enumerate(reversed(list(errors.items()))):
        percent = 100 * np.asarray(rates)
        ax.barh(place, percent.mean(), 0.56, color="#b2182b" if name == best else "#9aa5b1")
        spread = np.linspace(-0.16, 0.16, len(percent)) if len(percent) > 1 else np.zeros(1)
        ax.plot(percent, place + spread, "o", ms=3.5, mfc="white", mec="black", mew=0.8)
        ax.text(percent.max(), place, f"  {percent.mean():.2f}%", va="center")
    ax.set_yticks(range(len(errors)), list(errors)[::-1])
    ax.set_xlim(0, 115 * max(map(max, errors.values())))
    ax.set_xlabel("test error in % (bars: mean, circles: single splits)")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def save_pictures(
    pictures: Mapping[str, tuple[Figure, str]], folder: Path
) -> list[tuple[Path, str]]:
    """Write figures to ``NAME.png``; return the files and the captions."""
    written = []
    for stem, (figure, caption) in pictures.items():
        path = folder / f"{stem}.png"
        figure.savefig(path)
        written.append((path, caption))
    return written

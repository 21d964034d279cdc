"""Figures 2 and 3 of the paper on max-margin data shifting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from bench.papers import mmds_data, mmds_settings
from bench.papers.mmds_shifting import Outcome, Shifter
from bench.papers.protocol import Context

__all__ = ["draw"]

CLASSES = (1, 3, 5, 8)  # of the digits whose embeddings are drawn
EMBEDDING_SCALE = 1.5


def draw(outcomes: Sequence[Outcome], folder: Path, output: Path, context: Context) -> list[Path]:
    """Draw what was measured; returns the pictures' paths."""
    from matplotlib.figure import Figure

    written = []
    if any(outcome.data == "Digits" for outcome in outcomes):
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        _embeddings(figure, folder, context)
        written.append(output / "mmds_embeddings.png")
        figure.savefig(written[-1], dpi=120)
    curves = [outcome for outcome in outcomes if outcome.curve]
    if curves:
        figure = Figure(figsize=(4 * len(curves), 3.5), layout="constrained")
        for axes, outcome in zip(np.ravel(figure.subplots(1, len(curves))), curves, strict=True):
            _curve(axes, outcome)
        written.append(output / "mmds_scales.png")
        figure.savefig(written[-1], dpi=120)
    return written


def _embeddings(figure: Any, folder: Path, context: Context) -> None:
    """Test digits in two principal components, of rows and of moved rows."""
    split = mmds_data.load("Digits", folder, quick=context.quick)
    train = split.train[np.isin(split.train.y, CLASSES)]
    test = split.test[np.isin(split.test.y, CLASSES)]
    shifter = Shifter(train, mmds_settings.CURVE_C, context.threads)
    titles = ("PCA", "PCA of moved rows")
    for axes, scale, title in zip(
        figure.subplots(1, 2), (0.0, EMBEDDING_SCALE), titles, strict=True
    ):
        points = PCA(2, random_state=0).fit(shifter.moved(scale)).transform(test.X)
        for label in CLASSES:
            chosen = points[test.y == label]
            axes.scatter(chosen[:, 0], chosen[:, 1], s=6, label=str(label))
        axes.set(title=title, xticks=[], yticks=[])
    axes.legend(title="digit", loc="best", markerscale=2)


def _curve(axes: Any, outcome: Outcome) -> None:
    scales, accuracy, error = np.array(outcome.curve).T
    axes.plot(scales, accuracy, color="tab:red", marker="o", markersize=3)
    axes.set(title=f"{outcome.extractor}, {outcome.data}", xlabel="move relative to the rows")
    axes.set_ylabel("accuracy, %", color="tab:red")
    other = axes.twinx()
    other.plot(scales, error, color="tab:blue", marker="s", markersize=3)
    other.set_ylabel("reconstruction error", color="tab:blue")

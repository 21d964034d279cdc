"""Figures 5.6 to 5.11: reliability and accuracy against the average time of decision, by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.papers.early_methods import METHODS, Trial
from eigenfeat.incomplete import EarlyCurve

__all__ = ["draw"]

# What goes on one picture: the figures of the thesis that it stands for, the methods, and what is
# drawn upwards.
PICTURES = (
    (
        "sets",
        ("reliability",),
        (
            "local QDA, quadratic",
            "local QDA, box",
            "local QDA, Chebyshev",
            "linear SVM, quadratic",
            "linear SVM, box",
            "linear SVM, Chebyshev",
        ),
    ),
    (
        "completions",
        ("reliability",),
        (
            "local QDA, quadratic",
            "local QDA, quadratic, mixture",
            "linear SVM, quadratic",
            "linear SVM, quadratic, mixture",
        ),
    ),
    (
        "methods",
        ("reliability", "accuracy"),
        (
            "local QDA, quadratic",
            "local QDA on LDG, quadratic",
            "LDA, pairwise",
            "ECTS",
            "fixed time, local QDA",
            "fixed time, 1-NN",
        ),
    ),
)
WITH_TAU = {method.name for method in METHODS if method.knob == "tau"}


def draw(trials: Sequence[Trial], lengths: Mapping[str, int], folder: Path) -> list[Path]:
    """Write one PNG for every set and comparison that has methods to compare; return their paths.

    Parameters
    ----------
    trials : sequence of Trial
    lengths : mapping of set to samples of a series
    folder : Path
    """
    from eigenfeat.plotting.early import plot_early_curves

    written = []
    for problem, d in lengths.items():
        done = {t.method: t for t in trials if t.problem == problem and t.points}
        for name, figures, methods in PICTURES:
            shown = [method for method in methods if method in done]
            if len(shown) < 2:
                continue
            for figure in figures:
                curves = {method: _curve(done[method], figure) for method in shown}
                axes = plot_early_curves(curves, figure, n_samples=d, named=1)
                axes.set_title(problem)
                stem = f"early-{problem}-{name}" + ("-accuracy" if figure == "accuracy" else "")
                path = folder / f"{stem}.png"
                axes.get_figure(root=True).savefig(path)  # type: ignore[union-attr]
                written.append(path)
    return written


def _curve(trial: Trial, figure: str) -> EarlyCurve | tuple[Any, Any]:
    columns = {
        name: np.array([getattr(point, name) for point in trial.points])
        for name in ("reliability", "accuracy", "mean_time", "earliness", "harmonic_mean")
    }
    if trial.method not in WITH_TAU:
        return columns["mean_time"], columns[figure]
    value = np.array([point.value for point in trial.points])
    return EarlyCurve(value, complete_accuracy=float("nan"), **columns)

"""Fit of `GEM` on rows of huge dimension."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from eigenfeat._base.lazy import Lazy
from eigenfeat.expansion.features import ExpandedRows
from eigenfeat.expansion.layers import Directions, row_blocks
from eigenfeat.expansion.waves import check_powers
from eigenfeat.gem.wide import solve_wide
from eigenfeat.pencils.solution import Settings

__all__ = ["expand_wide", "fit_wide", "refuse_moments"]


def refuse_moments(solver: str) -> None:
    """Raise ValueError if moments are to be solved by what needs rows."""
    if solver == "randomized":
        raise ValueError(
            "solver: expected one that works on moments for partial_fit and fit_moments, "
            "got 'randomized', which needs all rows in fit"
        )


def fit_wide(gem: Any, X: Any, y: NDArray[Any], weight: Any) -> None:
    """Solve, and give a `GEM` what was found in place of moments and of the promise to solve."""
    if gem.include_input:
        raise ValueError("include_input: expected False with solver='randomized', got True")
    started = time.perf_counter()
    seed = int(check_random_state(gem.random_state).randint(2**31 - 1))
    found = solve_wide(X, y, weight, Settings.of(gem, seed), gem._say)
    gem.__dict__.pop("moments_", None)
    gem._seed, gem._trial = seed, None
    gem.classes_ = np.unique(y)
    gem.residuals_ = found.residuals
    gem._solution = Lazy(lambda: found)
    gem._solution()
    worst = found.residuals.max(initial=0.0)
    gem._say(f"{found.steps} vectors solved for, largest residual {worst:.1e}", started)


def expand_wide(gem: Any, found: Directions, X: Any) -> NDArray[Any]:
    """Features of rows: their projections, expanded; see `GEM.transform`."""
    offset = found.offset if found.offset.any() else None
    projections = found.directions.project(X, offset, gem.n_threads)
    if gem.expansion == "none":
        return projections
    none = np.empty((0, projections.shape[1]), dtype=projections.dtype)
    options = {"wave": gem.expansion, "powers": check_powers(gem.powers)}
    return np.concatenate(
        [
            ExpandedRows(None, none, projections=projections[rows], **options).toarray()
            for rows in row_blocks(len(projections), projections.shape[1])
        ]
    )

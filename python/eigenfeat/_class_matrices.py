"""The matrices of class pair problems, made from class moments."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._validation import check_memory, show
from .moments import ClassMoments

__all__ = ["ClassMatrices", "Recipe", "SingularDenominatorError"]

_Array = npt.NDArray[np.float64]

_RIDGES = [float(f"{digit}e{power}") for power in range(-15, 7) for digit in (1, 2, 5)]


class SingularDenominatorError(np.linalg.LinAlgError, ValueError):
    """A class's matrix is no denominator; says which class's, and which ridge would do."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """How matrices are made; validated arguments of `pair_directions`."""

    denominator: str  # "second_moment" or "covariance"
    ridge: float
    constant: bool
    scale: _Array | None  # (d,)
    centre: _Array | None = None  # (d,) origin of the rows, with the constant; by default 0


@dataclass(frozen=True, eq=False)
class ClassMatrices:
    """Numerators and denominators of classes, D = d or, with the constant, d + 1.

    ``units`` (k,) is what ridge is a multiple of. The shifts are what the core still has to add to
    the whole diagonal of the denominators; with the constant, ridges are in the matrices already.
    """

    labels: list[Any]
    numerators: list[_Array]
    denominators: list[_Array]
    shifts: _Array
    units: _Array
    recipe: Recipe

    @classmethod
    def of(cls, moments: ClassMoments, labels: list[Any], recipe: Recipe) -> ClassMatrices:
        """Form the matrices of all `labels`."""
        distinct = recipe.constant or recipe.denominator == "covariance"
        d = moments.n_features_in_ + recipe.constant
        check_memory("pair_directions", len(labels) * (1 + distinct), d)
        numerators = [_numerator(moments, c, recipe) for c in labels]
        units = _ridge_units(moments, labels, numerators, recipe)
        shifts = recipe.ridge * units
        if not distinct:
            return cls(labels, numerators, numerators, shifts, units, recipe)
        denominators = [_denominator(moments, c, recipe) for c in labels]
        if recipe.constant:
            for matrix, shift in zip(denominators, shifts, strict=True):
                _add_ridge(matrix, shift, d - 1)
            shifts = np.zeros_like(shifts)
        return cls(labels, numerators, denominators, shifts, units, recipe)

    def singular(self, moments: ClassMoments, failed: list[int]) -> SingularDenominatorError:
        """The error for denominators (indices) that are singular with the ridge there is."""
        names = show([self.labels[j] for j in failed], 200)
        found = f"denominator of class {names[1:-1]} is singular to working precision"
        if not self.units.max() > 0:
            return SingularDenominatorError(f"{found}: all rows of all classes are zero")
        d = moments.n_features_in_
        ridges = [
            _smallest_ridge(_denominator(moments, self.labels[j], self.recipe), self.units[j], d)
            for j in failed
        ]
        known = [ridge for ridge in ridges if ridge is not None]
        if len(known) < len(ridges):
            return SingularDenominatorError(f"{found}, with any ridge up to {_RIDGES[-1]:g}")
        return SingularDenominatorError(
            f"{found} with ridge={self.recipe.ridge:g}; ridge={max(known):g} would do"
        )


def _scaled(matrix: _Array, scale: _Array | None) -> _Array:
    return matrix if scale is None else matrix / scale / scale[:, None]


def _bordered(matrix: _Array, border: _Array | float) -> _Array:
    """[[matrix, border], [border^T, 1]]."""
    d = len(matrix)
    out = np.empty((d + 1, d + 1))
    out[:d, :d] = matrix
    out[:d, d] = out[d, :d] = border
    out[d, d] = 1.0
    return out


def _with_mean(moments: ClassMoments, label: Any, recipe: Recipe) -> _Array:
    mean = moments.mean(label)
    if recipe.centre is None:
        second = moments.second_moment(label)
    else:
        mean = mean - recipe.centre
        second = moments.covariance(label) + np.outer(mean, mean)
    border = mean if recipe.scale is None else mean / recipe.scale
    return _bordered(_scaled(second, recipe.scale), border)


def _numerator(moments: ClassMoments, label: Any, recipe: Recipe) -> _Array:
    if recipe.constant:
        return _with_mean(moments, label, recipe)
    return _scaled(moments.second_moment(label), recipe.scale)


def _denominator(moments: ClassMoments, label: Any, recipe: Recipe) -> _Array:
    """Without its ridge."""
    if recipe.denominator == "second_moment":
        return _numerator(moments, label, recipe)
    covariance = _scaled(moments.covariance(label), recipe.scale)
    return _bordered(covariance, 0.0) if recipe.constant else covariance


def _add_ridge(matrix: _Array, shift: float, d: int) -> None:
    """In place, on the d columns of features."""
    matrix[np.arange(d), np.arange(d)] += shift


def _ridge_units(
    moments: ClassMoments, labels: list[Any], numerators: list[_Array], recipe: Recipe
) -> _Array:
    """Trace / d of each denominator over the d features; the mean over classes where that is 0."""
    d = moments.n_features_in_
    second = np.array([np.trace(matrix[:d, :d]) for matrix in numerators])
    traces = second
    if recipe.denominator == "covariance":
        traces = np.array([_variance(moments, c, recipe) for c in labels])
        # What rounding leaves of equal rows is no variance.
        traces[traces <= (100 * np.finfo(np.float64).eps) ** 2 * second] = 0.0
    return np.where(traces > 0, traces, traces.mean()) / d


def _variance(moments: ClassMoments, label: Any, recipe: Recipe) -> float:
    variances = np.diag(moments.covariance(label))
    return float(np.sum(variances if recipe.scale is None else variances / recipe.scale**2))


def _smallest_ridge(matrix: _Array, unit: float, d: int) -> float | None:
    """The first of 1, 2, 5, 10, ... times a power of ten that makes the core accept `matrix`.

    Not below D eps: a smaller ridge drowns in the rounding of a typical entry.
    """
    low, high = bisect_left(_RIDGES, len(matrix) * np.finfo(np.float64).eps), len(_RIDGES)
    while low < high:
        middle = (low + high) // 2
        if _is_definite(_regularised(matrix, _RIDGES[middle] * unit, d)):
            high = middle
        else:
            low = middle + 1
    accepted = (r for r in _RIDGES[low:] if _core_accepts(_regularised(matrix, r * unit, d)))
    return next(accepted, None)


def _regularised(matrix: _Array, shift: float, d: int) -> _Array:
    out = matrix.copy()
    _add_ridge(out, shift, d)
    return out


def _is_definite(matrix: _Array) -> bool:
    """The core's own criterion: no squared pivot below D eps times its diagonal entry."""
    try:
        pivots = np.diag(np.linalg.cholesky(matrix)) ** 2
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(pivots > len(matrix) * np.finfo(np.float64).eps * np.diag(matrix)))


def _core_accepts(matrix: _Array) -> bool:
    item = np.zeros((1, 2), dtype=np.int64)
    shifts = np.zeros(1)
    solution = _core.solve_pencils([matrix], [matrix], shifts, item, 1, -np.inf, "auto", 0.0, 0)
    return int(solution[-1][0]) != 1

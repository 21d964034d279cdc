"""The matrices of problems between classes and groups of classes, made from class moments."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.validation import show
from eigenfeat.moments.class_moments import ClassMoments, varying
from eigenfeat.pencils.sampling_noise import MARGIN, noise_edge, quiet_ridge

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import ArrayLike


__all__ = [
    "Batch",
    "ClassMatrices",
    "Contraction",
    "PencilOptions",
    "SingularDenominatorError",
    "Span",
    "Unions",
    "span_of",
]

_Array = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)
_RIDGES = [float(f"{digit}e{power}") for power in range(-15, 7) for digit in (1, 2, 5)]
_BLOCK = 64  # rows at a time, so that temporaries stay small


class SingularDenominatorError(np.linalg.LinAlgError, ValueError):
    """A class's matrix is singular as a denominator; the message names the class and a ridge."""


@dataclass(frozen=True, eq=False)
class Contraction:
    """Weights of classes: `weights` (n,) for those at `indices` (n,), `others` for all others."""

    indices: npt.NDArray[np.int64]
    weights: _Array
    others: float = 0.0

    def dense(self, n_classes: int) -> _Array:
        """All weights, shape (n_classes,)."""
        if self.indices.size and self.indices.max() >= n_classes:
            raise ValueError(
                f"n_classes: expected more than the largest index, {self.indices.max()}, got "
                f"{n_classes}"
            )
        out = np.full(n_classes, self.others)
        out[self.indices] = self.weights
        return out


@dataclass(frozen=True, eq=False)
class PencilOptions:
    """Options of the matrices; validated arguments of `pair_directions`."""

    denominator: str  # "second_moment" or "covariance"
    ridge: float | None  # None: each denominator's own, by `quiet_ridge`
    constant: bool  # never with "covariance"
    scale: _Array | None  # (d,)
    centre: _Array | None = None  # (d,) origin of the rows, with the constant; by default 0
    noise: bool = False  # whether `noise_edges` and `spectrum` will be asked for
    columns: int | None = None  # of the samples, where the matrices are those of their span


@dataclass(frozen=True, eq=False)
class Batch:
    """What one call of the core takes: matrices, shifts, and items that refer to them."""

    numerators: list[_Array]
    denominators: list[_Array]
    shifts: _Array
    items: _Rows


class Unions:
    """Weight, mean and covariance of the rows of several classes together, each weighted.

    Covariances of parts are merged as Chan, Golub and LeVeque (1983) do: only positive terms are
    added. A contraction that leaves out some of k classes adds up O(log k) halves of halves of all
    classes, of which those that the contraction before it used as well are kept: going through
    all "rests" in order takes O(k log k) additions, and none loses digits to a subtraction.
    """

    def __init__(self, moments: ClassMoments, labels: Sequence[Hashable]) -> None:
        self._moments, self._labels = moments, labels
        self.weights = np.array([moments.weight(c) for c in labels])
        self.means = np.array([moments.mean(c) for c in labels])
        self._halves: dict[tuple[int, int], _Array] = {}

    def of(self, contraction: Contraction) -> tuple[_Array, _Array]:
        """Mean (d,), not to be written to, and covariance (d, d) of a contraction."""
        chosen, factors = contraction.indices, contraction.weights
        if not contraction.others:
            return self._union(chosen, factors)
        spans = _spans(0, len(self._labels), chosen)
        selected = self._halves = {
            span: self._halves[span] for span in spans if span in self._halves
        }
        for span in spans:
            if span not in selected:
                selected[span] = self._union(np.arange(*span))[1]
        some = np.flatnonzero(factors)
        ranges = [np.arange(*span) for span in selected]
        weights = [contraction.others * self.weights[r].sum() for r in ranges]
        weights += (factors[some] * self.weights[chosen[some]]).tolist()
        means = [self._mean(r) for r in ranges] + [self.means[c] for c in chosen[some]]
        covariances = [*selected.values(), *(self._covariance(c) for c in chosen[some])]
        return _merged(np.array(weights), np.array(means), covariances)

    def mean(self, contraction: Contraction) -> _Array:
        """Mean (d,) of a contraction, to rounding that of `of`."""
        if len(contraction.indices) == 1 and not contraction.others:
            own: _Array = self.means[contraction.indices[0]]
            return own
        weights = contraction.dense(len(self.weights)) * self.weights
        mean: _Array = weights @ self.means / weights.sum()
        return mean

    def _union(self, members: npt.NDArray[Any], factors: Any = 1.0) -> tuple[_Array, _Array]:
        if len(members) == 1:
            return self.means[members[0]], self._covariance(members[0])
        weights = factors * self.weights[members]
        return _merged(weights, self.means[members], (self._covariance(c) for c in members))

    def _mean(self, members: npt.NDArray[Any]) -> _Array:
        weights = self.weights[members]
        mean: _Array = weights @ self.means[members] / weights.sum()
        return mean

    def _covariance(self, index: Any) -> _Array:
        return self._moments.covariance(self._labels[index])


def _merged(weights: _Array, means: _Array, covariances: Iterable[_Array]) -> tuple[_Array, _Array]:
    """Mean and covariance of parts together; their covariances within, and that of their means."""
    shares = weights / weights.sum()
    mean = shares @ means
    deviations = means - mean
    deviations[np.abs(deviations) <= 4 * _EPS * np.abs(means)] = 0.0  # that is rounding
    deviations *= np.sqrt(shares)[:, None]
    total: _Array = deviations.T @ deviations
    scaled = np.empty_like(total)
    for share, covariance in zip(shares, covariances, strict=True):
        np.multiply(covariance, share, out=scaled)
        total += scaled
    return mean, total


def _spans(low: int, high: int, without: _Rows) -> list[tuple[int, int]]:
    """Halves of halves of range(low, high) that make up all but a few of it."""
    if not ((without >= low) & (without < high)).any():
        return [(low, high)]
    if high - low == 1:
        return []
    middle = (low + high) // 2
    return _spans(low, middle, without) + _spans(middle, high, without)


class ClassMatrices:
    """Numerators and denominators of groups of classes, D = d or, with the constant, d + 1.

    Where both are second moments they are the same matrices: the ridge is left to the core, which
    adds it to the diagonal's first d entries. Over a covariance, which is a second moment about the
    mean of the group below, so is the numerator: each problem has one of its own. ``units`` (G,)
    is what ridge is a multiple of, for the denominators that were formed, and ``ridges`` (G,) that
    multiple.
    """

    def __init__(self, unions: Unions, groups: list[Contraction], options: PencilOptions) -> None:
        self._unions, self._groups, self._options = unions, groups, options
        self._d = unions.means.shape[1]
        self._columns = self._d if options.columns is None else options.columns
        self._mean_unit: float | None = None
        self.units = np.zeros(len(groups))
        self.ridges = np.full(len(groups), np.nan if options.ridge is None else options.ridge)
        self._spectra: dict[int, _Array] = {}

    @property
    def n_features(self) -> int:
        """d, columns of the rows."""
        return self._d

    @property
    def order(self) -> int:
        """D, rows of the matrices."""
        return self._d + self._options.constant

    def batch(self, items: _Rows) -> Batch:
        """Form all matrices that `items` (n, 2), numerators and denominators, need."""
        if self._options.denominator == "covariance":
            return self._about_means_below(items)
        below = set(items[:, 1].tolist())
        formed = {}
        for group in np.unique(items).tolist():
            mean, covariance = self._union(group)
            unit = self._unit(mean, covariance) if group in below else 0.0
            formed[group] = _formed(covariance, mean, self._options, overwrite=True)
            if group in below:
                self._settle(group, formed[group], unit)
        columns = [np.unique(items[:, side], return_inverse=True) for side in (0, 1)]
        return Batch(
            [formed[g] for g in columns[0][0].tolist()],
            [formed[g] for g in columns[1][0].tolist()],
            self._shifts(columns[1][0]),
            np.column_stack([inverse for _, inverse in columns]).astype(np.int64),
        )

    def _about_means_below(self, items: _Rows) -> Batch:
        """Covariances, and over each of them the numerators' second moments about its mean."""
        pairs, of_item = np.unique(items, axis=0, return_inverse=True)
        below, lower_of = np.unique(items[:, 1], return_inverse=True)
        means = {group: self.mean(group) for group in below.tolist()}
        lower: dict[int, _Array] = {}
        upper: dict[tuple[int, int], _Array] = {}
        for group in np.unique(items).tolist():
            mean, covariance = self._union(group)
            for other in pairs[pairs[:, 0] == group, 1].tolist():
                upper[group, other] = _formed(covariance, mean - means[other], self._options)
            if group in means:
                lower[group] = _formed(covariance, None, self._options)
                self._settle(group, lower[group], self._unit(mean, covariance))
        return Batch(
            [upper[i, j] for i, j in pairs.tolist()],
            [lower[group] for group in below.tolist()],
            self._shifts(below),
            np.column_stack([of_item.reshape(-1), lower_of]).astype(np.int64),
        )

    def mean(self, group: int) -> _Array:
        """Mean (d,) of a group's rows, about the origin of these."""
        return self._unions.mean(self._groups[group])

    def _union(self, group: int) -> tuple[_Array, _Array]:
        """Mean about the origin, and covariance."""
        mean, covariance = self._unions.of(self._groups[group])
        centre = self._options.centre
        return mean if centre is None else mean - centre, covariance

    def _shifts(self, groups: _Rows) -> _Array:
        shifts = self.ridges[groups] * self.units[groups]
        if not self._options.constant:
            return shifts
        out = np.zeros((len(groups), self.order))
        out[:, : self._d] = shifts[:, None]
        return out

    def rows(self, group: int) -> float:
        """How many rows of weight 1 a group's mean squares are as good as (Kish)."""
        shares = self._groups[group].dense(len(self._unions.weights))
        weight = float(shares @ self._unions.weights)
        return weight * weight / float(shares**2 @ self._unions.weights)

    def spectrum(self, group: int) -> _Array:
        """Eigenvalues (d,) of a denominator without its ridge, ascending."""
        return self._spectra[group]

    def noise_edges(self, items: _Rows) -> _Array:
        """Which eigenvalues (n,) of these problems noise alone would hardly reach."""
        edges: dict[tuple[int, float], float] = {}
        out = np.empty(len(items))
        for row, (above, below) in enumerate(items.tolist()):
            key = below, self.rows(above)
            if key not in edges:
                ridge = self.ridges[below] * self.units[below]
                known = self._spectra[below], ridge, self.rows(below), key[1]
                edges[key] = MARGIN * noise_edge(*known)
            out[row] = edges[key]
        return out

    def _settle(self, group: int, matrix: _Array, unit: float) -> None:
        """Unit and ridge of a denominator and, where noise is asked for, its spectrum."""
        self.units[group] = unit
        if self._options.ridge is not None and not self._options.noise:
            return
        values = np.linalg.eigvalsh(matrix[: self._d, : self._d])
        beyond = np.zeros(self._columns - self._d)  # of the span
        self._spectra[group] = np.concatenate([beyond, np.maximum(values, 0.0)])
        if self._options.ridge is None:
            self.ridges[group] = quiet_ridge(self._spectra[group], self.rows(group))

    def _unit(self, mean: _Array, covariance: _Array) -> float:
        """Trace / d of a denominator over the d columns; the mean over classes where that is 0."""
        trace = self._trace(mean, covariance)
        if trace > 0:
            return trace / self._columns
        if self._mean_unit is None:
            count = len(self._unions.weights)
            alone = [Contraction(np.array([c]), np.ones(1)) for c in range(count)]
            centre = 0.0 if self._options.centre is None else self._options.centre
            parts = (self._unions.of(c) for c in alone)
            traces = [self._trace(mean - centre, covariance) for mean, covariance in parts]
            self._mean_unit = float(np.mean(traces)) / self._columns
        return self._mean_unit

    def _trace(self, mean: _Array, covariance: _Array) -> float:
        scale = 1.0 if self._options.scale is None else self._options.scale
        variance = float(np.sum(np.diag(covariance) / scale / scale))
        second = variance + float(np.sum((mean / scale) ** 2))
        if self._options.denominator == "second_moment":
            return second
        # What rounding leaves of equal rows is no variance.
        return variance if variance > (100 * _EPS) ** 2 * second else 0.0

    def singular(
        self, failed: list[int], what: str, names: Sequence[Hashable]
    ) -> SingularDenominatorError:
        """The error for groups whose denominators are singular with the ridge there is."""
        result = f"denominator of {what} {show(names, 200)[1:-1]} is singular to working precision"
        if not self.units.max() > 0:
            return SingularDenominatorError(f"{result}: all samples of all classes are zero")
        ridges = [self._ridge_that_would_do(group) for group in failed]
        known = [ridge for ridge in ridges if ridge is not None]
        if len(known) < len(ridges):
            return SingularDenominatorError(f"{result}, with any ridge up to {_RIDGES[-1]:g}")
        return SingularDenominatorError(
            f"{result} with ridge={self.ridges[failed[0]]:g}; ridge={max(known):g} would do"
        )

    def _ridge_that_would_do(self, group: int) -> float | None:
        mean, covariance = self._union(group)
        second = self._options.denominator == "second_moment"
        matrix = _formed(covariance, mean if second else None, self._options)
        return _smallest_ridge(matrix, self.units[group], self._d)


def _formed(
    covariance: _Array, mean: _Array | None, options: PencilOptions, *, overwrite: bool = False
) -> _Array:
    """The (D, D) matrix: covariance + mean mean^T over the scales, and the constant's border.

    With ``overwrite`` the covariance becomes the matrix where that needs no border.
    """
    d = len(covariance)
    in_place = overwrite and not options.constant
    out = covariance if in_place else np.empty((d + options.constant, d + options.constant))
    for first in range(0, d, _BLOCK):
        rows = slice(first, min(first + _BLOCK, d))
        block = out[rows, :d]
        if not in_place:
            block[:] = covariance[rows]
        if mean is not None:
            block += mean[rows, None] * mean
        if options.scale is not None:
            block /= options.scale[rows, None] * options.scale
    if options.constant:
        scale = 1.0 if options.scale is None else options.scale
        out[:d, d] = out[d, :d] = 0.0 if mean is None else mean / scale
        out[d, d] = 1.0
    return out


def _smallest_ridge(matrix: _Array, unit: float, d: int) -> float | None:
    """The first of 1, 2, 5, 10, ... times a power of ten that makes the core accept `matrix`.

    Not below D eps: a smaller ridge drowns in the rounding of a typical entry.
    """
    low, high = bisect_left(_RIDGES, len(matrix) * _EPS), len(_RIDGES)
    shifts = np.zeros(len(matrix))
    while low < high:
        middle = (low + high) // 2
        shifts[:d] = _RIDGES[middle] * unit
        if core.is_positive_definite(matrix, shifts, 0):
            high = middle
        else:
            low = middle + 1
    return _RIDGES[low] if low < len(_RIDGES) else None


# ---- few samples of many columns, in the span of the samples -------------------------------------


@dataclass(frozen=True, eq=False)
class Span:
    r"""Coordinates in which all scaled samples are written.

    Let Z (n, d) be samples, less an origin and divided by column scales, n < d, and :math:`Z^T
    = Q R` with orthonormal columns of Q (d, r), r = n. All second moments and covariances of
    the samples about points of their span are :math:`Q S Q^T`, where S (r, r) is that of the
    coordinates :math:`R^T`, and with a ridge :math:`B = Q (S_j + \rho I) Q^T + \rho (I - Q
    Q^T)`. On the complement of the span, the numerator vanishes and the denominator is
    :math:`\rho I`. Hence the eigenpairs with :math:`\lambda \neq 0` of

    .. math::

        Q S_i Q^T v = \lambda B v \quad \text{are} \quad
        v = Q u, \quad S_i u = \lambda (S_j + \rho I) u,

    with the same scale, as :math:`v^T B v = u^T (S_j + \rho I) u`. Directions are the same to
    rounding as those of the d x d matrices. A ridge that is a multiple of a mean eigenvalue,
    trace / d, is one of trace / r with the multiple r / d times as large. Cost: 4 n^2 d
    operations and 8 n d bytes.

    Attributes
    ----------
    moments : ClassMoments
        Moments (r columns) of the coordinates ``((x - origin) / scale) @ basis``.
    basis : (d, r) array
        Orthonormal columns.
    origin, scale : (d,) arrays
    """

    moments: ClassMoments
    basis: _Array
    origin: _Array
    scale: _Array

    @property
    def share(self) -> float:
        """Factor r / d, by which multiples of mean eigenvalues change."""
        return self.basis.shape[1] / self.basis.shape[0]

    def mapped(
        self, vectors: _Array, offset: _Array | None, constants: _Array | None = None
    ) -> tuple[_Array, _Array | None]:
        """Directions (d, F) and offsets (F,), in the units of the samples, of those here (r, F).

        A direction's entry of largest magnitude, in the scaled columns, is positive; `constants`
        (F,) are entries beside those of the columns.
        """
        scaled = self.basis @ vectors
        entries = scaled if constants is None else np.vstack([scaled, constants])
        top = np.argmax(np.abs(entries), axis=0)
        signs = np.where(entries[top, np.arange(entries.shape[1])] < 0, -1.0, 1.0)
        directions = scaled * signs / self.scale[:, None]
        if offset is None:
            return directions, None
        return directions, offset * signs - self.origin @ directions


def span_of(moments: ClassMoments, scale: ArrayLike | None, *, about_mean: bool) -> Span | None:
    """The span of samples that are few, over column scales (d,), or None; see `few_samples`.

    With `about_mean` only differences of samples matter, and the origin is their mean, else zero.
    """
    few = moments.few_samples()
    if few is None:
        return None
    from scipy.linalg import qr  # moments alone need no SciPy

    X, y, weights = few
    divisors = np.ones(X.shape[1]) if scale is None else np.asarray(scale, dtype=np.float64)
    shares = weights / weights.sum()
    origin = X[0] + shares @ (X - X[0]) if about_mean else np.zeros(X.shape[1])
    apart = X - origin
    if about_mean:
        apart[:, varying(shares @ apart**2, origin, len(X)) == 0] = 0.0
    with one_blas_thread():  # many short steps
        scaled = (apart / divisors).T
        basis, coordinates = qr(scaled, mode="economic", overwrite_a=True, check_finite=False)
    reduced = ClassMoments(moments.classes_).update(coordinates.T, y, weights)
    return Span(reduced, basis, origin, divisors)

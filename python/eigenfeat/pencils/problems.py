"""The eigenproblems of class pairs: options, choice of the pairs, and matrices from moments.

The directions of a pair (numerator, denominator) have large projections of the numerator's samples
and small ones of the denominator's. Each kind of pairs contains every class at least once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.labels import LabelTable, UnknownClassError
from eigenfeat._base.validation import (
    Generator,
    RealArray,
    check_flag,
    check_number,
    check_vector,
    check_whole,
    random_generator,
    show,
    show_items,
)
from eigenfeat.moments.class_moments import ClassMoments, pooled_mean
from eigenfeat.pencils.confusion import CONFUSION_RIDGE, confusion_pairs
from eigenfeat.pencils.contrasts import (
    KINDS,
    Contraction,
    Contrasts,
    class_tree,
    one_vs_rest,
    random_groups,
    without_empty_classes,
)
from eigenfeat.pencils.sampling_noise import MARGIN, auto_ridge, noise_edge
from eigenfeat.pencils.span import Span

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from eigenfeat._base.types import Labels, Pairs, Seed


__all__ = [
    "DEFAULT_RIDGE",
    "DEFAULT_RIDGE_WITHOUT_CONSTANT",
    "MAX_CLASSES_ALL",
    "SOLVERS",
    "Batch",
    "ClassMatrices",
    "PencilOptions",
    "Problems",
    "SingularDenominatorError",
    "Unions",
    "check_solver",
    "check_threshold",
    "class_pairs",
    "directions_per_pair",
    "matrices_of",
]

_Array = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.int64]
_Pairs = npt.NDArray[np.int64]  # (P, 2)

_EPS = float(np.finfo(np.float64).eps)
_RIDGES = [float(f"{digit}e{power}") for power in range(-15, 7) for digit in (1, 2, 5)]
_BLOCK_ROWS = 64  # matrix rows formed at a time, to keep temporaries small


DEFAULT_RIDGE, DEFAULT_RIDGE_WITHOUT_CONSTANT = 0.2, 0.5  # of `GEM`
SOLVERS = ("auto", "full", "subset", "tridiagonal", "krylov")
_MAX_DIRECTIONS, _MIN_DIRECTIONS = 10, 3  # per pair, with n_directions="auto"
_TOTAL_DIRECTIONS = 3000  # of all pairs, with n_directions="auto"
_MAX_PLACEMENTS = 1000  # random placements of labels on the corners of a cube
_COUNTED = ("confusion", "random_groups")  # kinds that take a number of pairs
MAX_CLASSES_ALL = 50  # for "auto" to mean all pairs


# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PencilOptions:
    """How the pencils of class pairs are chosen, formed and solved; see `pair_directions`.

    In the options of an estimator, `scale` is a word, and `ridge` and `constant` may be left open;
    in the options to solve pencils, `scale` has the column scales.
    """

    pairs: Pairs | Contrasts = "all"
    ridge: float | str | None = 0.1
    n_directions: int | str = 10
    threshold: float | str | None = None
    denominator: str = "second_moment"
    constant: bool | str = False
    scale: str | ArrayLike | None = None
    solver: str = "auto"
    random_state: Seed = None
    n_threads: int | None = None

    @classmethod
    def of(cls, estimator: BaseEstimator, seed: int) -> PencilOptions:
        """The parameters of an estimator, with a seed drawn from its `random_state`."""
        given = estimator.get_params(deep=False)
        names = given.keys() & cls.__dataclass_fields__.keys()
        return cls(**{name: given[name] for name in names} | {"random_state": seed})

    @cached_property
    def about_mean(self) -> bool:
        """Whether both matrices of a pencil are about the denominator's mean."""
        return self.denominator == "covariance"

    @cached_property
    def bordered(self) -> bool:
        """Whether matrices have a row and a column of the constant."""
        return bool(self.constant) and not self.about_mean

    @cached_property
    def noise_threshold(self) -> bool:
        """Whether the sampling noise of each pencil decides the threshold."""
        return self.threshold == "auto"

    def checked(self, n_features: int) -> PencilOptions:
        """Return checked options; ValueError for an invalid option. Pairs are not checked."""
        if not isinstance(self.denominator, str) or self.denominator not in (
            "second_moment",
            "covariance",
        ):
            raise ValueError(
                "denominator: expected 'second_moment' or 'covariance', "
                f"got {show(self.denominator)}"
            )
        check_solver(self.solver)
        scale, ridge, threshold = self.scale, self.ridge, self.threshold
        if not _is_auto(threshold):
            threshold = check_threshold(threshold)
        if not _is_auto(ridge):
            ridge = check_number(ridge, "ridge", at_least=0.0)
        if scale is not None:
            scale = check_vector(scale, n_features, "scale", positive=True)
        constant = check_flag(self.constant, "constant")
        return replace(self, constant=constant, scale=scale, ridge=ridge, threshold=threshold)


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def check_threshold(threshold: Any) -> float:
    """The smallest eigenvalue as a number; minus infinity for None."""
    return -math.inf if threshold is None else check_number(threshold, "threshold", infinite=True)


def check_solver(solver: Any) -> str:
    """The name of a solver; ValueError for any other value."""
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(f"solver: expected one of {', '.join(SOLVERS)}, got {show(solver)}")
    return solver


def directions_per_pair(n_directions: int | str, n_pairs: int, random_groups: bool = False) -> int:
    """Maximum number of directions of each of `n_pairs` pairs.

    "auto" is 1 for random groups of classes, and 10 for pairs of classes. Above 300 pairs it is
    3,000 divided by the number of pairs, at least 3, and above 3,000 pairs 1: the pairs of many
    classes have similar directions, and a classifier's time grows with the number of directions.
    """
    if not _is_auto(n_directions):
        return check_whole(n_directions, "n_directions", at_least=1)
    if random_groups:
        return 1
    least = _MIN_DIRECTIONS if n_pairs <= _TOTAL_DIRECTIONS else 1
    return max(least, min(_TOTAL_DIRECTIONS // max(n_pairs, 1), _MAX_DIRECTIONS))


# ---- pairs of classes ----------------------------------------------------------------------------


def class_pairs(
    classes: ArrayLike,
    pairs: Pairs = "all",
    *,
    random_state: Seed = None,
) -> _Pairs:
    """Return ordered pairs of classes, as indices into `classes`.

    Parameters
    ----------
    classes : array-like of shape (k,)
        Distinct labels, at least two.
    pairs : {"all", "hypercube"} or sequence of (label, label), default="all"
        - ``"all"``: all k (k - 1) ordered pairs (Karampatziakis and Mineiro 2014, Algorithm 1).
        - ``"hypercube"``: the labels are placed at random on corners of a cube of ceil(log2 k)
          dimensions; neighbours (Hamming distance 1) are paired both ways (section 4.3). Placements
          are drawn until every class has a neighbour. O(k log k) pairs.
        - a sequence of (numerator, denominator) labels.
    random_state : None, int or NumPy generator, default=None
        Seed for the corners of the cube.

    Returns
    -------
    ndarray of int64, shape (P, 2)
        Numerators and denominators in lexicographic order; an explicit list keeps its order.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or if an explicit list has an unknown label, a pair of
        equal labels, a repeated pair, or leaves out a class (the message names it).
    """
    table = LabelTable.of(classes)
    k = len(table)
    if k < 2:
        raise ValueError(f"classes: expected at least 2 for pairs, got {show(classes)}")
    if not isinstance(pairs, str):
        return _explicit(LabelTable(tuple(np.asarray(classes).tolist()), table.dtype), pairs)
    if pairs == "all":
        return _all(k)
    if pairs == "hypercube":
        return _hypercube(k, random_generator(random_state))
    raise ValueError(
        f"pairs: expected 'all', 'hypercube' or a list of pairs of labels, got {show(pairs)}"
    )


def _all(k: int) -> _Pairs:
    numerators, denominators = np.divmod(np.arange(k * k, dtype=np.int64), k)
    different = numerators != denominators
    return np.column_stack([numerators[different], denominators[different]])


def _hypercube(k: int, rng: Generator) -> _Pairs:
    dimensions = (k - 1).bit_length()
    for _ in range(_MAX_PLACEMENTS):
        corners = rng.permutation(2**dimensions)[:k]
        pairs = _neighbours(corners, dimensions)
        if len(np.unique(pairs[:, 0])) == k:
            return pairs
    # On the corners 0..k-1 every label has a neighbour: clearing a bit of a corner gives another.
    return _neighbours(rng.permutation(k), dimensions)


def _neighbours(corners: npt.NDArray[Any], dimensions: int) -> _Pairs:
    """Pairs of labels, label i on corners[i], whose corners differ in one bit."""
    label_at = np.full(2**dimensions, -1, dtype=np.int64)
    label_at[corners] = np.arange(len(corners))
    flipped = corners[:, None] ^ (1 << np.arange(dimensions))
    numerators, axes = np.nonzero(label_at[flipped] >= 0)
    pairs = np.column_stack([numerators, label_at[flipped[numerators, axes]]])
    return np.unique(pairs, axis=0).astype(np.int64)


def _explicit(table: LabelTable, pairs: Any) -> _Pairs:
    try:
        listed = [(numerator, denominator) for numerator, denominator in pairs]
    except (TypeError, ValueError):
        raise ValueError(
            f"pairs: expected a kind or a list of (numerator, denominator), got {show(pairs)}"
        ) from None
    indices = np.empty((len(listed), 2), dtype=np.int64)
    for row, pair in enumerate(listed):
        try:
            indices[row] = table.index(pair[0]), table.index(pair[1])
        except UnknownClassError as error:
            raise ValueError(f"pairs: unknown class in pair {row}: {error}") from None
        if indices[row, 0] == indices[row, 1]:
            raise ValueError(f"pairs: expected two different classes, got {show(pair)}")
    distinct, counts = np.unique(indices, axis=0, return_counts=True)
    if (counts > 1).any():
        twice = distinct[np.argmax(counts > 1)]
        pair = tuple(table.labels[i] for i in twice)
        raise ValueError(f"pairs: expected distinct pairs, got {show(pair)} twice")
    missing = np.setdiff1d(np.arange(len(table)), indices)
    if len(missing):
        names = [table.labels[i] for i in missing]
        raise ValueError(f"pairs: expected every class in some pair, got none with {show(names)}")
    return indices


@dataclass(frozen=True, eq=False)
class Problems:
    """P eigenproblems between G groups of classes."""

    moments: ClassMoments  # of `labels`
    labels: Sequence[Hashable]  # classes or, with `random_groups`, random unions of classes
    groups: list[Contraction]  # length G
    items: _Pairs  # (P, 2) indices of numerator and denominator
    names: Labels  # (P, 2)
    of_classes: bool  # whether every group is a single class, named by its label
    random_groups: bool = False

    def names_below(self, groups: list[int]) -> list[Hashable]:
        """Names of denominators: labels, or the first contrast with each denominator."""
        rows = [int(np.argmax(self.items[:, 1] == group)) for group in groups]
        if self.of_classes:
            return [self.names[row : row + 1, 1].tolist()[0] for row in rows]
        return [tuple(self.names[row].tolist()) for row in rows]


def _single_classes(count: int) -> list[Contraction]:
    """Contractions of one class each."""
    return [Contraction(np.array([c]), np.ones(1)) for c in range(count)]


def problems_of(
    moments: ClassMoments,
    labels: Labels,
    options: PencilOptions,
    span: Span | None = None,
) -> Problems:
    """The problems of the option `pairs`, for the classes of positive weight, `labels`.

    With a span, problems are between the moments of its coordinates.
    """
    solved = moments if span is None else span.moments
    pairs, scale = options.pairs, options.scale
    kind, count = _kind_and_count(pairs)
    if count is not None:
        most = len(labels) * (len(labels) - 1) if kind == "confusion" else None
        check_whole(count, "pairs", at_least=1, at_most=most)
    if kind == "auto":
        pairs = kind = "all" if len(labels) <= MAX_CLASSES_ALL else "random_groups"
    if kind == "random_groups":
        d, generator = moments.n_features_in_, random_generator(options.random_state)
        merged, names, items = random_groups(solved, labels, d, count, generator)
        groups = _single_classes(len(names))
        return Problems(merged, names, groups, items, np.array(names)[items], False, True)
    if kind == "one_vs_rest":
        pairs = one_vs_rest(labels)
    elif kind == "class_tree":
        pairs = class_tree(moments, scale=scale)
    elif kind == "confusion":
        ridge = CONFUSION_RIDGE
        if span is not None:  # in scaled coordinates, with a ridge relative to trace / d
            scale, ridge = None, ridge * span.basis.shape[1] / len(span.basis)
        pairs = confusion_pairs(solved, count, ridge=ridge, scale=scale)
    if isinstance(pairs, Contrasts):
        present, groups, items = without_empty_classes(pairs, solved)
        return Problems(solved, present, groups, items, pairs.names, False)
    items = class_pairs(labels, pairs, random_state=options.random_state)
    groups = _single_classes(len(labels))
    return Problems(solved, labels.tolist(), groups, items, labels[items], True)


def _kind_and_count(pairs: Any) -> tuple[str, int | None]:
    """The kind of pairs, or "" for given pairs, and the number of pairs, if it is given."""
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[1], Integral):
        if not isinstance(pairs[0], str) or pairs[0] not in _COUNTED:
            raise ValueError(f"pairs: expected one of {_COUNTED} with a number, got {show(pairs)}")
        return pairs
    if not isinstance(pairs, str):
        return "", None
    if pairs not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise ValueError(
            f"pairs: expected {kinds}, a list of pairs of labels or Contrasts, got {show(pairs)}"
        )
    return pairs, None


# ---- matrices ------------------------------------------------------------------------------------


class SingularDenominatorError(np.linalg.LinAlgError, ValueError):
    """A class's matrix is singular as a denominator; the message names the class and a ridge."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Pencils to solve, and the shifts of the diagonals of their denominators."""

    numerators: list[RealArray]
    denominators: list[RealArray]
    shifts: RealArray
    items: _Rows  # (n, 2) indices of the two matrices of each pencil


class Unions:
    """Mean and covariance of weighted unions of classes.

    Covariances are merged as by Chan, Golub and LeVeque (1983), by adding positive terms only:
    subtraction would lose digits. The union of all but a few of k classes is the sum of O(log k)
    nested halves of the classes. Halves are kept for the next union: the unions of all classes but
    one, in order, take O(k log k) additions.
    """

    def __init__(self, moments: ClassMoments, labels: Sequence[Hashable]) -> None:
        self._moments, self._labels = moments, labels
        self.weights, self.means = moments.weights_and_means(labels)
        self._halves: dict[tuple[int, int], _Array] = {}

    def of(self, contraction: Contraction) -> tuple[_Array, _Array]:
        """Return the mean (d,), not to be modified, and the covariance (d, d) of a contraction."""
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
        weighted = np.flatnonzero(factors)
        ranges = [np.arange(*span) for span in selected]
        weights = [contraction.others * self.weights[r].sum() for r in ranges]
        weights += (factors[weighted] * self.weights[chosen[weighted]]).tolist()
        means = [self._mean(r) for r in ranges] + [self.means[c] for c in chosen[weighted]]
        covariances = [*selected.values(), *(self._covariance(c) for c in chosen[weighted])]
        return _merged(np.array(weights), np.array(means), covariances)

    def mean(self, contraction: Contraction) -> _Array:
        """Mean (d,) of a contraction, equal to the mean from `of` up to rounding."""
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

    def of_each(self, contractions: list[Contraction]) -> list[tuple[_Array, _Array]]:
        """The results of `of` for several contractions."""
        if any(len(c.indices) > 1 or c.others for c in contractions):
            return [self.of(c) for c in contractions]
        classes = [int(c.indices[0]) for c in contractions]
        covariances = self._moments.covariances([self._labels[c] for c in classes])
        return [(self.means[c], S) for c, S in zip(classes, covariances, strict=True)]


def _merged(weights: _Array, means: _Array, covariances: Iterable[_Array]) -> tuple[_Array, _Array]:
    """Mean and covariance of a union: mean covariance of its parts plus covariance of means."""
    shares = weights / weights.sum()
    mean = shares @ means
    deviations = means - mean
    deviations[np.abs(deviations) <= 4 * _EPS * np.abs(means)] = 0.0  # rounding errors
    deviations *= np.sqrt(shares)[:, None]
    total: _Array = deviations.T @ deviations
    scaled = np.empty_like(total)
    for share, covariance in zip(shares, covariances, strict=True):
        np.multiply(covariance, share, out=scaled)
        total += scaled
    return mean, total


def _spans(low: int, high: int, without: _Rows) -> list[tuple[int, int]]:
    """Nested halves of range(low, high) that make up the range without the indices `without`."""
    if not ((without >= low) & (without < high)).any():
        return [(low, high)]
    if high - low == 1:
        return []
    middle = (low + high) // 2
    return _spans(low, middle, without) + _spans(middle, high, without)


class ClassMatrices:
    """Numerators and denominators of G groups of classes, of order D = d, or d + 1 if bordered.

    A second moment serves as numerator and as denominator: the core adds the ridge to the first d
    diagonal entries. With a covariance as denominator, the numerator is a second moment about the
    denominator's mean, so that each problem has its own numerator.

    `groups` are the weights of the classes in each group, `options` are checked, and `n_columns` is
    the number of columns of the samples, if the matrices are in coordinates of their span.

    Attributes
    ----------
    n_features : int
        d.
    order : int
        D.
    centre : (d,) array or None
        Mean of all samples, the origin of bordered matrices.
    units : (G,) array
        Mean eigenvalue of each formed denominator.
    ridges : (G,) array
        Ridge of each formed denominator, in multiples of its mean eigenvalue.
    """

    def __init__(
        self,
        unions: Unions,
        groups: list[Contraction],
        options: PencilOptions,
        n_columns: int | None = None,
    ) -> None:
        self._unions, self._groups = unions, groups
        self.n_features = unions.means.shape[1]
        self._columns = self.n_features if n_columns is None else n_columns
        self._border, self._about_mean = options.bordered, options.about_mean
        self.order = self.n_features + self._border
        self.scale = None if options.scale is None else np.asarray(options.scale)
        self._mean_unit: float | None = None
        self.centre = None
        if options.bordered:
            self.centre = pooled_mean(unions.weights / unions.weights.sum(), unions.means)
        self.units = np.zeros(len(groups))
        self._auto_ridge = isinstance(options.ridge, str)
        self._needs_spectra = self._auto_ridge or options.noise_threshold
        self.ridges = np.full(len(groups), np.nan if self._auto_ridge else options.ridge)
        # Eigenvalues (d,) of denominators without their ridges, ascending.
        self._spectra: dict[int, _Array] = {}

    def batch(self, items: _Rows) -> Batch:
        """Form the matrices of the pencils `items` (n, 2), indices of their two groups.

        Numerators about a denominator's mean differ between its pairs.
        """
        keys = items if self._about_mean else items[:, :1]
        above, upper_of = np.unique(keys, axis=0, return_inverse=True)
        below, lower_of = np.unique(items[:, 1], return_inverse=True)
        upper: dict[tuple[int, ...], _Array] = {}
        lower: dict[int, _Array] = {}
        denominators = set(below.tolist())
        means = {group: self.mean(group) for group in denominators if self._about_mean}
        groups = np.unique(items).tolist()
        unions = self._unions.of_each([self._groups[group] for group in groups])
        for group, (mean, covariance) in zip(groups, unions, strict=True):
            own = mean if self.centre is None else mean - self.centre
            unit = self._unit(own, covariance) if group in denominators else 0.0
            for other in above[above[:, 0] == group, 1:].ravel().tolist():
                upper[group, other] = self._formed(covariance, own - means[other])
            origin = None if self._about_mean else own
            matrix = self._formed(covariance, origin, overwrite=True)
            if not self._about_mean:
                upper[group,] = matrix
            if group in denominators:
                lower[group] = matrix
                self._settle(group, matrix, unit)
        return Batch(
            [upper[tuple(key)] for key in above.tolist()],
            [lower[group] for group in below.tolist()],
            self._shifts(below),
            np.column_stack([upper_of.reshape(-1), lower_of]).astype(np.int64),
        )

    def mean(self, group: int) -> _Array:
        """Mean (d,) of a group's samples."""
        return self._unions.mean(self._groups[group])

    def _shifts(self, groups: _Rows) -> _Array:
        shifts = self.ridges[groups] * self.units[groups]
        if not self._border:
            return shifts
        out = np.zeros((len(groups), self.order))
        out[:, : self.n_features] = shifts[:, None]
        return out

    def effective_samples(self, group: int) -> float:
        """Kish's effective number of samples of a group."""
        shares = self._groups[group].dense(len(self._unions.weights))
        weight = float(shares @ self._unions.weights)
        return weight * weight / float(shares**2 @ self._unions.weights)

    def noise_edges(self, items: _Rows) -> _Array:
        """Eigenvalue (n,) of each problem that sampling noise alone would hardly reach."""
        edges: dict[tuple[int, float], float] = {}
        out = np.empty(len(items))
        for row, (above, below) in enumerate(items.tolist()):
            key = below, self.effective_samples(above)
            if key not in edges:
                ridge = self.ridges[below] * self.units[below]
                known = self._spectra[below], ridge, self.effective_samples(below), key[1]
                edges[key] = MARGIN * noise_edge(*known)
            out[row] = edges[key]
        return out

    def _settle(self, group: int, matrix: _Array, unit: float) -> None:
        """Set a denominator's unit and, if the options need them, its spectrum and ridge."""
        self.units[group] = unit
        if not self._needs_spectra:
            return
        values = np.linalg.eigvalsh(matrix[: self.n_features, : self.n_features])
        beyond = np.zeros(self._columns - self.n_features)  # eigenvalues outside the span
        self._spectra[group] = np.concatenate([beyond, np.maximum(values, 0.0)])
        if self._auto_ridge:
            self.ridges[group] = auto_ridge(self._spectra[group], self.effective_samples(group))

    def _unit(self, mean: _Array, covariance: _Array) -> float:
        """Mean eigenvalue of a denominator; if that is 0, the mean over all classes."""
        trace = self._trace(mean, covariance)
        if trace > 0:
            return trace / self._columns
        if self._mean_unit is None:
            centre = 0.0 if self.centre is None else self.centre
            parts = (self._unions.of(c) for c in _single_classes(len(self._unions.weights)))
            traces = [self._trace(mean - centre, covariance) for mean, covariance in parts]
            self._mean_unit = float(np.mean(traces)) / self._columns
        return self._mean_unit

    def _trace(self, mean: _Array, covariance: _Array) -> float:
        scale = 1.0 if self.scale is None else self.scale
        variance = float(np.sum(np.diag(covariance) / scale / scale))
        second = variance + float(np.sum((mean / scale) ** 2))
        if not self._about_mean:
            return second
        # The variance of equal samples consists of rounding errors.
        return variance if variance > (100 * _EPS) ** 2 * second else 0.0

    def singular(
        self, failed: list[int], what: str, names: Sequence[Hashable]
    ) -> SingularDenominatorError:
        """The error for groups whose denominators are singular with the given ridge."""
        result = f"denominator of {what} {show_items(names)} is singular to working precision"
        if not self.units.max() > 0:
            return SingularDenominatorError(f"{result}: all samples are zero or equal")
        ridges = [self._sufficient_ridge(group) for group in failed]
        known = [ridge for ridge in ridges if ridge is not None]
        if len(known) < len(ridges):
            return SingularDenominatorError(f"{result}, with any ridge up to {_RIDGES[-1]:g}")
        return SingularDenominatorError(
            f"{result} with ridge={self.ridges[failed[0]]:g}; ridge={max(known):g} suffices"
        )

    def _sufficient_ridge(self, group: int) -> float | None:
        mean, covariance = self._unions.of(self._groups[group])
        own = mean if self.centre is None else mean - self.centre
        matrix = self._formed(covariance, None if self._about_mean else own)
        return _smallest_ridge(matrix, self.units[group], self.n_features)

    def _formed(
        self, covariance: _Array, mean: _Array | None, *, overwrite: bool = False
    ) -> _Array:
        """Form (D, D): covariance + mean mean^T, divided by the scales, with the constant's border.

        With `overwrite`, a matrix without a border replaces the covariance.
        """
        d, border, divisors = self.n_features, self._border, self.scale
        in_place = overwrite and not border
        out = covariance if in_place else np.empty((d + border, d + border))
        for first in range(0, d, _BLOCK_ROWS):
            rows = slice(first, min(first + _BLOCK_ROWS, d))
            block = out[rows, :d]
            if not in_place:
                block[:] = covariance[rows]
            if mean is not None:
                block += mean[rows, None] * mean
            if divisors is not None:
                block /= divisors[rows, None] * divisors
        if border:
            scale = 1.0 if divisors is None else divisors
            out[:d, d] = out[d, :d] = 0.0 if mean is None else mean / scale
            out[d, d] = 1.0
        return out


def matrices_of(
    moments: ClassMoments, labels: Labels, options: PencilOptions, span: Span | None = None
) -> tuple[Problems, ClassMatrices, PencilOptions]:
    """The problems of all pairs, their matrices, and options, in coordinates of a span if any."""
    problems, n_columns = problems_of(moments, labels, options, span), None
    if problems.random_groups:
        options = replace(options, threshold=-math.inf)
    if span is not None:  # its coordinates are already scaled
        options, n_columns = replace(options, scale=None), len(span.origin)
    unions = Unions(problems.moments, problems.labels)
    return problems, ClassMatrices(unions, problems.groups, options, n_columns), options


def _smallest_ridge(matrix: _Array, unit: float, d: int) -> float | None:
    """Smallest of `_RIDGES`, at least D eps, that makes `matrix` positive definite in the core.

    A ridge below D eps is within the rounding errors of a typical entry.
    """
    shifts = np.zeros(len(matrix))

    def suffices(ridge: float) -> bool:
        shifts[:d] = ridge * unit
        return bool(core.is_positive_definite(matrix, shifts, 0))

    first = bisect_left(_RIDGES, len(matrix) * _EPS)
    at = bisect_left(_RIDGES, True, lo=first, key=suffices)
    return _RIDGES[at] if at < len(_RIDGES) else None

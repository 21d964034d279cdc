"""Algorithm 1, lines 2 to 5, from samples to directions without any matrix of d x d.

The samples of a class are an operator, denominators are inverted through the kernel of their
samples (`denominator`), and leading eigenpairs come from block Krylov spaces (`krylov`). A
direction is a combination of the samples of its two classes (`directions`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.validation import show
from eigenfeat.gem._randomized.denominator import Denominator, settled_ridge
from eigenfeat.gem._randomized.directions import Combination, RowCombinations
from eigenfeat.gem._randomized.krylov import INNER, Leading, Numerator, PencilsOverClass
from eigenfeat.gem._randomized.samples import ClassSamples, sort_by_class
from eigenfeat.pencils.problems import SingularDenominatorError, class_pairs, directions_per_pair

if TYPE_CHECKING:
    from eigenfeat._base.types import Labels

__all__ = ["Options", "RandomizedSolution", "solve_pencils"]

Array = NDArray[np.float64]

TOLERANCES = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}  # of residuals, relative
BATCH = 32  # directions that are formed at a time
MAX_CLASSES_ALL = 50  # up to it, pairs="auto" means "all"


@dataclass(frozen=True)
class Options:
    """Parameters of a fit; see `RandomizedGEM`."""

    ridge: float | str
    n_directions: int | str
    threshold: float | None
    pairs: Any
    covariance: bool
    constant: bool
    scaled: bool
    seed: int
    n_threads: int


@dataclass(frozen=True, eq=False)
class RandomizedSolution:
    """Directions and their accuracy.

    Attributes
    ----------
    directions : RowCombinations (d, F)
    offset : (F,) array
    eigenvalues : (F,) array
    pairs : (F, 2) array
        Labels of the numerator and the denominator class.
    ranks : (F,) array of int
        Ranks within the pairs.
    column_scale : (d,) array
        Divisors of the columns.
    residuals : (F,) array
        ``|C_i v - lambda B_j v| / (lambda |B_j v|)``, computed from the samples.
    steps : int
        Vectors to which an operator ``B_j^-1 C_i`` was applied.
    """

    directions: RowCombinations
    offset: Array
    eigenvalues: Array
    pairs: Labels
    ranks: NDArray[np.intp]
    column_scale: Array
    residuals: Array
    steps: int


def solve_pencils(
    X: Any,
    y: Labels,
    weight: Array | None,
    options: Options,
    log: Callable[[str, float], object],
) -> RandomizedSolution:
    """Solve the pencils of the chosen pairs of classes; Algorithm 1, lines 2-5, and section 5.

    `log` is called with a text and a start time after each denominator.

    Raises
    ------
    ValueError
        If there are fewer than two classes, `ridge` is 0, or the pairs are between groups.
    SingularDenominatorError
        If all samples of all classes are zero, so that there is no unit for the ridge.

    Warns
    -----
    RuntimeWarning
        If directions did not converge.
    """
    labels, codes = np.unique(y, return_inverse=True)
    check_two_labels(labels)
    if not isinstance(options.ridge, str) and options.ridge <= 0:
        raise ValueError(f"ridge: expected a number > 0, got {options.ridge}")
    items = _items(labels, options)
    movable = options.constant or options.covariance
    classes, scale = sort_by_class(X, codes, weight, scaled=options.scaled, movable=movable)
    solver = _PencilSolver(classes, options, len(items))
    by_pair: dict[int, _PairDirections] = {}
    for below in np.unique(items[:, 1]).tolist():
        started = time.perf_counter()
        for item, result in solver.over(below, np.flatnonzero(items[:, 1] == below), items):
            by_pair[item] = result
        log(f"pairs over class {labels[below]}", started)
    if solver.unfinished:
        warnings.warn(
            f"RandomizedGEM: expected residuals of at most {TOLERANCES[classes.dtype]:g}, got "
            f"larger ones of {solver.unfinished} directions; see residuals_",
            RuntimeWarning,
            stacklevel=4,
        )
    return _joined([by_pair[item] for item in range(len(items))], items, labels, classes, scale)


def _items(labels: NDArray[Any], options: Options) -> NDArray[np.int64]:
    """Indices (F, 2) of the classes of each pair."""
    pairs = options.pairs
    if isinstance(pairs, str) and pairs == "auto":
        pairs = "all" if len(labels) <= MAX_CLASSES_ALL else "hypercube"
    if isinstance(pairs, str) and pairs not in ("all", "hypercube"):
        raise ValueError(
            "pairs: expected 'auto', 'all', 'hypercube' or a list of pairs of labels, got "
            f"{show(pairs)}"
        )
    return class_pairs(labels, pairs, random_state=options.seed)


@dataclass(eq=False)
class _PairDirections:
    """Directions of one pair of classes."""

    combination: Combination
    offset: Array
    values: Array
    residuals: Array
    steps: int


class _PencilSolver:
    """Solves the pencils of one denominator after the other."""

    def __init__(self, classes: ClassSamples, options: Options, n_pairs: int) -> None:
        self._classes, self._options = classes, options
        self._threads = options.n_threads
        self._covariance = options.covariance
        self._constant = options.constant and not options.covariance
        self._units = self._all_units()
        self._count = directions_per_pair(options.n_directions, n_pairs)
        self.unfinished = 0  # directions whose residual is above the tolerance

    def over(
        self, below: int, rows: NDArray[np.intp], items: NDArray[np.int64]
    ) -> Iterator[tuple[int, _PairDirections]]:
        """Solve all pairs over one class."""
        options, classes = self._options, self._classes
        sizes = len(classes.roots[below]), classes.n_features
        shift = settled_ridge(options.ridge, *sizes) * self._units[below]
        denominator = Denominator(
            classes.rows[below],
            classes.roots[below],
            shift,
            centred=self._covariance or self._constant,
            n_threads=self._threads,
        )
        numerators = [
            Numerator(classes.rows[i], classes.roots[i], [options.seed, i, below])
            for i in items[rows, 0].tolist()
        ]
        pencils = PencilsOverClass(
            denominator, numerators, self._centre(below), self._constant, self._threads
        )
        tolerance = TOLERANCES[classes.dtype]
        threshold = -np.inf if options.threshold is None else float(options.threshold)
        leading = [
            _above(result, threshold) for result in pencils.solve(self._count, threshold, tolerance)
        ]
        self.unfinished += sum(int((result.error > tolerance).sum()) for result in leading)
        for batch in _batches(leading):
            result = self._form(pencils, below, batch, leading, tolerance)
            for index, directions in zip(batch, result, strict=True):
                yield int(rows[index]), directions

    def _centre(self, below: int) -> Array | None:
        if not (self._constant or self._covariance):
            return None
        centre: Array = self._classes.means[below]
        return centre if centre.any() else None

    def _all_units(self) -> Array:
        """Mean eigenvalue of each denominator; where it is 0, the mean over all classes."""
        classes = self._classes
        spread = classes.squares - (classes.means**2).sum(axis=1)
        origin = classes.mean if self._constant else 0.0
        second = spread + ((classes.means - origin) ** 2).sum(axis=1)
        eps = float(np.finfo(np.float64).eps)
        noise = (100 * eps) ** 2 * second + 100 * eps * classes.squares
        traces = np.where(spread > noise, spread, 0.0) if self._covariance else second
        traces = np.where(traces > 0, traces, 0.0)
        if not traces.max() > 0:
            raise SingularDenominatorError(
                "denominators are singular to working precision: all samples of all classes are "
                "zero"
            )
        return np.where(traces > 0, traces, traces.mean()) / classes.n_features

    def _form(
        self,
        pencils: PencilsOverClass,
        below: int,
        batch: list[int],
        leading: list[Leading],
        tolerance: float,
    ) -> Iterator[_PairDirections]:
        """Directions of a batch of numerators, from their eigenvectors on the samples."""
        blocks = [leading[i].left / np.sqrt(leading[i].values) for i in batch]
        images = pencils.images(batch, blocks, [None] * len(batch), INNER * tolerance)
        centre, shift = pencils.centre, pencils.below.shift
        vectors, beta, sums = images.inner, images.beta, images.sums
        del images
        vectors /= shift
        if centre is not None:
            vectors -= centre[:, None] * (sums / shift)
        along = np.zeros(len(sums)) if centre is None else centre @ vectors
        constant = sums if self._constant else np.zeros(len(sums))
        offset = constant - along
        signs = _signs(vectors, offset + self._classes.mean @ vectors, self._constant)
        residuals = self._residuals(pencils, batch, leading, vectors, constant, along)
        at = 0
        for i, block in zip(batch, blocks, strict=True):
            part = slice(at, at + block.shape[1])
            at = part.stop
            sign = signs[part]
            yield _PairDirections(
                self._combination(i, below, pencils, block, beta[:, part], sums[part], sign),
                offset[part] * sign,
                leading[i].values,
                residuals[part],
                leading[i].steps,
            )

    def _combination(
        self,
        i: int,
        below: int,
        pencils: PencilsOverClass,
        block: Array,
        beta: Array,
        sums: Array,
        sign: Array,
    ) -> Combination:
        """Coefficients of the samples of both classes."""
        factor = sign / pencils.below.shift
        lower = beta * factor
        if pencils.centre is not None:
            lower -= pencils.below.root[:, None] * (sums * factor)
        above = self._classes.index_of(pencils.numerators[i].rows)
        return Combination(above, below, block * factor, lower)

    def _residuals(
        self,
        pencils: PencilsOverClass,
        batch: list[int],
        leading: list[Leading],
        vectors: Array,
        constant: Array,
        along: Array,
    ) -> Array:
        threads, below = self._threads, pencils.below
        values = np.concatenate([leading[i].values for i in batch])
        heights = below.centre(below.rows.times(vectors, n_threads=threads))
        right = below.rows.transposed_times(heights, n_threads=threads)
        right += below.shift * vectors
        right *= values
        size = np.hypot(np.linalg.norm(right, axis=0), values * constant)
        at, last = 0, np.empty(len(values))
        for i in batch:
            numerator, width = pencils.numerators[i], len(leading[i].values)
            part = slice(at, at + width)
            heights = numerator.rows.times(vectors, at=at, width=width, n_threads=threads)
            heights += numerator.root[:, None] * (constant[part] - along[part])
            left = numerator.rows.transposed_times(heights, n_threads=threads)
            total = numerator.root @ heights
            if pencils.centre is not None:
                left -= pencils.centre[:, None] * total
            last[part] = total - values[part] * constant[part] if self._constant else 0.0
            right[:, part] -= left
            at += width
        gap = np.hypot(np.linalg.norm(right, axis=0), last)
        return np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)


def _above(result: Leading, threshold: float) -> Leading:
    m = int(np.count_nonzero(result.values >= threshold))
    return Leading(
        result.values[:m], np.ascontiguousarray(result.left[:, :m]), result.steps, result.error[:m]
    )


def _batches(leading: list[Leading]) -> Iterator[list[int]]:
    """Groups of numerators whose directions are formed together."""
    batch: list[int] = []
    width = 0
    for i, result in enumerate(leading):
        if batch and width + len(result.values) > BATCH:
            yield batch
            batch, width = [], 0
        batch.append(i)
        width += len(result.values)
    yield batch


def _signs(vectors: Array, offset: Array, constant: bool) -> Array:
    """Signs that make the entry of largest magnitude positive, the constant included."""
    if not vectors.shape[1]:
        return np.ones(0)
    columns = np.arange(vectors.shape[1])
    high, low = vectors.argmax(axis=0), vectors.argmin(axis=0)
    top = np.where(vectors[high, columns] >= -vectors[low, columns], high, low)
    entries = vectors[top, columns]
    if constant:
        entries = np.where(np.abs(offset) > np.abs(entries), offset, entries)
    return np.where(entries < 0, -1.0, 1.0)


def _joined(
    result: list[_PairDirections],
    items: NDArray[np.int64],
    labels: NDArray[Any],
    classes: ClassSamples,
    scale: Array,
) -> RandomizedSolution:
    counts = np.array([len(pair.values) for pair in result], dtype=np.int64)
    directions = RowCombinations.of(classes, [pair.combination for pair in result])
    offset = np.concatenate([pair.offset for pair in result])
    if classes.origin is not None:
        offset = offset - directions.project(classes.origin[None])[0]
    ranks = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return RandomizedSolution(
        directions,
        offset,
        np.concatenate([pair.values for pair in result]),
        labels[np.repeat(items, counts, axis=0)],
        ranks,
        scale,
        np.concatenate([pair.residuals for pair in result]),
        sum(pair.steps for pair in result),
    )

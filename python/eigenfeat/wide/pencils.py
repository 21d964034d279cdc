"""GEM in huge dimensions: from rows to directions without any matrix of d x d.

Rows of a class are an operator, denominators are inverted through the kernel of their rows
(`eigenfeat.wide.denominator`), and leading eigenpairs come from block Krylov spaces
(`eigenfeat.wide.solver`). A direction of sparse rows is a combination of the rows of its two
classes, and is stored as such: `WideDirections`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Floats, Labels
from eigenfeat._base.validation import show
from eigenfeat.expansion.features import Directions, ExpandedRows, check_powers, row_blocks
from eigenfeat.pencils.class_matrices import SingularDenominatorError
from eigenfeat.pencils.fitted_directions import ScaleReport, Settings, Solution
from eigenfeat.pencils.pairs import class_pairs, settled_kind
from eigenfeat.pencils.pencils import directions_of_each
from eigenfeat.wide.denominator import Denominator, settled_ridge
from eigenfeat.wide.directions import Combination, WideDirections
from eigenfeat.wide.rows import WideClasses, wide_classes
from eigenfeat.wide.solver import INNER, Leading, Numerator, WidePencils

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["WideSolution", "expand_wide", "refuse_moments", "solve_wide"]

Array = NDArray[np.float64]

TOLERANCES = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}
BATCH = 32  # directions that are formed at a time


@dataclass(frozen=True, eq=False)
class WideSolution(Solution):
    """A solution from rows, and how well and at what cost it was found.

    Attributes
    ----------
    directions : WideDirections or (d, F) array
        Combinations of sparse rows; an array, of the rows' type, if they are dense.
    residuals : (F,) array
        ``|C_i v - lambda B_j v| / (lambda |B_j v|)``, from the rows themselves.
    steps : int
        Vectors to which an operator ``B_j^-1 C_i`` was applied.
    """

    residuals: Array
    steps: int


def solve_wide(
    X: Floats | csr_array,
    y: Labels,
    weight: Array | None,
    settings: Settings,
    say: Callable[[str, float], object] | None = None,
) -> WideSolution:
    """Solve the pencils of the chosen pairs of checked rows; Algorithm 1, lines 2-5, and section 5.

    `say` is called with a text and the time that it began, after each denominator.

    Raises
    ------
    ValueError
        If there are fewer than two classes, `ridge` is 0, or the pairs are between groups.
    SingularDenominatorError
        If all samples of all classes are zero, so that there is no unit for the ridge.

    Warns
    -----
    RuntimeWarning
        If some directions did not converge.
    """
    labels, codes = np.unique(y, return_inverse=True)
    check_two_labels(labels)
    if isinstance(settings.threshold, str):
        raise ValueError("threshold: expected a number with solver='randomized', got 'auto'")
    if not isinstance(settings.ridge, str) and settings.ridge <= 0:
        raise ValueError(
            f"ridge: expected a number > 0 with solver='randomized', got {settings.ridge}"
        )
    items = _items(labels, settings)
    movable = settings.constant or settings.denominator == "covariance"
    classes, scale = wide_classes(X, codes, weight, settings.scale, movable)
    parts = _Parts(classes, settings, len(items))
    by_pair: dict[int, _OfPair] = {}
    for below in np.unique(items[:, 1]).tolist():
        started = time.perf_counter()
        for item, result in parts.over(below, np.flatnonzero(items[:, 1] == below), items):
            by_pair[item] = result
        if say is not None:
            say(f"pairs over class {labels[below]}", started)
    if parts.unfinished:
        warnings.warn(
            f"solver: expected residuals of at most {TOLERANCES[classes.dtype]:g}, got larger ones "
            f"of {parts.unfinished} directions; see residuals_",
            RuntimeWarning,
            stacklevel=5,
        )
    return _joined([by_pair[item] for item in range(len(items))], items, labels, classes, scale)


def _items(labels: NDArray[Any], settings: Settings) -> NDArray[np.int64]:
    kind, count = settled_kind(settings.pairs, len(labels), "hypercube"), None
    if isinstance(kind, tuple) and len(kind) == 2 and kind[0] in ("random", "stratified"):
        kind, count = kind
    plain = not isinstance(kind, str) or kind in ("all", "hypercube", "random", "stratified")
    if not plain or not isinstance(kind, (str, list, tuple)):
        raise ValueError(
            "pairs: expected 'all', 'hypercube', 'random', 'stratified' or a list of pairs of "
            f"labels with solver='randomized', got {show(settings.pairs)}"
        )
    return class_pairs(labels, kind, n_pairs=count, random_state=settings.seed)


@dataclass(eq=False)
class _OfPair:
    """Directions of one pair: combinations or an array (d, m), and what goes with them."""

    combination: Combination
    dense: Any  # None of sparse rows
    offset: Array
    values: Array
    residuals: Array
    steps: int


class _Parts:
    """The denominators of classes, one after the other, and the pencils over them."""

    def __init__(self, classes: WideClasses, settings: Settings, n_pairs: int) -> None:
        self._classes, self._settings = classes, settings
        self._threads = settings.n_threads or 0
        self._covariance = settings.denominator == "covariance"
        self._constant = settings.constant and not self._covariance
        self._units = self._all_units()
        self._count = directions_of_each(settings.n_directions, n_pairs)
        self.unfinished = 0  # directions whose residual is above the tolerance

    def over(
        self, below: int, rows: NDArray[np.intp], items: NDArray[np.int64]
    ) -> Iterator[tuple[int, _OfPair]]:
        """Solve all pairs over one class."""
        settings, classes = self._settings, self._classes
        sizes = len(classes.roots[below]), classes.n_features
        shift = settled_ridge(settings.ridge, *sizes) * self._units[below]
        denominator = Denominator(
            classes.rows[below],
            classes.roots[below],
            shift,
            centred=self._covariance or self._constant,
            seed=settings.seed,
            n_threads=self._threads,
        )
        numerators = [
            Numerator(classes.rows[i], classes.roots[i], [settings.seed, i, below])
            for i in items[rows, 0].tolist()
        ]
        pencils = WidePencils(
            denominator, numerators, self._centre(below), self._constant, self._threads
        )
        tolerance = TOLERANCES[classes.dtype]
        threshold = -np.inf if settings.threshold is None else float(settings.threshold)
        leading = [
            _above(result, threshold) for result in pencils.solve(self._count, threshold, tolerance)
        ]
        self.unfinished += sum(int((result.error > tolerance).sum()) for result in leading)
        for batch in _batches(leading):
            result = self._form(pencils, below, batch, leading, tolerance)
            for index, one in zip(batch, result, strict=True):
                yield int(rows[index]), one

    def _centre(self, below: int) -> Array | None:
        if not (self._constant or self._covariance):
            return None
        centre: Array = self._classes.means[below]
        return centre if centre.any() else None

    def _all_units(self) -> Array:
        """Trace / d of the denominators; where that is 0 the mean over classes, as in `pencils`."""
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
        pencils: WidePencils,
        below: int,
        batch: list[int],
        leading: list[Leading],
        tolerance: float,
    ) -> Iterator[_OfPair]:
        """Directions from eigenvectors on rows, some numerators at a time."""
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
            dense = None
            if self._classes.columns is None:
                dense = vectors[:, part] * sign * self._classes.factor[:, None]
            yield _OfPair(
                self._combination(i, below, pencils, block, beta[:, part], sums[part], sign),
                None if dense is None else dense.astype(self._classes.dtype),
                offset[part] * sign,
                leading[i].values,
                residuals[part],
                leading[i].steps,
            )

    def _combination(
        self,
        i: int,
        below: int,
        pencils: WidePencils,
        block: Array,
        beta: Array,
        sums: Array,
        sign: Array,
    ) -> Combination:
        """Factors of the rows of both classes that make the directions."""
        factor = sign / pencils.below.shift
        lower = beta * factor
        if pencils.centre is not None:
            lower -= pencils.below.root[:, None] * (sums * factor)
        above = self._classes.index_of(pencils.numerators[i].rows)
        return Combination(above, below, block * factor, lower)

    def _residuals(
        self,
        pencils: WidePencils,
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
    """Numerators whose directions are formed together: some 32 directions."""
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
    """Such that the entry of largest magnitude is positive; the constant's counts if there is."""
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
    result: list[_OfPair],
    items: NDArray[np.int64],
    labels: NDArray[Any],
    classes: WideClasses,
    scale: ScaleReport,
) -> WideSolution:
    counts = np.array([len(one.values) for one in result], dtype=np.int64)
    directions: Any
    if classes.columns is None:
        directions = np.concatenate([one.dense for one in result], axis=1)
    else:
        directions = WideDirections.of(classes, [one.combination for one in result])
    offset = np.concatenate([one.offset for one in result])
    if classes.columns is None and classes.origin.any():
        offset = offset - classes.origin @ directions
    ranks = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return WideSolution(
        directions,
        offset,
        np.concatenate([one.values for one in result]),
        labels[np.repeat(items, counts, axis=0)],
        ranks,
        scale,
        np.concatenate([one.residuals for one in result]),
        sum(one.steps for one in result),
    )


def refuse_moments(solver: str) -> None:
    """Raise ValueError if moments are to be solved by what needs rows."""
    if solver == "randomized":
        raise ValueError(
            "solver: expected one that works on moments for partial_fit and fit_moments, "
            "got 'randomized', which needs all samples in fit"
        )


def expand_wide(
    result: Directions,
    X: Floats | csr_array,
    *,
    expansion: str,
    powers: Sequence[int],
    n_threads: int | None,
) -> Floats:
    """Features of rows: their projections, expanded; see `GEM.transform`."""
    offset = result.offset if result.offset.any() else None
    projections = result.directions.project(X, offset, n_threads)
    if expansion == "none":
        return projections
    none = np.empty((0, projections.shape[1]), dtype=projections.dtype)
    options: dict[str, Any] = {"expansion": expansion, "powers": check_powers(powers)}
    return np.concatenate(
        [
            ExpandedRows(None, none, projections=projections[rows], **options).toarray()
            for rows in row_blocks(len(projections), projections.shape[1])
        ]
    )

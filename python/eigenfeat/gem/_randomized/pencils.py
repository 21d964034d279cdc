"""Algorithm 1, lines 2 to 5, from samples to directions without any matrix of d x d.

The samples of a class are an operator, denominators are inverted through the kernel of their
samples (`denominator`), and leading eigenpairs come from block Krylov spaces (`krylov`). A
direction is a combination of the samples of its two classes (`directions`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import show
from eigenfeat.gem._randomized.denominator import Denominator
from eigenfeat.gem._randomized.directions import Combination, RowCombinations
from eigenfeat.gem._randomized.krylov import Leading, PairOperator, leading_eigenpairs
from eigenfeat.gem._randomized.samples import ClassSamples, sort_by_class
from eigenfeat.pencils.problems import (
    DEFAULT_RIDGE,
    MAX_CLASSES_ALL,
    PencilOptions,
    SingularDenominatorError,
    class_pairs,
    directions_per_pair,
)

if TYPE_CHECKING:
    from eigenfeat._base.types import Labels
    from eigenfeat.samples.block_samples import LabelledSamples

__all__ = ["solve_pencils"]

Array = NDArray[np.float64]

TOLERANCES = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}  # of relative residuals
# Tolerances of the Krylov search and of inner solves, relative to the tolerance of residuals.
SEARCHES, SOLVES = 0.5, 0.01


@dataclass(frozen=True, eq=False)
class RandomizedSolution:
    """Directions and their accuracy."""

    directions: RowCombinations  # (d, F)
    offset: Array  # (F,)
    eigenvalues: Array  # (F,)
    pairs: Labels  # (F, 2) labels of the numerator and the denominator class
    ranks: NDArray[np.intp]  # (F,) ranks within the pairs
    column_scale: Array  # (d,) divisors of the columns
    residuals: Array  # (F,) ``|C_i v - lambda B_j v| / (lambda |B_j v|)``, from the samples
    steps: int  # vectors to which an operator ``B_j^-1 C_i`` was applied


def solve_pencils(
    samples: LabelledSamples,
    options: PencilOptions,
    log: Callable[[str, float], object],
) -> RandomizedSolution:
    """Solve the pencils of the chosen pairs of classes; Algorithm 1, lines 2-5, and section 5.

    `log` is called with a text and a start time after each denominator. ValueError if the pairs are
    between groups; SingularDenominatorError if all samples are zero or equal, so that there is no
    unit for the ridge; RuntimeWarning if directions did not converge.
    """
    block, labels = samples.together(), samples.classes
    items = _items(labels, options)
    movable, scaled = options.bordered or options.about_mean, options.scale == "columns"
    classes, scale = sort_by_class(block, scaled=scaled, movable=movable)
    units, count = _units(classes, options), directions_per_pair(options.n_directions, len(items))
    result: dict[int, _PairDirections] = {}
    for below in np.unique(items[:, 1]).tolist():
        started = time.perf_counter()
        denominator = _denominator(classes, below, units[below], options)
        for item in np.flatnonzero(items[:, 1] == below).tolist():
            pair = int(items[item, 0]), below
            result[item] = _pair_directions(classes, pair, denominator, options, count)
        log(f"pairs over class {labels[below]}", started)
    unfinished = sum(pair.unfinished for pair in result.values())
    if unfinished:
        warnings.warn(
            f"RandomizedGEM: expected residuals of at most {TOLERANCES[classes.dtype]:g}, got "
            f"larger residuals of {unfinished} directions; see residuals_",
            RuntimeWarning,
            stacklevel=4,
        )
    return _joined([result[item] for item in range(len(items))], items, labels, classes, scale)


def _items(labels: NDArray[Any], options: PencilOptions) -> NDArray[np.int64]:
    """Indices (F, 2) of the classes of each pair."""
    pairs: Any = options.pairs
    if isinstance(pairs, str) and pairs == "auto":
        pairs = "all" if len(labels) <= MAX_CLASSES_ALL else "hypercube"
    if isinstance(pairs, str) and pairs not in ("all", "hypercube"):
        raise ValueError(
            "pairs: expected 'auto', 'all', 'hypercube' or a list of pairs of labels, got "
            f"{show(pairs)}"
        )
    return class_pairs(labels, pairs, random_state=options.random_state)


def _units(classes: ClassSamples, options: PencilOptions) -> Array:
    """Mean eigenvalue of each denominator; where it is 0, the mean over all classes."""
    largest = float(classes.squares.max())
    least = 1e3 * float(np.finfo(np.float64).tiny) * classes.n_features
    if not np.isfinite(largest) or 0.0 < largest < least:
        raise ValueError(
            "X: expected samples whose squares fit float64, got squares that "
            f"{'vanish' if largest < 1.0 else 'overflow'}; scale the columns"
        )
    spread = classes.squares - (classes.means**2).sum(axis=1)
    origin = classes.mean if options.bordered else 0.0
    second = spread + ((classes.means - origin) ** 2).sum(axis=1)
    eps = float(np.finfo(np.float64).eps)
    noise = (100 * eps) ** 2 * second + 100 * eps * classes.squares
    traces = np.where(spread > noise, spread, 0.0) if options.about_mean else second
    traces = np.where(traces > 0, traces, 0.0)
    if not traces.max() > 0:
        raise SingularDenominatorError(
            "denominators are singular to working precision: all samples are zero or equal"
        )
    return np.where(traces > 0, traces, traces.mean()) / classes.n_features


def _denominator(
    classes: ClassSamples, below: int, unit: float, options: PencilOptions
) -> Denominator:
    """The denominator of a class, with its ridge.

    A class of n samples in d > n columns has at most n positive eigenvalues. The default ridge is
    therefore a multiple of their mean: relative to the mean over all d eigenvalues, it would be
    negligible.
    """
    n, d = len(classes.roots[below]), classes.n_features
    ridge: Any = options.ridge
    return Denominator(
        classes.rows[below],
        classes.roots[below],
        unit * (DEFAULT_RIDGE * d / min(d, n) if ridge is None else ridge),
        centred=options.bordered or options.about_mean,
        tolerance=SOLVES * TOLERANCES[classes.dtype],
        n_threads=options.n_threads or 0,
    )


@dataclass(eq=False)
class _PairDirections:
    """Directions of one pair of classes."""

    combination: Combination
    offset: Array
    values: Array
    residuals: Array
    steps: int
    unfinished: int  # directions whose error or residual is above the tolerance


def _pair_directions(
    classes: ClassSamples,
    pair: tuple[int, int],
    denominator: Denominator,
    options: PencilOptions,
    count: int,
) -> _PairDirections:
    """Solve one pair, and form its directions from the eigenvectors on the samples."""
    above, below = pair
    constant, centre = options.bordered, classes.means[below]
    if not (constant or options.about_mean):
        centre = np.zeros_like(centre)
    rows, root = classes.rows[above], classes.roots[above]
    operator = PairOperator(rows, root, denominator, centre, constant, options.n_threads or 0)
    threshold = -np.inf if options.threshold is None else float(options.threshold)
    tolerance = TOLERANCES[classes.dtype]
    seed: Any = [options.random_state, *pair]
    how = threshold, SEARCHES * tolerance, seed
    leading = leading_eigenpairs(operator, len(root), count, *how)
    block = leading.vectors / np.sqrt(leading.values)
    vectors, beta, sums = operator.solved(block, exactly=True)
    vectors -= centre[:, None] * sums
    vectors /= denominator.shift
    border = sums if constant else np.zeros(len(sums))
    offset = border - centre @ vectors
    sign = _signs(vectors, offset + classes.mean @ vectors, constant)
    factor = sign / denominator.shift
    residuals = _residuals(operator, leading, vectors, offset, border)
    lower = (beta - denominator.root[:, None] * sums) * factor if centre.any() else beta * factor
    return _PairDirections(
        Combination(above, below, block * factor, lower),
        offset * sign,
        leading.values,
        residuals,
        leading.steps,
        int((np.maximum(leading.errors, residuals) > tolerance).sum()),
    )


def _residuals(
    operator: PairOperator, leading: Leading, vectors: Array, offset: Array, border: Array
) -> Array:
    """Residuals (m,) of the pencil; `border` (m,) are the entries of the constant."""
    below, threads = operator.below, operator.n_threads
    heights = below.centre(below.rows.times(vectors, n_threads=threads))
    right = below.rows.transposed_times(heights, n_threads=threads) + below.shift * vectors
    right *= leading.values
    size = np.hypot(np.linalg.norm(right, axis=0), leading.values * border)
    heights = operator.rows.times(vectors, n_threads=threads) + operator.root[:, None] * offset
    total = operator.root @ heights
    right -= operator.rows.transposed_times(heights, n_threads=threads)
    right += operator.centre[:, None] * total
    last = total - leading.values * border if operator.constant else 0.0
    gap = np.hypot(np.linalg.norm(right, axis=0), last)
    return np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)


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

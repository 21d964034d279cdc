"""Signal and noise matrices of the Rayleigh quotient family, and the directions from them.

Karampatziakis and Mineiro (2014), section 3 and Table 1: directions v with a large
``v^T S v / v^T N v``. Both matrices come from `ClassMoments`, the directions from
`generalized_eigh`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.validation import varying
from eigenfeat.moments.class_moments import ClassMoments, pooled_mean, shares_and_means
from eigenfeat.pencils.fitted_directions import settle_scale
from eigenfeat.pencils.pencils import generalized_eigh
from eigenfeat.pencils.problems import SingularDenominatorError
from eigenfeat.pencils.sampling_noise import discriminant_ridge
from eigenfeat.pencils.span import Span, span_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Parameters:
    """An estimator's parameters at the time of its first samples."""

    n_components: int | None
    ridge: float | str
    scale: str
    center: bool
    n_threads: int | None


@dataclass(frozen=True, eq=False)
class Pooled:
    """Mean (d,) of all samples, covariance within classes and between their means (d, d).

    Both covariances are exactly 0 in columns that are constant up to rounding.
    """

    mean: Array
    within: Array
    between: Array
    n_classes: int
    weight: float  # sum over all samples
    constant: NDArray[np.bool_]  # (d,) columns that are constant up to rounding
    eps: float  # of the type in which products of samples were rounded

    def spread(self, center: bool) -> Array:
        """Return the covariance of all samples or, about the origin, their second moment."""
        covariance = self.within + self.between
        return covariance if center else covariance + np.outer(self.mean, self.mean)


@dataclass(frozen=True, eq=False)
class Pencil:
    """``S v = lambda N v`` in the units of the input; N = None is the identity.

    ``reason`` names the number that limits the directions to ``max_directions``. ``eps`` is that of
    the type in which S was rounded: float64 for means. With ``smallest``, the directions are the
    eigenvectors of S with the smallest eigenvalues.
    """

    signal: Array
    noise: Array | None
    max_directions: int
    reason: str = "columns"
    eps: float = float(np.finfo(np.float64).eps)
    smallest: bool = False


@dataclass(frozen=True, eq=False)
class RayleighDirections:
    """Directions (d, m), eigenvalues (m,), origin of the projections (d,), column divisors (d,).

    `ridge` is the given or chosen ridge, 0 without noise.
    """

    directions: Array
    eigenvalues: Array
    mean: Array
    column_scale: Array
    ridge: float = 0.0


PencilOf = Callable[[Pooled, Parameters], Pencil]


# ---- the lines of Table 1 ------------------------------------------------------------------------


def principal(pooled: Pooled, settings: Parameters) -> Pencil:
    """S = E[x x^T], N = I."""
    return Pencil(pooled.spread(settings.center), None, len(pooled.mean), eps=pooled.eps)


def vanishing(pooled: Pooled, settings: Parameters) -> Pencil:
    """S = I, N = E[x x^T]."""
    return replace(principal(pooled, settings), smallest=True)


def fisher(pooled: Pooled, settings: Parameters) -> Pencil:
    """S = E_y[E[x|y] E[x|y]^T], N = E_y[Cov[x|y]]."""
    rank, reason = _between_rank(pooled)
    return Pencil(pooled.between, pooled.within, rank, reason)


def sliced(pooled: Pooled, settings: Parameters) -> Pencil:
    """S = E_y[E[w|y] E[w|y]^T] with whitened w, S as in `fisher`; N = Cov[x]."""
    rank, reason = _between_rank(pooled)
    return Pencil(pooled.between, pooled.spread(True), rank, reason)


def oriented(pooled: Pooled, settings: Parameters, noise: ClassMoments | None) -> Pencil:
    """S = E[x x^T], N = E[z z^T]."""
    matrix = None if noise is None else pool(noise).spread(False)
    return replace(principal(pooled, settings), noise=matrix)


_IN_SPAN = (principal, fisher, sliced)  # directions are in the span of the samples


def _between_rank(pooled: Pooled) -> tuple[int, str]:
    d, others = len(pooled.mean), pooled.n_classes - 1
    return (d, "columns") if d <= others else (others, "classes - 1")


# ---- from moments to directions ------------------------------------------------------------------


def check_weight(moments: ClassMoments, name: str) -> None:
    """Raise ValueError unless there are samples of positive weight."""
    if not len(moments.active_classes):
        raise ValueError(f"{name}: expected samples of positive weight, got none")


def pool(moments: ClassMoments) -> Pooled:
    """Pool all classes that have weight. ValueError if there are none."""
    check_weight(moments, "X")
    labels, shares, means = shares_and_means(moments)
    mean = pooled_mean(shares, means)
    within = np.zeros((len(mean), len(mean)))
    for label, share in zip(labels, shares, strict=True):
        within += share * moments.covariance(label)
    gaps = (means - mean) * np.sqrt(shares)[:, None]
    constant = varying(np.diag(within) + np.einsum("kd,kd->d", gaps, gaps), mean) == 0
    gaps[:, constant] = 0.0
    within[constant] = within[:, constant] = 0.0
    eps = float(np.finfo(moments.product_dtype).eps)
    weight = sum(moments.weight(c) for c in labels)
    between = _symmetric(gaps.T @ gaps)
    return Pooled(mean, within, between, len(labels), weight, constant, eps)


def solve(
    pencil_of: PencilOf, moments: ClassMoments, settings: Parameters, *, supervised: bool
) -> RayleighDirections:
    """Pool the classes, form the pencil, and solve it in the scaled columns.

    ValueError if no class, or with `supervised` fewer than two, have weight, or `n_components`
    exceeds the number of directions; SingularDenominatorError if the noise is singular even with
    the ridge.
    """
    if supervised:
        check_two_labels(moments.active_classes)
    scale, span = settle_scale(moments, settings.scale, None).column_scale, None
    if pencil_of in _IN_SPAN or (pencil_of is vanishing and settings.n_components is not None):
        span = span_of(moments, scale, about_mean=settings.center)
    if span is not None and not _fits_in(span, pencil_of, settings, len(moments.active_classes)):
        span = None
    pooled = pool(moments if span is None else span.moments)
    return solve_pooled(pencil_of, pooled, scale, settings, span)


def _fits_in(span: Span, pencil_of: PencilOf, settings: Parameters, n_classes: int) -> bool:
    """Whether the span of the samples, or its complement, has enough dimensions for components."""
    n, (d, r) = settings.n_components, span.basis.shape
    if pencil_of is vanishing:
        return int(n or 1) <= d - r
    return max(1 if n is None else n, n_classes - 1) <= r


def solve_pooled(
    pencil_of: PencilOf, pooled: Pooled, scale: Array, settings: Parameters, span: Span | None
) -> RayleighDirections:
    """Solve the pencil of pooled classes; with a span, `pooled` is in the span's coordinates.

    A span is given only if directions vanish on all samples, or have eigenvalue 0 outside the span.
    """
    pencil = pencil_of(pooled, settings)
    if span is None:
        return _solved(pencil, pooled, scale, settings)
    mean = span.origin + span.scale * (span.basis @ pooled.mean)
    mean = mean if settings.center else np.zeros_like(span.origin)
    if pencil.smallest:
        vectors = _null_directions(pencil.signal, span, int(settings.n_components or 1))
        directions = np.ascontiguousarray(vectors / span.scale[:, None])
        return RayleighDirections(directions, np.zeros(vectors.shape[1]), mean, span.scale)
    unscaled = np.ones(len(pooled.mean))
    result = _solved(pencil, pooled, unscaled, settings, n_columns=len(span.origin))
    directions, _ = span.mapped(result.directions, None)
    return replace(
        result, directions=np.ascontiguousarray(directions), mean=mean, column_scale=span.scale
    )


def _null_directions(matrix: Array, span: Span, m: int) -> Array:
    """Return the first m directions (d, m) of `_smallest`, in the scaled columns.

    `matrix` (r, r) has the second moments of the span's coordinates; m is at most d - r.
    """
    values, vectors = np.linalg.eigh(matrix)
    bound = float(np.linalg.norm(matrix))
    basis = span.basis @ vectors[:, values > len(span.origin) * np.finfo(np.float64).eps * bound]
    sizes = 1.0 - np.einsum("ij,ij->i", basis, basis)
    return _by_pivots(lambda v: v - basis @ (basis.T @ v), sizes, m)


def _solved(
    pencil: Pencil,
    pooled: Pooled,
    scale: Array,
    settings: Parameters,
    n_columns: int | None = None,
) -> RayleighDirections:
    """Solve a pencil; in coordinates of a span, `n_columns` is the number of sample columns."""
    m = count_components(settings.n_components, pencil.max_directions, pencil.reason)
    ridge = 0.0
    signal = pencil.signal / scale / scale[:, None]
    exponent = 0
    if pencil.noise is None:  # scale the signal by a power of two to about 1
        exponent = int(np.frexp(np.diag(signal).max())[1])
        signal = np.ldexp(signal, -exponent)
    if pencil.smallest:
        values, vectors = _smallest(signal, m, settings.n_threads, pencil.eps)
    else:
        d = n_columns or len(scale)
        noise, ridge = _with_ridge(pencil, pooled, scale, settings.ridge, d)
        values, vectors = eigenpairs(signal, noise, m, settings.n_threads, ridge, d)
        if settings.n_components is None:
            values, vectors = _of_rank(values, vectors, pencil.eps)
        _clear_columns_without_signal(signal, noise, values, vectors, pencil.eps)
    mean = pooled.mean if settings.center else np.zeros_like(pooled.mean)
    directions = np.ascontiguousarray(vectors / scale[:, None])
    values = np.ldexp(np.maximum(values, 0.0), exponent)
    return RayleighDirections(directions, values, mean, scale, ridge)


def _clear_columns_without_signal(
    signal: Array, noise: Array, values: Array, vectors: Array, eps: float
) -> None:
    """Set entries of directions to 0 in columns without signal, such as constant columns.

    Without rounding such entries are 0 if the noise of these columns and of others is uncorrelated.
    """
    empty = np.asarray(~signal.any(axis=0))
    empty[empty] = ~noise[np.ix_(~empty, empty)].any(axis=0)
    large = values > len(vectors) * eps * values[0]
    vectors[np.ix_(empty, large)] = 0.0


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2


def count_components(n_components: int | None, most: int, reason: str) -> int:
    """Return the number of components, by default all.

    ValueError if `n_components` exceeds `most`; the message explains the limit by `reason`.
    """
    if n_components is None:
        return most
    if n_components > most:
        raise ValueError(f"n_components: expected at most {most} ({reason}), got {n_components}")
    return int(n_components)


def _with_ridge(
    pencil: Pencil, pooled: Pooled, scale: Array, ridge: float | str, n_columns: int
) -> tuple[Array, float]:
    """Return the scaled noise matrix plus the ridge, a multiple of its mean eigenvalue.

    If the noise is zero up to rounding, the signal's mean eigenvalue is used instead. "auto"
    chooses the ridge, and multiplies the matrix by the scale of `discriminant_ridge`.
    """
    r, size = len(scale), 1.0
    if pencil.noise is None:
        return np.eye(r), 0.0
    noise = pencil.noise / scale / scale[:, None]
    unit = noise_unit(noise, pooled, scale, pencil.signal)
    if isinstance(ridge, str):
        values, vectors = np.linalg.eigh(noise)
        signal = (pencil.signal / scale / scale[:, None]) @ vectors
        between = np.einsum("ij,ij->j", vectors, signal)
        counts = pooled.weight, pooled.n_classes, n_columns
        ridge, size = discriminant_ridge(values, between, *counts)
    noise[np.arange(r), np.arange(r)] += ridge * unit / n_columns
    noise *= size
    return noise, ridge


def noise_unit(noise: Array, pooled: Pooled, scale: Array, signal: Array | None = None) -> float:
    """Trace of scaled noise (d, d), or of the signal (default `between`) for noise of rounding."""
    sizes = (np.diag(pooled.spread(False)) / scale) / scale
    size = float(np.sum(sizes[~pooled.constant]))
    unit = float(np.trace(noise))
    if unit > (100 * np.finfo(np.float64).eps) ** 2 * size:
        return unit
    return float(np.sum(np.diag(pooled.between if signal is None else signal) / scale / scale))


def _smallest(matrix: Array, m: int, n_threads: int | None, eps: float) -> tuple[Array, Array]:
    """Return the m smallest eigenvalues, ascending, and vectors; `matrix` may be singular.

    The vectors belong to the largest eigenvalues of ``t I - matrix``, where t bounds all
    eigenvalues. Rayleigh quotients give the eigenvalues, as a subtraction from t would lose digits.
    """
    identity = np.eye(len(matrix))
    bound = float(np.linalg.norm(matrix))
    _, vectors = eigenpairs(bound * identity - matrix, identity, m, n_threads)
    values = np.einsum("ij,ij->j", vectors, matrix @ vectors)
    order = np.argsort(values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    null = int(np.sum(values <= len(matrix) * eps * bound))
    basis = vectors[:, :null]
    sizes = np.einsum("ij,ij->i", basis, basis)
    vectors[:, :null] = _by_pivots(lambda v: basis @ (basis.T @ v), sizes, null)
    return values, vectors


def _by_pivots(project: Callable[[Array], Array], sizes: Array, m: int) -> Array:
    """Return m orthonormal vectors (d, m) of a subspace that depend on the subspace alone.

    Directions of equal eigenvalue otherwise depend on rounding. `project` is the projection of a
    vector on the subspace, and `sizes` (d,) are the squared norms of the projections of the axes,
    and are overwritten. Each vector is the projection of the axis closest to the subspace, minus
    the parts along earlier vectors.
    """
    chosen = np.zeros((len(sizes), m))
    for k in range(m):
        new, before = chosen[:, k], chosen[:, :k]
        # The first of the axes that are equally close up to rounding.
        new[np.argmax(sizes > (1 - 1e-6) * sizes.max())] = 1.0
        for _ in range(2):  # twice, because of rounding
            new[:] = project(new)
            new -= before @ (before.T @ new)
        new /= np.linalg.norm(new)
        sizes -= new**2
    return chosen


def _of_rank(values: Array, vectors: Array, eps: float) -> tuple[Array, Array]:
    """Drop directions whose signal is within rounding errors, except the first direction."""
    smallest_signal = len(vectors) * eps * values[0]
    selected = max(1, int(np.sum(values > smallest_signal)))
    return values[:selected], vectors[:, :selected]


def eigenpairs(
    signal: Array,
    noise: Array,
    m: int,
    n_threads: int | None,
    ridge: float = 0.0,
    n_columns: int = 1,
) -> tuple[Array, Array]:
    """Return the m largest eigenvalues of ``signal v = lambda noise v``, and vectors.

    The noise includes the ridge, a multiple of its trace over `n_columns`. If it is singular, a
    SingularDenominatorError names a sufficient ridge.
    """
    try:
        result = generalized_eigh(signal, noise, m, n_threads=n_threads)
    except np.linalg.LinAlgError as error:
        raise _singular(noise, ridge, n_columns) from error
    return result.eigenvalues, result.vectors


def _singular(noise: Array, ridge: float, n_columns: int) -> SingularDenominatorError:
    """Return the error for a singular noise matrix, with a sufficient ridge."""
    text = f"ridge: expected a number that makes the noise matrix positive definite, got {ridge:g}"
    unit = float(np.trace(noise)) / (n_columns + ridge * len(noise))
    if not unit > 0:
        kind = "so is the signal" if ridge > 0 else "any ridge > 0 suffices, if samples differ"
        return SingularDenominatorError(f"{text}; the noise matrix is zero, {kind}")
    rounding = 100 * len(noise) * np.finfo(np.float64).eps * float(np.diag(noise).max())
    values = np.linalg.eigvalsh(noise)
    needed = ridge + (rounding - min(float(values[0]), 0.0)) / unit
    return SingularDenominatorError(f"{text}; ridge={10.0 ** np.ceil(np.log10(needed)):g} suffices")

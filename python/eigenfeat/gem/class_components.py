"""Principal and vanishing components of each class, expanded as in GEM.

Karampatziakis and Mineiro (2014, section 2) compare GEM with such components: a direction with
large projections of one class need not be specific to that class.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.labels import check_two_labels
from eigenfeat.gem.gem import GEM
from eigenfeat.pencils import rayleigh_matrices as matrices
from eigenfeat.pencils.fitted_directions import Solution, settle_scale
from eigenfeat.pencils.span import Span, span_of

if TYPE_CHECKING:
    from eigenfeat.moments.class_moments import ClassMoments

__all__ = ["ClassComponents"]


class ClassComponents(GEM):
    """Features from the principal or vanishing components of each class.

    Use it to compare GEM with principal components of each class. Tune `n_directions`. User guide:
    :doc:`/guide/reduction`.

    For each class c, the directions are the unit vectors with the largest ("principal") or smallest
    ("vanishing") mean square ``v^T C_c v`` of the samples of the class. These are PCA by class, as
    in SIMCA, and the linear polynomials of vanishing component analysis. Projections are expanded
    as in :class:`GEM`, which uses the ratio of two classes' mean squares instead.

    Parameters
    ----------
    kind : {"principal", "vanishing"}, default="principal"
        The end of each class's spectrum that is used.
    n_directions : int >= 1, default=10
        Number of directions of a class, at most d. Principal directions without variance are
        dropped.
    center : {"class", "all"}, default="class"
        The origin of ``C_c``: the class's mean (a covariance) or the mean of all samples.
    scale : {"none", "columns"}, default="columns"
        Whether to divide columns by their standard deviations first. Directions have unit length in
        these units.
    expansion : {"half_wave", "shifted", "polynomial", "none"}, default="shifted"
        As in :class:`GEM`. "shifted" is smooth at 0, where projections on vanishing components lie.
        Roots of half waves would amplify rounding errors there.
    powers, include_input, n_threads, verbose
        As in :class:`GEM`.

    Attributes
    ----------
    directions_, offset_
        Directions (d, F) and offsets (F,); projections are ``X @ directions_ + offset_``.
    eigenvalues_ : (F,) array
        Mean squares of the projections over the samples of their class; within a class, descending
        if principal, else ascending.
    pairs_ : (F, 2) array
        Class of each direction, in both columns.
    ranks_, classes_, moments_, column_scale_, n_features_in_, feature_names_in_
        As in :class:`GEM`.

    See Also
    --------
    GEM : Ratios of two classes.
    eigenfeat.rayleigh.RayleighPCA : All samples together.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), section 2. S. Wold and M. Sjostrom, "SIMCA", 1977.
    R. Livni et al., "Vanishing component analysis", ICML 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.gem import ClassComponents
    >>> X, y = load_iris(return_X_y=True)
    >>> ClassComponents(n_directions=2, expansion="none").fit_transform(X, y).shape
    (150, 6)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions({"principal", "vanishing"})],
        "n_directions": [Interval(Integral, 1, None, closed="left")],
        "center": [StrOptions({"class", "all"})],
        "scale": [StrOptions({"none", "columns"})],
        **{
            name: GEM._parameter_constraints[name]
            for name in ("powers", "include_input", "n_threads", "verbose")
        },
        "expansion": [StrOptions({"half_wave", "shifted", "polynomial", "none"})],
    }

    random_state, constant = 0, True  # GEM's parameters, without effect

    def __init__(
        self,
        kind: str = "principal",
        n_directions: int = 10,
        *,
        center: str = "class",
        scale: str = "columns",
        expansion: str = "shifted",
        powers: Sequence[int] = (1, 2, 3),
        include_input: bool = False,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kind = kind
        self.n_directions = n_directions
        self.center = center
        self.scale = scale
        self.expansion = expansion
        self.powers = powers
        self.include_input = include_input
        self.n_threads = n_threads
        self.verbose = verbose

    def _options(self) -> Any:
        parameters = matrices.Parameters(
            int(self.n_directions), 0.0, self.scale, self.center == "class", self.n_threads
        )
        return parameters, self.kind == "vanishing"

    def _solve(self, moments: ClassMoments, options: Any) -> Solution:
        return _solve_classes(moments, *options)

    def _stem(self, pair: Any, rank: int) -> str:
        return f"{self.kind}_{pair[0]}_rank{rank}"


def _solve_classes(
    moments: ClassMoments, settings: matrices.Parameters, smallest: bool
) -> Solution:
    """Return the directions of each class, in the units of the input."""
    labels = moments.active_classes
    check_two_labels(labels)
    report = settle_scale(moments, settings.scale, None)
    d, scale = len(report.column_scale), report.column_scale
    m = min(int(settings.n_components or 1), d)
    span = span_of(moments, scale, about_mean=True)
    if span is not None and smallest and m > d - span.basis.shape[1]:
        span = None  # fewer than m directions vanish on all samples
    if span is not None:
        moments, scale = span.moments, np.ones(span.basis.shape[1])
    pooled = matrices.pool(moments)
    directions, offsets, values, ranks = [], [], [], []
    for label in labels:
        mean, matrix = moments.mean(label), moments.covariance(label)
        origin = mean if settings.center else pooled.mean
        shift = mean - origin
        matrix = (matrix + np.outer(shift, shift)) / scale / scale[:, None]
        matrix[pooled.constant] = matrix[:, pooled.constant] = 0.0
        size = np.trace(matrix) + np.sum((mean / scale)[~pooled.constant] ** 2)
        if not np.trace(matrix) > (100 * np.finfo(np.float64).eps) ** 2 * size:
            matrix = np.zeros_like(matrix)  # variances of equal samples are rounding errors
        if span is None:
            result, vectors = _end_of_spectrum(matrix, m, settings, smallest, pooled.eps)
            vectors = vectors / scale[:, None]
        else:
            result, vectors = _end_of_spectrum_in_span(
                span, matrix, m, settings, smallest, pooled.eps
            )
            origin = span.origin + span.scale * (span.basis @ origin)
        directions.append(vectors)
        offsets.append(-(origin @ vectors))
        values.append(result)
        ranks.append(np.arange(len(result)))
    return Solution(
        np.ascontiguousarray(np.hstack(directions)),
        np.concatenate(offsets),
        np.concatenate(values),
        np.repeat(labels, [len(r) for r in ranks])[:, None].repeat(2, axis=1),
        np.concatenate(ranks),
        report,
    )


def _end_of_spectrum(
    matrix: NDArray[np.float64],
    m: int,
    settings: matrices.Parameters,
    smallest: bool,
    eps: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not smallest and not matrix.any():
        return np.empty(0), np.empty((len(matrix), 0))
    exponent = int(np.frexp(np.diag(matrix).max())[1])  # a power of two that scales entries to 1
    matrix = np.ldexp(matrix, -exponent)
    if smallest:  # all vectors, because a part of a null space has no unique basis
        values, vectors = matrices.smallest(matrix, len(matrix), settings, eps)
        values, vectors = values[:m], vectors[:, :m]
    else:
        values, vectors = matrices.eigenpairs(matrix, np.eye(len(matrix)), m, settings)
        values, vectors = matrices.of_rank(values, vectors, eps)
    return np.ldexp(np.maximum(values, 0.0), exponent), vectors


def _end_of_spectrum_in_span(
    span: Span,
    matrix: NDArray[np.float64],
    m: int,
    settings: matrices.Parameters,
    smallest: bool,
    eps: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As `_end_of_spectrum`, for a matrix (r, r) of a span's coordinates."""
    if smallest:
        null = matrices.null_directions(matrix, span, m)
        assert null is not None  # there are at least d - r directions
        return np.zeros(m), null / span.scale[:, None]
    values, vectors = _end_of_spectrum(matrix, min(m, len(matrix)), settings, smallest, eps)
    return values, span.mapped(vectors, None)[0]

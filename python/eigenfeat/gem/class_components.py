"""Principal and vanishing components of each class, expanded as in GEM.

Karampatziakis and Mineiro (2014, section 2) compare GEM with such components: a direction with
large projections of one class need not be specific to that class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.validation import varying
from eigenfeat.gem.gem import GEM
from eigenfeat.pencils import rayleigh_matrices as matrices
from eigenfeat.pencils.fitted_directions import Solution, settle_scale
from eigenfeat.pencils.span import span_of

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
    powers : distinct numbers out of 1, 2, 3, default=(1, 2, 3)
        Exponents of the expansion, as in :class:`GEM`.
    n_threads : int or None, default=None
        Number of threads; None means all.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    directions_ : (d, F) array
        One direction per column; projections are ``X @ directions_ + offset_``.
    offset_ : (F,) array
        Negative projections of the origins.
    eigenvalues_ : (F,) array
        Mean squares of the projections over the samples of their class; within a class, descending
        if principal, else ascending.
    pairs_ : (F, 2) array
        Class of each direction, in both columns.
    ranks_ : (F,) array
        Rank of each direction in its pair, from 0.
    classes_ : (k,) array
        Labels, sorted.
    moments_ : ClassMoments
        Moments of the classes, from which the directions are computed.
    column_scale_ : (d,) array
        Divisors of the columns.
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : (d,) array of str
        Names of the input features, if they have names.

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
        **{name: GEM._parameter_constraints[name] for name in ("powers", "n_threads", "verbose")},
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
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kind = kind
        self.n_directions = n_directions
        self.center = center
        self.scale = scale
        self.expansion = expansion
        self.powers = powers
        self.n_threads = n_threads
        self.verbose = verbose

    def _options(self) -> Any:
        names = ("kind", "n_directions", "center", "scale", "n_threads")
        return {name: getattr(self, name) for name in names}

    def _solve(self, moments: ClassMoments, options: Any) -> Solution:
        return _solve_classes(moments, **options)

    def _stem(self, pair: Any, rank: int) -> str:
        return f"{self.kind}_{pair[0]}_rank{rank}"


def _solve_classes(
    moments: ClassMoments,
    kind: str,
    n_directions: int,
    center: str,
    scale: str,
    n_threads: int | None,
) -> Solution:
    """Return the directions of each class, in the units of the input."""
    labels, smallest = moments.active_classes, kind == "vanishing"
    check_two_labels(labels)
    report = settle_scale(moments, scale, None)
    d = len(report.column_scale)
    m = min(int(n_directions), d)
    span = span_of(moments, report.column_scale, about_mean=True)
    if span is not None and smallest and m > d - span.basis.shape[1]:
        span = None  # fewer than m directions vanish on all samples
    moments = moments if span is None else span.moments
    count: int | None = m
    if not smallest:
        count = min(m, moments.n_features_in_)
    elif span is None:
        count = None  # all vectors, because a part of a null space has no unique basis
    settings = matrices.Parameters(count, 0.0, scale, True, n_threads)
    pencil_of = matrices.vanishing if smallest else matrices.principal
    pooled = matrices.pool(moments)
    parts = []
    for label in labels:
        alone = _pooled_class(moments, label, pooled, center)
        result = matrices.solve_pooled(pencil_of, alone, report.column_scale, settings, span)
        values = result.eigenvalues[:m]
        if not smallest:
            values = values[values > d * pooled.eps * values[0]]
        directions = result.directions[:, : len(values)]
        pairs = np.full((len(values), 2), label, dtype=labels.dtype)
        parts.append((directions.T, -(result.mean @ directions), values, pairs))
    rows, offset, eigenvalues, pairs = map(np.concatenate, zip(*parts, strict=True))
    ranks = np.concatenate([np.arange(len(values)) for _, _, values, _ in parts])
    return Solution(np.ascontiguousarray(rows.T), offset, eigenvalues, pairs, ranks, report)


def _pooled_class(
    moments: ClassMoments, label: Any, pooled: matrices.Pooled, center: str
) -> matrices.Pooled:
    """Return the moments of a class, about its mean or the mean of all samples."""
    mean, within = moments.mean(label), moments.covariance(label)
    equal = varying(np.diag(within), mean) == 0
    within[equal] = within[:, equal] = 0.0
    origin = mean if center == "class" else pooled.mean
    apart = np.where(pooled.constant, 0.0, mean - origin)
    return replace(pooled, mean=origin, within=within, between=np.outer(apart, apart))

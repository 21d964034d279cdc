"""Whether the class of each row dominates over a set of a given radius about its mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core
from eigenfeat.incomplete._classifiers.discriminants import Linear, Quadratic
from eigenfeat.incomplete._rules.rule import (
    Case,
    pair_variances,
    rivals_of,
    slope_variances,
    square_roots,
)
from eigenfeat.incomplete._series.rounding import of_quadratics, share
from eigenfeat.regions.dominance import box_minimum
from eigenfeat.regions.trust_region import certified_sign

if TYPE_CHECKING:
    from eigenfeat.incomplete._completion.sets import ConfidenceSet

__all__ = ["levels_over_sets", "over_set", "shares_quadratics"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

_ITEMS_A_GROUP = 3  # from here on one eigendecomposition is less work than a reduction for each


def over_set(
    case: Case,
    kind: ConfidenceSet,
    radius: _Array,
    best: _Codes,
    allowed: NDArray[np.bool_],
    counted: bool = True,
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Whether the guesses dominate over sets of the radii; checks, and those left open.

    Unless `counted`, the latter two may be 0.
    """
    if isinstance(case.functions, Linear) and kind.full_covariance:
        return _linear_over_ellipsoid(case, radius, best, allowed, counted)
    if case.separable is None or kind.full_covariance:
        return _pair_by_pair(case, kind, radius, best, allowed)
    widths = np.sqrt(case.known.variance)
    found = case.separable.dominating(
        case.mean, widths, radius, kind.shape, "guess", case.n_threads
    )
    winning = (found.winners >= 0) & allowed
    return winning, found.checks.astype(np.intp), found.open.astype(np.intp)


def _linear_over_ellipsoid(
    case: Case, radius: _Array, best: _Codes, allowed: NDArray[np.bool_], counted: bool
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Proposition 2: (f_c - f_h)(m) against radius |R^(1/2) (beta_c - beta_h)|."""
    scores = case.scores
    shared = case.shared
    if shared is not None and shared.pair_variances is not None and len(shared.pair_variances) == 1:
        variance = shared.pair_variances[0, best]
    elif case.by_scores:
        variance = pair_variances(case.known.covariance, best)
    else:
        variance = slope_variances(case, case.known.covariance, np.arange(len(best)), best)
    spread = np.sqrt(variance)
    rows = np.arange(len(best))
    margin = scores[rows, best][:, None] - scores
    size = case.magnitudes + case.magnitudes[rows, best][:, None]
    fall = radius[:, None] * spread
    least, reach = margin - fall, share(case.n_features) * (size + fall)
    rivals = rivals_of(case.discriminants.labels, best)
    holds = ~rivals | (least >= reach)
    if not counted:
        none = np.zeros(len(best), dtype=np.intp)
        return holds.all(axis=1) & allowed, none, none
    near = rivals & (np.abs(least) < reach)
    checks = _checks_until_failure(holds, rivals, scores)
    return holds.all(axis=1) & allowed, checks, near.sum(axis=1)


def _checks_until_failure(holds: Any, rivals: Any, scores: _Array) -> NDArray[np.intp]:
    """How many checks a sequence takes that begins with the nearest rival and ends on a failure."""
    order = np.argsort(np.where(rivals, -scores, np.inf), axis=1, kind="stable")
    failing = ~np.take_along_axis(holds, order, axis=1)
    first = np.where(failing.any(axis=1), failing.argmax(axis=1) + 1, rivals.sum(axis=1))
    return np.asarray(first, dtype=np.intp)


def _pair_by_pair(
    case: Case, kind: ConfidenceSet, radius: _Array, best: _Codes, allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Differences that are not separable: in rounds of checks, for the rows that hold so far."""
    if shares_quadratics(case, kind) and len(best) >= _ITEMS_A_GROUP * _n_groups(case, best):
        levels, checks, open_ = levels_over_sets(case, kind, radius[:, None], best, allowed)
        return levels > 0, checks, open_
    n, k = case.scores.shape
    rivals = rivals_of(case.discriminants.labels, best)
    order = np.argsort(np.where(rivals, -case.scores, np.inf), axis=1, kind="stable")
    alive, checks = allowed.copy(), np.zeros(n, dtype=np.intp)
    open_ = np.zeros(n, dtype=np.intp)
    for step in range(k):
        rows = np.flatnonzero(alive & (rivals.sum(axis=1) > step))
        if not len(rows):
            break
        sign = _signs(case, kind, radius[rows], rows, best[rows], order[rows, step])
        checks[rows] += 1
        open_[rows] += sign == 0
        alive[rows] = sign > 0
    return alive, checks, open_


def shares_quadratics(case: Case, kind: ConfidenceSet) -> bool:
    """Whether samples with the same entries known have the same quadratic for a pair of classes."""
    return (
        isinstance(case.functions, Quadratic)
        and kind.shape == "ball"
        and case.known.means.shape[1] == 1
        and bool(np.isfinite(case.scores).all())
    )


def _n_groups(case: Case, best: _Codes) -> int:
    return len(np.unique(case.known.pattern * case.discriminants.count + best))


def levels_over_sets(
    case: Case,
    kind: ConfidenceSet,
    radii: _Array,
    best: _Codes,
    allowed: NDArray[np.bool_],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """At how many of the first levels the guesses dominate; checks, and those left open.

    Radii (n, t) ascend along the levels. Differences of two quadratic discriminants over the ball
    of a pattern are ``x^T S^T V S x + 2 (S^T g)^T x + c`` with S S^T the covariance of the pattern,
    where only g and c depend on the sample: one eigendecomposition for each pattern and pair of
    classes serves all samples and all levels.
    """
    n, k = case.scores.shape
    rivals = rivals_of(case.discriminants.labels, best)
    order = np.argsort(np.where(rivals, -case.scores, np.inf), axis=1, kind="stable")
    levels = np.where(allowed, radii.shape[1], 0)
    checks, open_ = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    n_rivals = rivals.sum(axis=1)
    for step in range(k):
        rows = np.flatnonzero((levels > 0) & (n_rivals > step))
        if not len(rows):
            break
        checks[rows] += 1
        limits = levels[rows]
        levels[rows], some = _proved(case, kind, radii[rows], rows, best, order[:, step], limits)
        open_[rows] += some
    return levels, checks, open_


def _proved(
    case: Case,
    kind: ConfidenceSet,
    radii: _Array,
    rows: _Codes,
    best: _Codes,
    rival: _Codes,
    limits: NDArray[np.intp],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Levels, up to `limits`, at which f_c - f_h is proved to be positive; if the next is open."""
    functions, pattern = case.functions, case.known.pattern[rows]
    assert isinstance(functions, Quadratic)
    keys = (pattern * functions.count + best[rows]) * functions.count + rival[rows]
    sorting = np.argsort(keys, kind="stable")
    rows, pattern, radii = rows[sorting], pattern[sorting], radii[sorting]
    c, h = best[rows], rival[rows]
    first = np.flatnonzero(np.diff(keys[sorting], prepend=-1))
    pairs, form_of = np.unique(np.stack([c[first], h[first]], axis=1), axis=0, return_inverse=True)
    forms = functions.forms(pairs[:, 0], pairs[:, 1])
    groups = np.stack([form_of.reshape(-1), pattern[first]], axis=1)
    slopes = 0.5 * (case.pulls[rows, h] - case.pulls[rows, c])
    if kind.full_covariance:
        forms, slopes, groups, widths = _by_roots(case, forms, slopes, groups, pattern)
        size = np.linalg.norm(case.roots, axis=(1, 2))
    else:
        widths = np.sqrt(case.known.variances[:, 0])
        size = np.linalg.norm(widths, axis=1)
    constant = case.scores[rows, c] - case.scores[rows, h]
    # What evaluating two scores and a difference may have lost.
    constant -= share(case.n_features) * (case.magnitudes[rows, c] + case.magnitudes[rows, h])
    curved, sloped = functions.difference_sizes(case.mean, rows, c, h)
    reach = size[pattern][:, None] * radii
    slack = of_quadratics(curved[:, None], sloped[:, None], reach, case.n_features)
    found, open_ = core.proved_levels(
        forms,
        widths,
        np.ascontiguousarray(groups, dtype=np.int64),
        np.append(first, len(rows)).astype(np.int64),
        np.ascontiguousarray(slopes),
        constant[:, None] - slack,
        np.ascontiguousarray(radii),
        np.ascontiguousarray(limits[sorting], dtype=np.int64),
        case.n_threads,
    )
    levels, more = np.empty_like(found), np.empty_like(open_)
    levels[sorting], more[sorting] = found, open_
    return levels, more


def _by_roots(
    case: Case, forms: _Array, slopes: _Array, groups: NDArray[np.intp], pattern: _Codes
) -> tuple[_Array, _Array, NDArray[np.intp], _Array]:
    """Forms and slopes in the coordinates u of ``x = m + S u``, a form for each group."""
    roots = case.roots[groups[:, 1]]
    inner = np.einsum("nia,nij,njb->nab", roots, forms[groups[:, 0]], roots, optimize=True)
    turned = np.einsum("nia,ni->na", case.roots[pattern], slopes)
    every = np.arange(len(groups))
    d = forms.shape[1]
    return inner, turned, np.stack([every, np.zeros_like(every)], axis=1), np.ones((1, d))


def _signs(
    case: Case, kind: ConfidenceSet, radius: _Array, rows: _Codes, c: _Codes, h: _Codes
) -> NDArray[np.int32]:
    """Signs of the minima of f_c - f_h over the sets of some rows."""
    constant = case.scores[rows, c] - case.scores[rows, h]
    # What evaluating two scores and a difference may have lost.
    constant -= share(case.n_features) * (case.magnitudes[rows, c] + case.magnitudes[rows, h])
    V, g = case.functions.difference(case.mean, rows, c, h)
    sizes = case.functions.difference_sizes(case.mean, rows, c, h)
    if kind.shape == "box":
        return _box_signs(case, V, g, sizes, constant, radius, rows)
    root = _roots(case, kind, rows)
    A = np.einsum("nia,nij,njb->nab", root, V, root, optimize=True)
    A = 0.5 * (A + A.transpose(0, 2, 1))
    slopes = np.einsum("nia,ni->na", root, g)
    reach = np.linalg.norm(root, axis=(1, 2)) * radius
    constant -= of_quadratics(*sizes, reach, case.n_features)
    threads = case.n_threads or None
    return np.asarray(certified_sign(A, slopes, constant, radius, n_threads=threads).sign)


def _roots(case: Case, kind: ConfidenceSet, rows: _Codes) -> _Array:
    """(n, d, d): x = m + root u."""
    if not kind.full_covariance:
        return np.sqrt(case.known.variance[rows])[:, :, None] * np.eye(case.n_features)
    if case.known.means.shape[1] == 1 and case.known.covariances is not None:
        return case.roots[case.known.pattern[rows]]
    return square_roots(case.known.covariance[rows])


def _box_signs(
    case: Case,
    V: _Array,
    g: _Array,
    sizes: tuple[_Array, _Array],
    constant: _Array,
    radius: _Array,
    rows: _Codes,
) -> NDArray[np.int32]:
    """In the eigenvectors of V, with a box there (Parrish 2012, (5.15), (5.16))."""
    # Axes of what varies alone: what is known must not be mixed with it.
    varies = case.known.variance[rows] > 0
    every = np.arange(V.shape[1])
    V = np.where(varies[:, :, None] & varies[:, None], V, 0.0)
    size = np.abs(V).sum(axis=2).max(axis=1)
    V[:, every, every] += np.where(varies, 0.0, 4 * np.where(size > 0, size, 1.0)[:, None])
    values, Q = np.linalg.eigh(V)
    covariance = case.known.covariance[rows]
    variance = np.einsum("nia,nij,nja->na", Q, covariance, Q, optimize=True)
    widths = radius[:, None] * np.sqrt(np.maximum(variance, 0.0))
    slopes = np.einsum("nia,ni->na", Q, g)
    least = constant + box_minimum(values, slopes, widths, case.n_threads)
    # Eigenvalues and slopes along eigenvectors are off by shares of |V|, what was added to its
    # diagonal included, and |g|.
    curved, sloped = sizes
    slack = of_quadratics(5 * curved, sloped, np.linalg.norm(widths, axis=1), case.n_features)
    return np.where(least >= slack, 1, np.where(least < -slack, -1, 0)).astype(np.int32)

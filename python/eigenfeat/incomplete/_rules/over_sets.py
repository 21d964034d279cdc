"""Whether the class of each row dominates over a set of a given radius about its mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.incomplete._classifiers.discriminants import Linear
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

__all__ = ["over_set"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]


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

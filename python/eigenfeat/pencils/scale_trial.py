"""Whether columns should be divided by their standard deviations: a trial on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core
from eigenfeat._base.threads import resolve
from eigenfeat.expansion.features import expand
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.pencils import pair_directions
from eigenfeat.pencils.scale import ScaleReport, by_rule, column_deviations, scale_report
from eigenfeat.pencils.solution import Settings, directions_of_each

if TYPE_CHECKING:
    from eigenfeat.rows.labelled import LabelledRows

__all__ = ["tried_scales"]

Array = NDArray[np.float64]

FEWEST_ROWS = 300  # a trial on fewer rows is mostly noise
MOST_ROWS = 3000
MOST_FEATURES = 5000  # beyond, a trial costs more than it tells
MANY = 400  # from here on one half is held out only, and pairs go one way round
VERY_MANY = 1500  # from here on four classes must do
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def tried_scales(
    settings: Settings, rows: LabelledRows, moments: ClassMoments
) -> ScaleReport | None:
    """The trial's report, or None where none is wanted or worth its time.

    Parameters
    ----------
    settings : Settings
    rows : LabelledRows
        Of which only those drawn are looked at.
    moments : ClassMoments
        Of all rows.
    """
    few = len(moments.active_classes) < 2
    d = moments.n_features_in_
    if settings.scale != "auto" or few or not _can_try(rows.n_rows, d):
        return None
    chosen = _trial_rows(rows.codes, d, settings.seed)
    if not len(chosen):  # all classes but one have a single row
        return None
    drawn = rows.take(chosen)
    return _by_trial(drawn.X, rows.classes[drawn.y], drawn.weight, moments, settings)


def _can_try(n_rows: int, n_features: int) -> bool:
    """Whether a trial is worthwhile for these numbers of rows and columns."""
    return n_rows >= FEWEST_ROWS and n_features <= MOST_FEATURES


def _trial_rows(codes: NDArray[Any], n_features: int, seed: int) -> NDArray[np.intp]:
    """Draw a stratified subsample of at most 3,000 rows; their numbers, class by class.

    ``codes`` (n,) are the classes' indices.
    """
    most_classes = 4 if n_features >= VERY_MANY else 16
    return _subsample(codes, most_classes, np.random.RandomState(seed))


def _by_trial(
    X: Any,
    labels: NDArray[Any],
    sample_weight: Array | None,
    moments: ClassMoments,
    settings: Settings,
) -> ScaleReport:
    """Choose by the held-out error of a small expansion and a least-squares classifier.

    The samples, as `_trial_rows` draws them, are halved; each half serves once for fitting and once
    for counting errors, or, where columns are many, once only. Where the errors differ by less
    than a standard error, the rule on the standard deviations decides. The moments are those of
    all samples.
    """
    deviations = column_deviations(moments)
    d = X.shape[1]
    weights = np.ones(len(labels)) if sample_weight is None else sample_weight
    halves = (np.arange(0, len(labels), 2), np.arange(1, len(labels), 2))
    folds = [halves] if d >= MANY else [halves, halves[::-1]]
    held_out = np.concatenate([weights[some] for _, some in folds])
    wrong, errors = {}, {}
    for choice in ("none", "columns"):
        scale = scale_report(choice, "trial", deviations).column_scale
        parts = [_errors(X, labels, weights, fold, scale, settings) for fold in folds]
        by_ridge = np.hstack(parts)
        best = int(np.argmin(by_ridge @ held_out))
        wrong[choice] = by_ridge[best]
        errors[choice] = float(by_ridge[best] @ held_out / held_out.sum())
    gains = held_out * (wrong["none"].astype(np.float64) - wrong["columns"])
    if abs(gains.sum()) <= np.sqrt(gains @ gains):
        choice = by_rule(deviations)
        return scale_report(choice, "rule", deviations, errors=errors, n_rows=len(labels))
    choice = "columns" if gains.sum() > 0 else "none"
    return scale_report(choice, "trial", deviations, errors=errors, n_rows=len(labels))


def _subsample(
    codes: NDArray[Any], most_classes: int, random_state: np.random.RandomState
) -> NDArray[np.intp]:
    """Draw rows of the most frequent classes in proportion, class by class, at least two each."""
    counts = np.bincount(codes)
    selected = [c for c in np.argsort(-counts, kind="stable")[:most_classes] if counts[c] > 1]
    share = min(1.0, MOST_ROWS / max(1, counts[selected].sum()))
    drawn = []
    for c in selected:
        members = random_state.permutation(np.flatnonzero(codes == c))
        drawn.append(members[: max(2, round(share * len(members)))])
    return np.concatenate(drawn) if len(drawn) > 1 else np.empty(0, dtype=np.intp)


def _errors(
    X: Any,
    labels: NDArray[Any],
    weights: Array,
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
    scale: Array,
    settings: Settings,
) -> NDArray[np.bool_]:
    """Whether held-out samples are misclassified, a row for each strength of the ridge."""
    fit, held_out = fold
    moments = ClassMoments()
    moments.update(X[fit], labels[fit], weights[fit], n_threads=settings.n_threads)
    result = pair_directions(
        moments,
        pairs=_few_pairs(list(moments.active_classes), both_ways=X.shape[1] < MANY),
        ridge=settings.ridge if isinstance(settings.ridge, str) else max(settings.ridge, 1e-3),
        n_directions=min(directions_of_each(settings.n_directions, 1), 5),
        threshold=1.0,
        denominator=settings.denominator,
        n_threads=settings.n_threads,
        constant=settings.constant,
        scale=scale,
    )
    features = expand(
        X, result.vectors, result.offset, powers=(1, 2), n_threads=settings.n_threads
    ).astype(np.float64, copy=False)
    parts = features[fit], labels[fit], weights[fit], features[held_out]
    return np.asarray(_least_squares(*parts, settings.n_threads) != labels[held_out])


def _few_pairs(labels: list[Any], both_ways: bool) -> list[tuple[Any, Any]]:
    """Return all ordered pairs of up to four classes, else those of neighbours on a ring."""
    if len(labels) <= 4:
        return [(a, b) for a in labels for b in labels if a != b]
    ring = list(zip(labels, labels[1:] + labels[:1], strict=True))
    return ring + [(b, a) for a, b in ring] if both_ways else ring


def _least_squares(
    rows: Array, labels: NDArray[Any], weights: Array, queries: Array, n_threads: int | None
) -> NDArray[Any]:
    """Predict by ridge regression on class indicators; one line of labels for each of `RIDGES`.

    Features have root mean square 1. Of fewer rows than features their kernel is factorised.
    """
    threads = resolve(n_threads)
    classes, codes = np.unique(labels, return_inverse=True)
    share = weights / weights.sum()
    target, ridges = np.eye(len(classes))[codes], np.asarray(RIDGES)
    size = np.sqrt(np.append(share @ rows**2, 1.0))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    n, p = len(rows), len(scale)
    fitted = core.FeatureRows64(X=rows, constant=True)
    if n < p:
        kernel = fitted.kernel(scale, False, threads)
        solved = core.kernel_ridge(kernel, share, target, ridges, threads)
        A = np.ascontiguousarray(solved.transpose(1, 0, 2).reshape(n, -1))
        W = fitted.products(A, threads) * (scale**2)[:, None]
    else:
        gram = np.zeros((p, p))
        below = np.tril_indices(p)
        gram[below] = fitted.gram(share, scale, False, threads)
        gram.T[below] = gram[below]
        products = fitted.products(target * share[:, None], threads) * scale[:, None]
        solved = core.kernel_ridge(gram, None, products, ridges, threads)
        W = solved.transpose(1, 0, 2).reshape(p, -1) * scale[:, None]
    asked = core.FeatureRows64(X=queries, constant=True)
    scores = asked.scores(np.ascontiguousarray(W), threads).reshape(len(queries), len(ridges), -1)
    return classes[np.nan_to_num(scores, nan=-np.inf).argmax(axis=2)].T

r"""The completion whose decisions come earliest where held-out rows agree as often as is promised.

The thesis asks (section 6.2) which estimate of what is missing serves reliable decisions best, the
one of least squared error or another. What counts is what is realised: each candidate is fitted to
all folds but one, and its rule judges the rows of that fold at several times. Rows then wait as
`correction` would let them, until sufficiently many held-out rows are never decided wrongly from
there on. At equal reliability the earliest is best.

Where rows are kept out to correct the rule, the choice does not see them: the theorems of
`correction` and `learned` hold as without a choice. Where the folds that choose correct, too, each
of m completions has a bound with confidence 1 - (1 - c) / m. All of them hold at once with
confidence c (the union bound, Bonferroni), therefore that of the chosen one does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import show
from eigenfeat.incomplete._rules.calibration import shown_share
from eigenfeat.incomplete._rules.fitted import ROWS, SLACK, fewest_rows, since_of, sizes, trial
from eigenfeat.incomplete._series.folds import held_out, spread_over_classes
from eigenfeat.incomplete._series.steps import spread_steps

if TYPE_CHECKING:
    from eigenfeat.incomplete._rules.fitted import Fitted
    from eigenfeat.incomplete._series.layout import Layout, Rows

__all__ = ["METHODS", "candidates_of", "choose", "confidence_each", "earliest"]

_Array = NDArray[np.float64]
_Trial = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]
RefitWith = Callable[[BaseEstimator, NDArray[np.bool_]], "Fitted"]

METHODS = ("fit", "condition", "condition_prefixes")


def candidates_of(completion: Any) -> list[BaseEstimator] | None:
    """What there is to choose from; None where one completion is given."""
    if not isinstance(completion, list | tuple):
        return None
    good = all(all(hasattr(one, name) for name in METHODS) for one in completion)
    if not completion or not good:
        raise ValueError(
            f"completion: expected completions, at least one, got {show(list(completion))}"
        )
    return list(completion)


def confidence_each(confidence: float, count: int) -> float:
    """The confidence of each of so many bounds that hold at once with the one that is given."""
    return 1.0 - (1.0 - confidence) / count


def choose(
    candidates: list[BaseEstimator],
    refit: RefitWith,
    found: Rows,
    y: Labels,
    layout: Layout,
    *,
    tau: float,
    n_folds: int,
    confidence: float | None,
) -> tuple[int, list[dict[str, Any]]]:
    """Try each candidate on held-out rows.

    Parameters
    ----------
    candidates : list of completions
    refit : callable
        Fits with a completion to all rows but those whose flags it is given.
    found, y, layout
        Rows and labels.
    tau : float
        The reliability that is asked for.
    n_folds : int
    confidence : float or None
        Of the bound for which rows wait, as in `Correction`; None: the rule alone decides.

    Returns
    -------
    int
        The number of the best.
    list of dict
        Of each candidate "completion", "agreement" (share of held-out rows that are decided as they
        are when complete) and "time" (mean share of the entries known at the decision); NaN where
        it could not be fitted to every fold.
    """
    trials: list[list[_Trial]] = [[] for _ in candidates]
    failed = np.zeros(len(candidates), dtype=bool)
    for held in held_out(y, n_folds):
        fits: list[Fitted | None] = []
        for candidate in candidates:
            try:
                fits.append(refit(candidate, held))
            except ValueError:  # such as a class too small for a Gaussian of its own
                fits.append(None)
        if not any(fits):
            continue
        for number, core in enumerate(fits):
            failed[number] |= core is None
            if core is not None:
                trials[number].append(_judged(core, found, y, held, layout, tau))
    # Agreement, time, and time if rows waited for a share of held-out rows instead of a bound.
    scores = np.full((len(candidates), 3), np.nan)
    for number, parts in enumerate(trials):
        if parts and not failed[number]:
            scores[number] = _scores(parts, layout.width, tau, confidence)
    results = [
        {"completion": repr(one), "agreement": float(agreement), "time": float(time)}
        for one, (agreement, time, _) in zip(candidates, scores, strict=True)
    ]
    return earliest(scores, tau), results


def earliest(scores: _Array, tau: float) -> int:
    """The earliest that agrees in a share tau, else the one that agrees most.

    Of those that are as early the one that would be earlier if a share of held-out rows were
    enough: few rows show no bound. Ties to the first.
    """
    agreement, time, unproved = scores.T
    lacking = np.maximum(tau - SLACK - agreement, 0.0)
    order = np.lexsort((unproved, time, np.nan_to_num(lacking, nan=np.inf)))
    return int(order[0])


def _judged(
    core: Fitted,
    found: Rows,
    y: Labels,
    held: NDArray[np.bool_],
    layout: Layout,
    tau: float,
) -> _Trial:
    """(m, looks) whether held-out rows would be decided, and wrongly; and when they were looked at.

    Looks at and after a series' end are not decisions; a last column has where it ends.
    """
    rows, looks = sizes(core, len(y), layout.length, fewest_rows(tau, 0.0))
    times = spread_steps(layout.length, looks) * layout.channels
    fresh = found.some(held & spread_over_classes(y, min(rows, ROWS)))
    if not len(times):
        none = np.zeros((len(fresh.ends), 0), dtype=bool)
        return none, none, fresh.ends[:, None]
    decided, wrong = trial(core, fresh, np.array([tau]), times)
    at = np.broadcast_to(times, decided.shape[1:])
    return decided[0], wrong[0], np.column_stack([at, fresh.ends])


def _scores(
    parts: list[_Trial], width: int, tau: float, confidence: float | None
) -> tuple[float, float, float]:
    """Agreement and mean times of decision of all folds' rows, as `choose` has them."""
    decided, wrong = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    times = np.concatenate([part[2] for part in parts])
    if not len(times):
        return np.nan, np.nan, np.nan
    bound = share = 0
    if confidence is not None:
        since = np.sort(since_of(wrong, times[0, :-1], width))
        stable = np.searchsorted(since, np.arange(width), side="right")
        shown = shown_share(stable, len(since), confidence) >= tau - SLACK
        bound = int(np.append(shown, True).argmax())
        share = int(since[int(np.ceil((tau - SLACK) * len(since))) - 1])

    def decisions(least: int) -> tuple[float, float]:
        allowed = decided & (times[:, :-1] >= least)
        ended = np.ones((len(times), 1), dtype=bool)
        first = np.column_stack([allowed, ended]).argmax(axis=1)[:, None]
        missed = np.take_along_axis(np.column_stack([wrong, ~ended]), first, axis=1)
        at = np.take_along_axis(times, first, axis=1)
        return float(1.0 - missed.mean()), float(at.mean()) / width

    return *decisions(bound), decisions(share)[1]

"""Hyperparameters chosen on rows that are held out, then training on what the protocol says."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, PredefinedSplit, StratifiedShuffleSplit

from bench.papers.protocol import Context, Data, Method, Rows, Scores, Step

HELD_OUT = 1 / 6  # share of the training rows to choose hyperparameters on


@dataclass(frozen=True)
class Trained:
    """A trained model, what was chosen out of how many candidates, and seconds."""

    model: Any
    parameters: dict[str, Any]
    n_candidates: int
    choose_seconds: float
    train_seconds: float


def train(method: Method, data: Data, objective: str, context: Context, step: Step) -> Trained:
    """Choose a method's hyperparameters without the test rows, and train it with them.

    The choice minimises the `objective`, "error" or "cross_entropy"; on a tie the first candidate
    is taken.
    """
    estimator = method.build(context).set_params(**method.hyperparameters.set_for(context))
    grid = method.hyperparameters.chosen_from(context)
    candidates = list(ParameterGrid(grid))
    started = time.perf_counter()
    best = candidates[0]
    if len(candidates) > 1 and _chooses_itself(estimator, data, objective):
        from eigenfeat.gem.search import GEMClassifierCV  # shares moments and features

        step(f"choosing out of {len(candidates)}")
        cv = _splitter(data, context.seed)
        search = GEMClassifierCV(estimator=estimator, grid=grid, cv=cv, refit=False, verbose=0)
        best = dict(search.fit(data.train.X, data.train.y).best_params_)
    elif len(candidates) > 1:
        best = _by_trial(estimator, candidates, data, objective, context, step)
    chosen = time.perf_counter()
    step("training")
    model = clone(estimator).set_params(**best)
    if method.ensemble is not None:
        model = method.ensemble(model, context)
    model.fit(data.train.X, data.train.y)
    trained = time.perf_counter()
    return Trained(model, dict(best), len(candidates), chosen - started, trained - chosen)


def score(model: Any, rows: Rows) -> Scores:
    """Return a model's error rate and, if it gives probabilities, its cross-entropy."""
    if not hasattr(model, "predict_proba"):
        return Scores(float(np.mean(model.predict(rows.X) != rows.y)))
    probabilities = np.asarray(model.predict_proba(rows.X), dtype=np.float64)
    classes = np.asarray(model.classes_)
    error = float(np.mean(classes[probabilities.argmax(axis=1)] != rows.y))
    column = np.minimum(np.searchsorted(classes, rows.y), len(classes) - 1)
    known = classes[column] == rows.y
    given = np.where(known, probabilities[np.arange(len(rows)), column], 0.0)
    least = np.finfo(np.float64).tiny
    return Scores(error, float(-np.log(np.maximum(given, least)).mean()))


def _chooses_itself(estimator: Any, data: Data, objective: str) -> bool:
    """Whether there is a search of the estimator's own that can do it."""
    is_gem = type(estimator).__name__ == "GEMClassifier"
    return is_gem and data.development is None and objective == "error"


def _by_trial(
    estimator: Any,
    candidates: list[dict[str, Any]],
    data: Data,
    objective: str,
    context: Context,
    step: Step,
) -> dict[str, Any]:
    """Train each candidate on the same rows, and return the one that does best on the others."""
    fit, held_out = data.train, data.development
    if held_out is None:
        splits = _splitter(data, context.seed).split(fit.y[:, None], fit.y)
        fit, held_out = (data.train[part] for part in next(splits))
    values = []
    for number, candidate in enumerate(candidates, 1):
        step(f"candidate {number} of {len(candidates)}")
        scores = score(clone(estimator).set_params(**candidate).fit(fit.X, fit.y), held_out)
        value = getattr(scores, objective)
        if value is None:
            raise ValueError(
                f"objective: expected a model with probabilities, got {type(estimator).__name__}"
            )
        values.append(value)
    return candidates[int(np.argmin(values))]


def _splitter(data: Data, seed: int) -> Any:
    if not data.by_source:
        return StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
    n = len(data.train)
    fold = np.full(n, -1)
    fold[n - round(HELD_OUT * n) :] = 0
    return PredefinedSplit(fold)

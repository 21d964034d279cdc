"""Choice of a GEM classifier's parameters, at little more than the cost of the fits' last steps."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import log_loss
from sklearn.model_selection import ParameterGrid, StratifiedShuffleSplit, check_cv
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat.features import ExpandedRows
from eigenfeat.gem_classifier import GEMClassifier
from eigenfeat.layers import Layer, as_layer, project_rows
from eigenfeat.moments import ClassMoments
from eigenfeat.out_of_core import BlockScores

__all__ = ["GEMClassifierCV"]

GRID = {"ridge": (0.1, 0.5), "threshold": (1.0, 1.5), "penalty": (0.02, 0.1, 0.4)}

# What selects among directions that are there, or comes after them; all else makes others.
_SELECTS = ("threshold", "n_directions")
_EXPANDS = ("expansion", "powers", "include_input")


class GEMClassifierCV(BlockScores, ClassifierMixin, BaseEstimator):
    """GEM classifier whose parameters are chosen on held-out rows, then fitted to all rows.

    Candidates share what they can: moments are taken once for a split; directions are solved for
    once for each ridge, with the lowest threshold and the most directions, and those of every other
    candidate are among them; projections are taken once for each ridge; one Gram matrix serves all
    penalties, each of which starts from the weights of the one before.

    Parameters
    ----------
    estimator : GEMClassifier, optional
        Gives the parameters that are not in the grid; `GEMClassifier()` by default.
    grid : mapping of str to sequence, optional
        Values to try of any of its parameters. By default ``ridge`` 0.1 and 0.5, ``threshold`` 1
        and 1.5, ``penalty`` 0.02, 0.1 and 0.4.
    cv : int, splitter or None, default=None
        Folds; None holds one part out.
    validation_fraction : float, default=1/6
        How large that part is; class by class.
    scoring : {"error", "log_loss"}, default="error"
        What is to be least; the other one breaks ties.
    refit : bool, default=True
        Whether the best candidate is fitted to all rows.
    random_state : int, RandomState or None, default=0
        For the held-out part.
    verbose : int, default=0
        1 shows a progress bar on stderr.

    Attributes
    ----------
    results_ : list of dict
        For each candidate its parameters, `error` and `log_loss` (means over the splits),
        `errors` (of each split), `n_directions_kept`, `n_iter` and `seconds` of the logit. Best
        first. After Ctrl-C it holds what was finished, in order of trying.
    best_params_ : dict
    best_score_ : float
        Its held-out error or log loss.
    best_estimator_ : GEMClassifier
        With `refit`.
    classes_ : (k,) array

    Raises
    ------
    ValueError
        If the grid names no parameter of the estimator, or rows or labels are unfit.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014, section 4.1: parameters by a held-out part, then all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEMClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> search = GEMClassifierCV(grid={"penalty": [0.03, 0.3]}).fit(X[:1000], y[:1000])
    >>> search.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "set_params"]), None],
        "grid": [Mapping, None],
        "cv": ["cv_object"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "scoring": [StrOptions({"error", "log_loss"})],
        "refit": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose", Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        estimator: GEMClassifier | None = None,
        grid: Mapping[str, Any] | None = None,
        cv: Any = None,
        validation_fraction: float = 1 / 6,
        scoring: str = "error",
        refit: bool = True,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GEMClassifierCV:
        """Try every candidate on held-out rows and fit the best to all.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Finite rows.
        y : (n,) array-like
            Labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the rows, in fitting and in scoring.

        Returns
        -------
        GEMClassifierCV
            The estimator itself.
        """
        self._validate_params()
        base = GEMClassifier() if self.estimator is None else clone(self.estimator)
        candidates = _candidates(base, GRID if self.grid is None else self.grid)
        checked = clone(base)
        rows, labels, weight, _ = checked._training_rows(X, y, sample_weight, None)
        splits = list(self._splitter(labels).split(rows, labels))
        trials: list[dict[str, Any]] = [{"params": params, "splits": []} for params in candidates]
        try:
            with _bar(len(candidates) * len(splits), self.verbose) as advance:
                for train, held in splits:
                    split = _Split(base, rows, labels, weight, np.sort(train), np.sort(held))
                    split.run(trials, advance)
        finally:
            self.results_ = [_summary(trial) for trial in trials if trial["splits"]]
        order = ("error", "log_loss") if self.scoring == "error" else ("log_loss", "error")
        self.results_.sort(key=lambda result: tuple(result[name] for name in order))
        self.best_params_ = dict(self.results_[0]["params"])
        self.best_score_ = float(self.results_[0][self.scoring])
        self.classes_ = np.unique(labels)
        self.n_features_in_ = checked.n_features_in_
        if hasattr(checked, "feature_names_in_"):
            self.feature_names_in_ = checked.feature_names_in_
        if self.refit:
            self.best_estimator_ = clone(base).set_params(**self.best_params_)
            self.best_estimator_.fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable labels, (n,)."""
        return self._best().predict(X)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities, (n, k)."""
        return self._best().predict_proba(X)

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of the class probabilities, (n, k)."""
        return self._best().predict_log_proba(X)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Logits, (n, k), or (n,) with two classes."""
        return self._best().decision_function(X)

    def _best(self) -> GEMClassifier:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _splitter(self, labels: NDArray[Any]) -> Any:
        if self.cv is not None:
            return check_cv(self.cv, labels, classifier=True)
        return StratifiedShuffleSplit(
            1, test_size=self.validation_fraction, random_state=self.random_state
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Split:
    """The candidates on one pair of training and held-out rows, from what they share outward."""

    def __init__(
        self, base: GEMClassifier, X: Any, y: Any, weight: Any, train: Any, held: Any
    ) -> None:
        self.base = base
        self.X, self.y = X[train], y[train]
        self.held_X, self.held_y = X[held], y[held]
        self.weight = None if weight is None else weight[train]
        self.held_weight = None if weight is None else weight[held]
        self.moments: dict[Any, ClassMoments] = {}
        self.scale: dict[str, str] = {}

    def run(self, trials: list[dict[str, Any]], advance: Any) -> None:
        for same_solution in _groups(
            trials, lambda name: name not in (*_SELECTS, *_EXPANDS, "penalty")
        ):
            layers = self._solve(same_solution)
            rows, held = (
                project_rows(X, layers, self.base.n_threads) for X in (self.X, self.held_X)
            )
            for same_features in _groups(same_solution, lambda name: name != "penalty"):
                model = self._model(same_features[0]["params"])
                mask = _selected(layers[-1], model)
                parts = [
                    _features(model, X, layers[-1].kept(mask), P[:, mask])
                    for X, P in ((self.X, rows), (self.held_X, held))
                ]
                self._path(same_features, model, parts[0], parts[1], advance)

    def _model(self, params: dict[str, Any]) -> GEMClassifier:
        model: GEMClassifier = clone(self.base).set_params(**params)
        model._check_parameters()
        return model

    def _solve(self, trials: list[dict[str, Any]]) -> list[Layer]:
        """Layers with the most directions and the lowest threshold of these candidates."""
        models = [self._model(trial["params"]) for trial in trials]
        model = models[0]
        thresholds = [other.threshold for other in models]
        model.threshold = (
            None if None in thresholds else min(t for t in thresholds if t is not None)
        )
        model.n_directions = max(other.n_directions for other in models)
        model.scale = self.scale.get(model.scale, model.scale)
        layers = [self._first_layer(model)]
        for level in range(1, model.depth):
            layers.append(model._fit_layer(self.X, self.y, self.weight, layers, level))
        return layers

    def _first_layer(self, model: GEMClassifier) -> Layer:
        gem, groups = model._first(self.X, self.y)
        # Clusters depend on whether columns are scaled.
        key = (model.n_clusters, model.n_clusters > 1 and model.scale)
        if key not in self.moments or model.scale == "auto":
            asked = model.scale
            gem.fit(self.X, groups, self.weight)
            self.moments[key] = gem.moments_
            self.scale[asked] = gem.scale_
        else:
            gem._adopt(self.moments[key])
        return as_layer(gem)

    def _path(
        self, trials: list[dict[str, Any]], model: GEMClassifier, rows: Any, held: Any, advance: Any
    ) -> None:
        """All penalties on the same features, from large to small."""
        penalties = [trial["params"].get("penalty", model.penalty) for trial in trials]
        logit = model._logit(model.penalty)
        fits = logit.iterate_path(rows, self.y, sorted(penalties, reverse=True), self.weight)
        started = time.perf_counter()
        for fitted in fits:
            trial = trials[penalties.index(fitted.penalty)]
            logarithms = fitted.predict_log_proba(held)
            wrong = fitted.classes_[np.argmax(logarithms, axis=1)] != self.held_y
            trial["splits"].append(
                {
                    "error": float(np.average(wrong, weights=self.held_weight)),
                    "log_loss": log_loss(
                        self.held_y,
                        np.exp(logarithms),
                        sample_weight=self.held_weight,
                        labels=fitted.classes_,
                    ),
                    "n_directions_kept": int(rows.directions.shape[1]),
                    "n_iter": int(fitted.n_iter_[0]),
                    "seconds": time.perf_counter() - started,
                }
            )
            advance(trial)
            started = time.perf_counter()


def _candidates(base: Any, grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(base, GEMClassifier):
        raise ValueError(f"estimator: expected a GEMClassifier, got {type(base).__name__}")
    known = base.get_params()
    for name, values in grid.items():
        if name not in known:
            raise ValueError(f"grid: expected parameters of GEMClassifier, got {name!r}")
        if isinstance(values, str) or not np.iterable(values) or len(list(values)) == 0:
            raise ValueError(f"grid: expected a sequence of values of {name}, got {values!r}")
    return list(ParameterGrid({name: list(values) for name, values in grid.items()}))


def _groups(trials: list[dict[str, Any]], counts: Any) -> Iterator[list[dict[str, Any]]]:
    """Trials that agree in all parameters whose name counts, in order of first occurrence."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        key = repr(sorted((k, repr(v)) for k, v in trial["params"].items() if counts(k)))
        groups.setdefault(key, []).append(trial)
    return iter(groups.values())


def _selected(layer: Layer, model: GEMClassifier) -> NDArray[np.bool_]:
    mask = layer.ranks < model.n_directions
    if model.threshold is not None:
        mask &= layer.eigenvalues >= model.threshold
    return mask


def _features(
    model: GEMClassifier, X: Any, layer: Layer, projections: NDArray[Any]
) -> ExpandedRows:
    wave, powers = model._waves()
    return ExpandedRows(
        X.astype(np.float32, copy=False) if model.include_input else None,
        layer.directions,
        wave=wave,
        powers=powers,
        include_input=model.include_input,
        projections=projections,
    )


def _summary(trial: dict[str, Any]) -> dict[str, Any]:
    splits = trial["splits"]
    mean = {
        name: float(np.mean([split[name] for split in splits])) for name in ("error", "log_loss")
    }
    return {
        "params": trial["params"],
        **mean,
        "errors": [split["error"] for split in splits],
        "n_directions_kept": splits[0]["n_directions_kept"],
        "n_iter": max(split["n_iter"] for split in splits),
        "seconds": sum(split["seconds"] for split in splits),
    }


@contextmanager
def _bar(total: int, verbose: int) -> Iterator[Any]:
    """A function to call after each candidate, which moves a progress bar on stderr."""
    if not verbose:
        yield lambda trial: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("moments and directions", total=total)

        def advance(trial: dict[str, Any]) -> None:
            last = trial["splits"][-1]
            chosen = ", ".join(f"{k}={v}" for k, v in trial["params"].items())
            text = f"{chosen}: {100 * last['error']:.2f}%"
            progress.update(task, advance=1, description=text)

        yield advance

"""Choice of a GEM classifier's parameters, with computations shared between candidates."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import ParameterGrid, StratifiedShuffleSplit
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.types import (
    Codes,
    CrossValidation,
    Floats,
    Labels,
    RandomState,
    Rows,
)
from eigenfeat._base.validation import show, take_names
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.gem import solve_layers
from eigenfeat.samples.blocks import add
from eigenfeat.samples.estimator import BaseEstimator, Iterative, Verbose, with_steps
from eigenfeat.samples.out_of_core import FromLogits
from eigenfeat.samples.splits import checked_splits, cv_results

if TYPE_CHECKING:
    from eigenfeat.linear.logistic import MultinomialLogit
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.samples.block_samples import LabelledSamples
    from eigenfeat.samples.blocks import RowBlocks
    from eigenfeat.samples.labelled import Block

__all__ = ["GEMClassifierCV"]

Trial = dict[str, Any]

# Scores do not depend on the temperature, are comparable only with equal class weights, and are
# computed before joint training.
_NOT_SEARCHED = (
    "logit__temperature",
    "class_weight",
    "epochs",
    "perturbation",
    "learning_rate",
)

GRID = {
    "gem__ridge": (0.1, 0.5),
    "gem__threshold": (1.0, 1.5),
    "logit__penalty": (0.02, 0.1, 0.4),
}


class GEMClassifierCV(Iterative, Verbose, FromLogits, ClassifierMixin, BaseEstimator):
    """GEM classifier with parameters chosen on held-out samples, then fitted to all samples.

    Use it where a search over the parameters of GEM and of the logit pays. It is faster than
    ``GridSearchCV``: candidates share moments, and candidates that differ in the penalty alone
    share features and a Gram matrix. User guide: :doc:`/guide/classifier`.

    Parameters
    ----------
    estimator : GEMClassifier, optional
        Estimator with the parameters that are not in the grid; `GEMClassifier()` by default.
    grid : mapping of str to sequence, optional
        Values to try for each parameter, named as in ``set_params``. By default ``gem__ridge`` 0.1
        and 0.5, ``gem__threshold`` 1 and 1.5, ``logit__penalty`` 0.02, 0.1 and 0.4.
    cv : int, splitter or None, default=None
        Number of folds, or a splitter. None holds out one part of the samples.
    validation_fraction : float, default=1/6
        Fraction of samples held out with ``cv=None``, class by class.
    scoring : {"error", "log_loss"}, default="error"
        Criterion to minimise; the other criterion breaks ties.
    refit : bool, default=True
        Whether the best candidate is fitted to all samples.
    random_state : int, RandomState or None, default=0
        Seed for drawing the held-out part.
    verbose : int, default=0
        1 prints a line for each candidate and split on stderr.
    n_threads : int or None, default=None
        Number of threads; None means the `n_threads` of `estimator`.

    Attributes
    ----------
    results_ : list of dict
        Parameters of each candidate, `error` and `log_loss` (means over the splits), `errors` (of
        each split), `n_directions_kept`, `n_iter` and `seconds` of the logit. Best first. After
        Ctrl-C it has the finished candidates.
    cv_results_ : dict
        Results by column, in the order of the grid, as in ``GridSearchCV``. Scores are accuracies
        or, with ``scoring="log_loss"``, negative log losses.
    best_params_ : dict
        Parameters of the best candidate.
    best_index_ : int
        Index of the best candidate in `cv_results_`.
    best_score_ : float
        Mean score of the best candidate.
    best_estimator_ : GEMClassifier
        The best candidate fitted to all samples; only with `refit`.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    GEMClassifier : Needs no search on most tables.
    sklearn.model_selection.GridSearchCV : For any estimator; shares no computations.

    References
    ----------
    N. Karampatziakis and P. Mineiro, ICML 2014, section 4.1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEMClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> search = GEMClassifierCV(grid={"logit__penalty": [0.03, 0.3]}).fit(X[:1000], y[:1000])
    >>> search.best_params_, search.score(X[1000:], y[1000:]) > 0.95
    ({'logit__penalty': 0.03}, True)
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
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        estimator: GEMClassifier | None = None,
        grid: Mapping[str, Sequence[object]] | None = None,
        cv: CrossValidation = None,
        validation_fraction: float = 1 / 6,
        scoring: str = "error",
        refit: bool = True,
        random_state: RandomState = 0,
        verbose: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.random_state = random_state
        self.verbose = verbose
        self.n_threads = n_threads

    @with_steps
    @one_blas_thread()
    def fit(
        self,
        X: Rows | RowBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> GEMClassifierCV:
        """Try every candidate on held-out samples and fit the best to all.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples; NaN is a missing entry. Blocks are read many times, as by `GEMClassifier`, and
            once more to score each candidate.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples, used for fitting and for scoring.

        Returns
        -------
        GEMClassifierCV
            The estimator itself. An error leaves it unchanged, except for `results_`.
        """
        self._validate_params()
        base = self._base()
        candidates = _candidates(base, GRID if self.grid is None else self.grid)
        first = clone(base)
        samples = first.prepare(X, y, sample_weight, moments=False)
        trials: list[Trial] = [{"params": params, "splits": []} for params in candidates]
        self._try(trials, base, samples, list(self._splits(samples, sample_weight)))
        results = sorted(map(_summary, trials), key=self._rank)
        self.results_ = results
        best = results[0]["params"]
        if self.refit:
            fitted = _candidate(base, best).fit(samples)
            take_names(fitted, first)
            self.best_estimator_ = fitted
        else:
            self.__dict__.pop("best_estimator_", None)
        self.best_params_, self.best_index_ = dict(best), candidates.index(best)
        self.cv_results_ = _columns(trials, self.scoring)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.classes_ = samples.classes
        take_names(self, first)
        return self

    def _base(self) -> GEMClassifier:
        """A new estimator with the parameters that are not in the grid."""
        base = GEMClassifier() if self.estimator is None else clone(self.estimator)
        if isinstance(base, GEMClassifier) and base.nested("logit").solver == "auto":
            base.set_params(logit__solver="lbfgs")  # "auto" may choose a solver without penalties
        if self.n_threads is not None:
            base.set_params(n_threads=self.n_threads)
        return base

    def _try(
        self,
        trials: list[Trial],
        base: GEMClassifier,
        samples: LabelledSamples,
        splits: list[tuple[Codes, Codes]],
    ) -> None:
        """Fill in the `splits` of every trial; after an error, `results_` has finished trials."""
        try:
            for train, held_out in splits:
                for trial in _tried(base, trials, *_subsets(samples, train, held_out)):
                    self._log(_progress_text(trial))
                    self._step_done()
        except (Exception, KeyboardInterrupt) as error:
            finished = [_summary(trial) for trial in trials if trial["splits"]]
            if finished or isinstance(error, KeyboardInterrupt):
                self.results_ = finished
            raise

    def _rank(self, result: dict[str, Any]) -> tuple[float, float]:
        """Sort key of a candidate; the best has the smallest."""
        pair = result["error"], result["log_loss"]
        return pair if self.scoring == "error" else pair[::-1]

    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Compute the logits of the best candidate.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, as in `GEMClassifier.decision_function`.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def _splits(
        self, samples: LabelledSamples, sample_weight: ArrayLike | None
    ) -> Iterator[tuple[Codes, Codes]]:
        """Yield the indices of training and held-out samples of each split, ascending."""
        codes, cv = samples.codes, self.cv
        weighted = np.ones(len(codes), dtype=bool)
        if cv is not None and not isinstance(cv, Integral):
            # A splitter of the caller splits all samples, including samples without weight.
            weighted = _weighted(samples, sample_weight)
        labels = np.full(len(weighted), samples.classes[0], dtype=samples.classes.dtype)
        labels[weighted] = samples.classes[codes]
        X: Any = np.empty((len(labels), 0))
        if samples.in_memory and weighted.all():  # some splitters read the samples
            X = samples.block.X
        if cv is None:
            share, random = self.validation_fraction, self.random_state
            _check_held_out(codes, samples.classes, share)
            splitter = StratifiedShuffleSplit(1, test_size=share, random_state=random)
            splits = splitter.split(X, labels)
        else:
            splits = checked_splits(cv, X, labels)
        for train, held_out in splits:
            yield _indices(train, weighted), _indices(held_out, weighted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # as in GEMClassifier
        return tags


def _candidates(base: Any, grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(base, GEMClassifier):
        raise ValueError(f"estimator: expected a GEMClassifier, got {type(base).__name__}")
    known = base.get_params()
    for name, values in grid.items():
        if name not in known:
            hint = next((full for full in sorted(known) if full.endswith(f"__{name}")), None)
            hint = "such as 'gem__ridge'" if hint is None else f"perhaps {hint!r}"
            raise ValueError(f"grid: expected parameters of GEMClassifier, {hint}, got {name!r}")
        if name in _NOT_SEARCHED:
            raise ValueError(f"grid: expected {name} in the estimator, got it in the grid")
        if isinstance(values, str) or not np.iterable(values) or len(list(values)) == 0:
            raise ValueError(f"grid: expected a sequence of values of {name}, got {values!r}")
        if name == "logit__penalty" and "auto" in list(values):
            raise ValueError("grid: expected numbers as penalties, got 'auto'")
    if base.nested("logit").penalty == "auto" and "logit__penalty" not in grid:
        expected = "expected a penalty that is a number, or penalties in grid"
        raise ValueError(f"estimator: {expected}, got 'auto'")
    candidates = list(ParameterGrid({name: list(values) for name, values in grid.items()}))
    for params in candidates:
        _candidate(base, params).check_parameters()
    return candidates


def _candidate(base: GEMClassifier, params: dict[str, Any]) -> Any:
    """A new classifier; estimators in `params` are copied, too."""
    return clone(clone(base).set_params(**params))


def _summary(trial: Trial) -> dict[str, Any]:
    splits = trial["splits"]
    return {
        "params": trial["params"],
        "error": float(np.mean([split["error"] for split in splits])),
        "log_loss": float(np.mean([split["log_loss"] for split in splits])),
        "errors": [split["error"] for split in splits],
        "n_directions_kept": splits[0]["n_directions_kept"],
        "n_iter": max(split["n_iter"] for split in splits),
        "seconds": sum(split["seconds"] for split in splits),
    }


def _columns(trials: list[Trial], scoring: str) -> dict[str, Any]:
    """`cv_results_`: parameters and scores by column; larger scores are better."""
    losses = np.array([[split[scoring] for split in trial["splits"]] for trial in trials])
    summaries = [_summary(trial) for trial in trials]
    names = ("error", "log_loss", "n_directions_kept", "n_iter", "seconds")
    others = {name: np.array([summary[name] for summary in summaries]) for name in names}
    scores = 1 - losses if scoring == "error" else -losses
    return cv_results([trial["params"] for trial in trials], scores, **others)


def _progress_text(trial: dict[str, Any]) -> str:
    """A line with a candidate and its error on the latest split."""
    chosen = ", ".join(f"{k}={v}" for k, v in trial["params"].items())
    return f"{chosen}: {100 * trial['splits'][-1]['error']:.2f}%"


# ---- splits --------------------------------------------------------------------------------------


def _check_held_out(codes: Codes, classes: Labels, fraction: float) -> None:
    """ValueError unless a fraction of the samples can be held out, class by class."""
    counts = np.bincount(codes, minlength=len(classes))
    if counts.min() < 2:
        rarest = show(classes[int(np.argmin(counts))])
        raise ValueError(
            "y: expected two samples or more of every class for a search, got one of class "
            f"{rarest}"
        )
    n, k = len(codes), len(classes)
    held_out = int(np.ceil(fraction * n))
    if held_out < k or n - held_out < k:
        raise ValueError(
            f"validation_fraction: expected a part of the {n} samples with one sample or more of "
            f"each of the {k} classes on both sides, got {fraction:g}"
        )


def _weighted(samples: LabelledSamples, sample_weight: ArrayLike | None) -> NDArray[np.bool_]:
    """Mask of the given samples that have a positive weight."""
    if not samples.in_memory:
        mask = samples.weighted
    else:
        mask = None if sample_weight is None else np.asarray(sample_weight) > 0
    return np.ones(samples.n_samples, dtype=bool) if mask is None else mask


def _indices(part: Any, weighted: NDArray[np.bool_]) -> Codes:
    """Ascending indices among the weighted samples, from indices or a mask of all samples."""
    part = np.asarray(part)
    part = np.flatnonzero(part) if part.dtype == bool else part.astype(np.int64)
    number = np.cumsum(weighted) - 1
    return np.sort(number[part[weighted[part]]])


def _subsets(
    samples: LabelledSamples, train: Codes, held_out: Codes
) -> tuple[LabelledSamples, LabelledSamples]:
    """Training and held-out samples; ValueError unless every class has training samples."""
    if not len(held_out):
        raise ValueError("cv: expected samples held out in every split, got none")
    lacking = np.bincount(samples.codes[train], minlength=len(samples.classes)) == 0
    if lacking.any():
        raise ValueError(
            "cv: expected samples of every class to train on in every split, got none of class "
            f"{samples.classes[lacking].tolist()[0]!r}"
        )
    for part in (train, held_out):
        repeated = part[1:][part[1:] == part[:-1]]
        if not samples.in_memory and len(repeated):
            raise ValueError(
                "cv: expected splits of blocks without repeated samples, got sample "
                f"{repeated[0]} twice"
            )
    return samples.subset(train), samples.subset(held_out)


# ---- candidates on one split ---------------------------------------------------------------------


def _tried(
    base: GEMClassifier, trials: list[Trial], train: LabelledSamples, held_out: LabelledSamples
) -> Iterator[Trial]:
    """Fit each candidate and append its scores to its `splits`; yield it when it is scored.

    Scale and constant are chosen once. Candidates that differ in the penalty alone are fitted
    together, from the largest penalty to the smallest.
    """
    moments: ClassMoments | None = None
    choices: dict[Any, dict[str, Any]] = {}  # `scale` and `constant`, once chosen
    for path in _paths(base, trials):
        model = _candidate(base, path[0][1]["params"])
        gem = model.nested("gem")
        asked = gem.scale, gem.constant
        model.set_params(**choices.get(asked, {}))
        layers, first = solve_layers(train, model.depth_options(), lambda *_: None, moments)
        choices[asked] = {"gem__scale": first.scale_, "gem__constant": first.constant_}
        moments = first.moments_
        features, held_features = train.mapped(layers), held_out.mapped(layers)
        options = model.logit_options().set_params(temperature=1.0)
        started = time.perf_counter()
        logits = options.iterate_path(features, None, [penalty for penalty, _ in path])
        for (_, trial), logit in zip(path, logits, strict=True):
            seconds = time.perf_counter() - started
            wrong, loss, weight = held_features.reduce(_losses, add, logit)
            trial["splits"].append(
                {
                    "error": wrong / weight,
                    "log_loss": loss / weight,
                    "n_directions_kept": len(layers[-1].ranks),
                    "n_iter": int(logit.n_iter_[0]),
                    "seconds": seconds,
                }
            )
            yield trial
            started = time.perf_counter()


def _paths(base: GEMClassifier, trials: list[Trial]) -> list[list[tuple[float, Trial]]]:
    """Groups of candidates that differ in the penalty alone, from large to small penalties."""
    paths: dict[str, list[tuple[float, Trial]]] = {}
    for trial in trials:
        penalty = float(_candidate(base, trial["params"]).nested("logit").penalty)
        others = {name: v for name, v in trial["params"].items() if name != "logit__penalty"}
        paths.setdefault(repr(others), []).append((penalty, trial))
    return [sorted(path, key=itemgetter(0), reverse=True) for path in paths.values()]


def _losses(block: Block, logit: MultinomialLogit) -> tuple[float, float, float]:
    """Weight of the misclassified samples, sum of log losses, and weight of all; merged by `add`.

    Probabilities are clipped to [eps, 1 - eps] of their type, as in scikit-learn.
    """
    weight = np.ones(len(block)) if block.weight is None else np.asarray(block.weight)
    logarithms = logit.predict_log_proba(block.X)
    eps = np.finfo(logarithms.dtype).eps
    right = logarithms[np.arange(len(block)), block.y].astype(np.float64)
    losses = -np.clip(right, np.log(eps), np.log1p(-eps))
    wrong = logarithms.argmax(axis=1) != block.y
    return float(weight @ wrong), float(weight @ losses), float(weight.sum())

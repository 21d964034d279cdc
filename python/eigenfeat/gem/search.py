"""Choice of a GEM classifier's parameters, with computations shared between candidates."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import ParameterGrid, StratifiedShuffleSplit
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import (
    Codes,
    CrossValidation,
    Floats,
    Labels,
    RandomState,
    Rows,
    Targets,
)
from eigenfeat._base.validation import take_names
from eigenfeat.expansion.features import Layer
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.gem import solve_layers
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.samples.block_samples import BlockSamples
from eigenfeat.samples.blocks import add
from eigenfeat.samples.estimator import BaseEstimator, Iterative, progress_bar, with_steps
from eigenfeat.samples.labelled import MemorySamples
from eigenfeat.samples.out_of_core import BlockScores
from eigenfeat.samples.splits import check_held_out, checked_splitter, cv_results

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.samples.block_samples import LabelledSamples
    from eigenfeat.samples.blocks import RowBlocks
    from eigenfeat.samples.labelled import Block

__all__ = ["GEMClassifierCV"]

Trial = dict[str, Any]
_Fits = list[tuple[MultinomialLogit, float]]  # fitted logits and their seconds

# Parameters that do not require new eigenproblems: they select directions, or expand projections.
_SELECTION = ("gem__threshold", "gem__n_directions")
_EXPANSION = ("gem__expansion", "gem__powers", "gem__include_input")

# Scores do not depend on the temperature, are comparable only with equal class weights, and are
# computed before joint training.
_NOT_SEARCHED = (
    *("logit__temperature", "class_weight"),
    *("epochs", "perturbation", "learning_rate"),
)

GRID = {
    "gem__ridge": (0.1, 0.5),
    "gem__threshold": (1.0, 1.5),
    "logit__penalty": (0.02, 0.1, 0.4),
}


class GEMClassifierCV(Iterative, BlockScores, ClassifierMixin, BaseEstimator):
    """GEM classifier with parameters chosen on held-out samples, then fitted to all samples.

    Use it where a search over the `ridge` and `threshold` of GEM and the `penalty` of the logit
    pays. Candidates share moments, directions, projections and Gram matrices, so that it is faster
    than ``GridSearchCV``. Give it a grid of few values first. User guide:
    :doc:`/guide/classifier`.

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
        Criterion to minimise; the other one breaks ties.
    refit : bool, default=True
        Whether the best candidate is fitted to all samples.
    random_state : int, RandomState or None, default=0
        Seed for drawing the held-out part.
    verbose : int, default=0
        1 shows a progress bar on stderr.
    n_threads : int or None, default=None
        Number of threads; None means that of `estimator`.

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
        Mean score of the best candidate on held-out samples.
    best_estimator_ : GEMClassifier
        The best candidate fitted to all samples; only with `refit`.
    classes_ : (k,) array
        Labels, sorted.

    Raises
    ------
    ValueError
        If the grid has a name that is not a parameter of the estimator, samples or labels are
        invalid, or a split has no training samples of some class.

    See Also
    --------
    GEMClassifier : Needs no search on most tables.
    sklearn.model_selection.GridSearchCV : Any estimator; shares nothing.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014, section 4.1.

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
            Finite samples. Blocks are read many times, as by `GEMClassifier`, and once more to
            score each path of penalties.
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
        grid = GRID if self.grid is None else self.grid
        trials: list[Trial] = [
            {"params": params, "splits": []} for params in _candidates(base, grid)
        ]
        samples = _SearchSamples(base, trials, X, y, sample_weight)
        self._try(trials, samples)
        results = sorted(map(_summary, trials), key=self._rank)
        self.results_ = results
        best = dict(results[0]["params"])
        if self.refit:
            fitted = clone(base).set_params(**best)
            samples.fit(fitted)
            self.best_estimator_ = fitted
        else:
            self.__dict__.pop("best_estimator_", None)
        self.best_params_ = best
        self.best_index_ = [trial["params"] for trial in trials].index(results[0]["params"])
        self.cv_results_ = _columns(trials, self.scoring)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.classes_ = samples.classes
        take_names(self, samples)
        return self

    def _base(self) -> GEMClassifier:
        """A new estimator with the parameters that are not in the grid."""
        base = GEMClassifier() if self.estimator is None else clone(self.estimator)
        if isinstance(base, GEMClassifier) and base.nested("logit").solver == "auto":
            base.set_params(logit__solver="lbfgs")  # "auto" may choose a solver without penalties
        if self.n_threads is not None:
            base.set_params(n_threads=self.n_threads)
        return base

    def _try(self, trials: list[Trial], samples: _SearchSamples) -> None:
        """Fill in the `splits` of every trial; after an error, `results_` has finished trials."""
        splits = list(self._splits(samples))
        try:
            with progress_bar(len(trials) * len(splits), "GEMClassifierCV", self.verbose) as bar:

                def done(trial: Trial) -> None:
                    bar(_progress_text(trial), 1)
                    self._step_done()

                for train, held_out in splits:
                    samples.split(train, held_out).run(trials, done)
        except (Exception, KeyboardInterrupt) as error:
            finished = [_summary(trial) for trial in trials if trial["splits"]]
            if finished or isinstance(error, KeyboardInterrupt):
                self.results_ = finished
            raise

    def _rank(self, result: dict[str, Any]) -> tuple[float, float]:
        """Sort key of a candidate; the best has the smallest."""
        pair = result["error"], result["log_loss"]
        return pair if self.scoring == "error" else pair[::-1]

    def predict(self, X: Rows | RowBlocks) -> Labels:
        """Most probable labels, (n,)."""
        return self._best().predict(X)

    def predict_proba(self, X: Rows) -> Floats:
        """Class probabilities, (n, k)."""
        return self._best().predict_proba(X)

    def predict_log_proba(self, X: Rows) -> Floats:
        """Logarithms of the class probabilities, (n, k)."""
        return self._best().predict_log_proba(X)

    def decision_function(self, X: Rows) -> Floats:
        """Logits, (n, k), or (n,) with two classes."""
        return self._best().decision_function(X)

    def _best(self) -> GEMClassifier:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _splits(self, samples: _SearchSamples) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield the indices of training and held-out samples of each split."""
        codes, cv = samples.codes, self.cv
        if cv is None:
            share, random = self.validation_fraction, self.random_state
            check_held_out(codes, samples.classes, share, "a search")
            splitter = StratifiedShuffleSplit(1, test_size=share, random_state=random)
        elif isinstance(cv, Integral):
            splitter = checked_splitter(cv, codes, len(codes))
        else:
            return samples.parts(checked_splitter(cv, codes, samples.n_given))
        return iter(splitter.split(np.empty((len(codes), 0)), codes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # as GEMClassifier's
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
    return list(ParameterGrid({name: list(values) for name, values in grid.items()}))


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


# ---- the samples, and their splits ---------------------------------------------------------------


class _SearchSamples:
    """Checked samples with positive weight, for candidates whose parameters are checked.

    Parameters
    ----------
    base : GEMClassifier
    trials : list of Trial
    X, y, sample_weight
        As in `GEMClassifier.fit`.

    Attributes
    ----------
    classes : (k,) array
    codes : (n,) array
        Indices of the labels.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Names of the columns, if they have names.
    """

    def __init__(
        self,
        base: GEMClassifier,
        trials: list[Trial],
        X: Rows | RowBlocks,
        y: Targets,
        sample_weight: ArrayLike | None,
    ) -> None:
        for trial in trials:
            _candidate(base, trial["params"])
        self.base, self._given = base, (X, y, sample_weight)
        checked = clone(base)
        self.samples = checked.prepare(X, y, sample_weight, moments=False)
        self.classes, self.codes = self.samples.classes, self.samples.codes
        take_names(self, checked)

    def parts(self, splitter: BaseCrossValidator) -> Iterator[tuple[Codes, Codes]]:
        """Yield the indices of training and held-out samples of the caller's splits.

        The splitter may refer to samples by their indices among all given samples. It therefore
        splits all of them, and samples without weight, which have the first label, are left out.
        """
        positive, labels = self._weighted, self.classes[self.codes]
        if positive is None:
            known = self.samples.block.X if isinstance(self.samples, MemorySamples) else None
            X = np.empty((len(labels), 0)) if known is None else known
            yield from splitter.split(X, labels)
            return
        given = np.full(len(positive), self.classes[0], dtype=labels.dtype)
        given[positive] = labels
        number = np.cumsum(positive) - 1
        for parts in splitter.split(np.empty((len(positive), 0)), given):
            train, held_out = (number[part[positive[part]]] for part in map(_indices, parts))
            yield train, held_out

    @property
    def n_given(self) -> int:
        """Number of given samples, including samples without weight."""
        return len(self.codes if self._weighted is None else self._weighted)

    @property
    def _weighted(self) -> NDArray[np.bool_] | None:
        """Mask of the given samples with positive weight; None if all weights are positive."""
        if isinstance(self.samples, BlockSamples):
            return self.samples.weighted
        weight = self._given[2]
        positive = np.ones(1, bool) if weight is None else np.asarray(weight) > 0
        return None if positive.all() else positive

    def fit(self, model: GEMClassifier) -> None:
        """Fit a classifier to all samples."""
        model.fit(*self._given)

    def split(self, train: ArrayLike, held_out: ArrayLike) -> _Split:
        """One split, from the indices or masks of training and held-out samples."""
        train, held_out = _indices(train), _indices(held_out)
        if not len(held_out):
            raise ValueError("cv: expected samples held out in every split, got none")
        lacking = np.bincount(self.codes[train], minlength=len(self.classes)) == 0
        if lacking.any():
            label = self.classes[lacking].tolist()[0]
            raise ValueError(
                "cv: expected samples of every class to train on in every split, got none of "
                f"class {label!r}"
            )
        for part in (train, held_out):
            repeated = np.flatnonzero(part[1:] == part[:-1])
            if not self.samples.in_memory and len(repeated):
                raise ValueError(
                    "cv: expected splits of blocks without repeated samples, got sample "
                    f"{part[repeated[0]]} twice"
                )
        return _Split(self.base, self.samples.subset(train), self.samples.subset(held_out))


def _indices(part: Any) -> NDArray[np.int64]:
    """Ascending indices from indices in any order, or from a mask."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool else np.sort(part.astype(np.int64))


# ---- candidates on one pair of training and held-out samples -------------------------------------


class _Split:
    """One split, on which groups of candidates share moments, directions and projections.

    Parameters
    ----------
    base : GEMClassifier
        Estimator with the parameters that are not in the grid.
    train, held_out : LabelledSamples
        Samples to fit to, and samples to score on.
    """

    def __init__(
        self, base: GEMClassifier, train: LabelledSamples, held_out: LabelledSamples
    ) -> None:
        self.base, self.train, self.held_out = base, train, held_out
        self.settled: dict[Any, dict[str, Any]] = {}
        self.moments: ClassMoments | None = None

    def run(self, trials: list[Trial], advance: Callable[[Trial], None]) -> None:
        """Append the scores of this split to the `splits` of every trial."""
        for same_solution in self._same_solution(trials):
            layers = self._solve(same_solution)
            default = self.base.nested("gem").include_input
            include = [
                trial["params"].get("gem__include_input", default) for trial in same_solution
            ]
            projected = [
                part.mapped(layers, include_input=any(include))
                for part in (self.train, self.held_out)
            ]
            for model, mask, same_features in self._same_features(same_solution, layers[-1]):
                gem = model.depth_options().gem
                kept = layers[-1].subset(mask)
                last = replace(kept, expansion=gem.expansion, powers=tuple(gem.powers))
                include_input = model.nested("gem").include_input
                train, held_out = (part.narrowed(last, mask, include_input) for part in projected)
                for trial, result in self._path(same_features, model, train, held_out):
                    trial["splits"].append(result | {"n_directions_kept": int(mask.sum())})
                    advance(trial)

    def _same_features(
        self, trials: list[Trial], layer: Layer
    ) -> Iterator[tuple[GEMClassifier, NDArray[np.bool_], list[Trial]]]:
        """Groups of candidates with equal directions and expansions."""
        groups: dict[Any, tuple[GEMClassifier, NDArray[np.bool_], list[Trial]]] = {}
        for trial in trials:
            model = _candidate(self.base, trial["params"])
            mask = _selected(layer, model)
            gem = model.depth_options().gem
            own = model.nested("gem").include_input
            key = (mask.tobytes(), gem.expansion, tuple(gem.powers), own)
            groups.setdefault(key, (model, mask, []))[2].append(trial)
        return iter(groups.values())

    def _same_solution(self, trials: list[Trial]) -> Iterator[list[Trial]]:
        """Groups of candidates that select from the directions of one solution."""
        shared = ("logit__penalty", *_SELECTION, *_EXPANSION)
        base = self.base.get_params()
        groups: dict[str, list[Trial]] = {}
        for trial in trials:
            params = trial["params"]
            automatic = [params.get(name, base[name]) == "auto" for name in _SELECTION]
            others = sorted((k, repr(v)) for k, v in params.items() if k not in shared)
            groups.setdefault(repr((automatic, others)), []).append(trial)
        return iter(groups.values())

    def _solve(self, trials: list[Trial]) -> list[Layer]:
        """Layers with the most directions and the lowest threshold of the candidates."""
        models = [_candidate(self.base, trial["params"]) for trial in trials]
        given = [model.nested("gem") for model in models]
        thresholds: list[Any] = [gem.threshold for gem in given]
        left_open = given[0].scale, given[0].constant
        models[0].set_params(  # all candidates of a group have numbers, or all have "auto"
            gem__threshold=None if None in thresholds else min(thresholds),
            gem__n_directions=max(gem.n_directions for gem in given),
            **self.settled.get(left_open, {}),
        )
        layers, first = solve_layers(self.train, models[0].depth_options(), _silent, self.moments)
        self.settled[left_open] = {"gem__scale": first.scale_, "gem__constant": first.constant_}
        self.moments = first.moments_
        return layers

    def _path(
        self, trials: list[Trial], model: GEMClassifier, train: Any, held_out: Any
    ) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """Fit and score all penalties on one matrix of features, from large to small."""

        def penalty(trial: Trial) -> float:
            return float(trial["params"].get("logit__penalty", model.nested("logit").penalty))

        penalties = sorted(set(map(penalty, trials)), reverse=True)
        logit = model.logit_options().set_params(temperature=1.0)
        fits = _timed(logit.iterate_path(train, None, penalties))
        for batch in _batches(fits, held_out):
            logits = [fitted for fitted, _ in batch]
            losses, total = held_out.reduce(_held_out_losses, add, logits)
            for (fitted, seconds), (error, loss) in zip(batch, losses / total, strict=True):
                result = {
                    "error": float(error),
                    "log_loss": float(loss),
                    "n_iter": int(fitted.n_iter_[0]),
                    "seconds": seconds,
                }
                yield from ((trial, result) for trial in trials if penalty(trial) == fitted.penalty)


def _batches(
    fits: Iterable[tuple[MultinomialLogit, float]], held_out: LabelledSamples
) -> Iterator[_Fits]:
    """Logits of a path that are scored together: all logits, if scoring needs a pass over blocks.

    After Ctrl-C, the finished logits.
    """
    if held_out.in_memory:
        yield from ([fit] for fit in fits)
        return
    finished: _Fits = []
    try:
        for fit in fits:
            finished.append(fit)
    except KeyboardInterrupt:
        if finished:
            yield finished
        raise
    yield finished


def _silent(text: str, started: float) -> None:
    """Ignore a line of a candidate."""


def _candidate(base: GEMClassifier, params: dict[str, Any]) -> GEMClassifier:
    """A classifier with changed parameters, which are checked."""
    model: GEMClassifier = clone(base).set_params(**params)
    model.check_parameters()
    return model


def _held_out_losses(
    block: Block, logits: list[MultinomialLogit]
) -> tuple[NDArray[np.float64], float]:
    """Sums of the errors and log losses of several logits, and of the weights; merged by `add`.

    Parameters
    ----------
    block : Block
        Features; labels are indices of the logits' classes.
    logits : list of MultinomialLogit

    Returns
    -------
    (m, 2) array
        Weight of the misclassified samples, and weighted sum of the log losses, of each logit.
        Probabilities are clipped to [eps, 1 - eps] of their type, as in scikit-learn.
    float
        Weight of all samples.
    """
    weight = np.ones(len(block)) if block.weight is None else np.asarray(block.weight)
    sums = []
    for logit in logits:
        logarithms = logit.predict_log_proba(block.X)
        eps = np.finfo(logarithms.dtype).eps
        right = logarithms[np.arange(len(block)), block.y].astype(np.float64)
        losses = -np.clip(right, np.log(eps), np.log1p(-eps))
        wrong = logarithms.argmax(axis=1) != block.y
        sums.append((weight @ wrong, weight @ losses))
    return np.array(sums), float(weight.sum())


def _selected(layer: Layer, model: GEMClassifier) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.ones(len(layer.ranks), dtype=bool)
    gem = model.nested("gem")
    most, least = gem.n_directions, gem.threshold
    if not isinstance(most, str):
        mask &= layer.ranks < most
    if not (least is None or isinstance(least, str)):
        mask &= layer.eigenvalues >= least
    return mask


def _timed(
    fits: Iterable[MultinomialLogit],
) -> Iterator[tuple[MultinomialLogit, float]]:
    started = time.perf_counter()
    for fitted in fits:
        yield fitted, time.perf_counter() - started
        started = time.perf_counter()

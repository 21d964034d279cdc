"""Choice of a GEM classifier's parameters, with computations shared between candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import ParameterGrid, StratifiedShuffleSplit
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved import fits
from eigenfeat._base.types import CrossValidation, Floats, Labels, RandomState, Rows
from eigenfeat._base.validation import take_names
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.search_rows import SearchRows
from eigenfeat.rows.estimator import BaseEstimator, Iterative, progress_bar, with_steps
from eigenfeat.rows.out_of_core import BlockScores
from eigenfeat.rows.splits import check_held_out, checked_splitter, cv_results

if TYPE_CHECKING:
    from eigenfeat.gem.search_splits import Trial
    from eigenfeat.rows.blocks import RowBlocks

__all__ = ["GEMClassifierCV"]

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
        The same by column, in the order of the grid, as ``GridSearchCV`` has it. Scores are
        accuracies or, with ``scoring="log_loss"``, negative log losses.
    best_params_, best_index_, best_score_ : dict, int, float
        The best candidate, its place in `cv_results_`, and its mean score on held-out samples.
    best_estimator_ : GEMClassifier
        The best candidate fitted to all samples; only with `refit`.
    classes_ : (k,) array

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

    _saved: ClassVar[dict[str, str]] = {"best_estimator_": "estimator?"}

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
            Finite samples. Blocks and memory-mapped arrays are read many times, as by
            `GEMClassifier`, and once more to score each path of penalties.
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
        rows = SearchRows(base, trials, X, y, sample_weight)
        self._try(trials, rows)
        results = sorted(map(_summary, trials), key=self._rank)
        self.results_ = results
        best = dict(results[0]["params"])
        if self.refit:
            fitted = clone(base).set_params(**best)
            rows.fit(fitted)
            self.best_estimator_ = fitted
        else:
            self.__dict__.pop("best_estimator_", None)
        self.best_params_ = best
        self.best_index_ = [trial["params"] for trial in trials].index(results[0]["params"])
        self.cv_results_ = _columns(trials, self.scoring)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.classes_ = rows.classes
        take_names(self, rows)
        return self

    def _base(self) -> GEMClassifier:
        """A new estimator with the parameters that are not in the grid."""
        base = GEMClassifier() if self.estimator is None else clone(self.estimator)
        if isinstance(base, GEMClassifier):  # `_candidates` refuses other estimators
            base.gem, base.logit = base._base_gem(), base._base_logit()
            if base.logit.solver == "auto":
                base.logit.solver = "lbfgs"  # whose penalties are searched
        if getattr(base, "views", None) == "auto":
            base.views = "gem"  # whose parameters are searched
        if self.n_threads is not None:
            base.set_params(n_threads=self.n_threads)
        return base

    def _try(self, trials: list[Trial], rows: SearchRows) -> None:
        """Fill in the `splits` of every trial; if it ends early, `results_` is partial."""
        splits = list(self._splits(rows))
        try:
            with progress_bar(len(trials) * len(splits), "GEMClassifierCV", self.verbose) as bar:

                def done(trial: Trial) -> None:
                    bar(_progress_text(trial), 1)
                    self._step_done()

                for train, held_out in splits:
                    rows.split(train, held_out).run(trials, done)
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

    def _splits(self, rows: SearchRows) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Numbers of the rows to train on and of those to hold out, split by split."""
        codes, cv = rows.codes, self.cv  # which split as labels do, and are smaller
        if cv is None:
            share, random = self.validation_fraction, self.random_state
            check_held_out(codes, rows.classes, share, "a search")
            splitter = StratifiedShuffleSplit(1, test_size=share, random_state=random)
        elif isinstance(cv, Integral):
            splitter = checked_splitter(cv, codes, len(codes))
        else:
            return rows.parts(checked_splitter(cv, codes, rows.n_given))
        return iter(splitter.split(np.empty((len(codes), 0)), codes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # as GEMClassifier's
        return tags

    def _check_loaded(self) -> None:
        fits(getattr(self, "best_estimator_", self) is not None, "GEMClassifierCV.best_estimator_")


def _candidates(base: Any, grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(base, GEMClassifier):
        raise ValueError(f"estimator: expected a GEMClassifier, got {type(base).__name__}")
    known = base.get_params()
    for name, values in grid.items():
        if name not in known:
            hint = next((full for full in known if full.endswith(f"__{name}")), None)
            hint = "gem__NAME and logit__NAME among them" if hint is None else f"{hint!r} perhaps"
            raise ValueError(f"grid: expected parameters of GEMClassifier, {hint}, got {name!r}")
        if name == "logit__temperature":  # scores are of the logits before it
            raise ValueError(
                "grid: expected logit__temperature in the estimator, got it in the grid"
            )
        if name == "class_weight":  # the weights of errors, too, which candidates must share
            raise ValueError("grid: expected class_weight in the estimator, got it in the grid")
        if name in (
            "epochs",
            "perturbation",
            "learning_rate",
        ):  # only the best one is trained jointly
            raise ValueError(f"grid: expected {name} in the estimator, got it in the grid")
        if isinstance(values, str) or not np.iterable(values) or len(list(values)) == 0:
            raise ValueError(f"grid: expected a sequence of values of {name}, got {values!r}")
        if name == "logit__penalty" and "auto" in list(values):
            raise ValueError("grid: expected numbers as penalties, got 'auto'")
    if base._base_logit().penalty == "auto" and "logit__penalty" not in grid:
        expected = "expected a penalty that is a number, or some in grid"
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
    """`cv_results_`: what was tried by column, with scores that are larger for the better."""
    losses = np.array([[split[scoring] for split in trial["splits"]] for trial in trials])
    summaries = [_summary(trial) for trial in trials]
    names = ("error", "log_loss", "n_directions_kept", "n_iter", "seconds")
    others = {name: np.array([one[name] for one in summaries]) for name in names}
    scores = 1 - losses if scoring == "error" else -losses
    return cv_results([trial["params"] for trial in trials], scores, **others)


def _progress_text(trial: dict[str, Any]) -> str:
    """A candidate and its error on the last split, for whoever waits."""
    chosen = ", ".join(f"{k}={v}" for k, v in trial["params"].items())
    return f"{chosen}: {100 * trial['splits'][-1]['error']:.2f}%"

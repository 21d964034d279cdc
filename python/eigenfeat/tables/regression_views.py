r"""Views of `TableRegressor`: regressions on several representations of a table's columns.

Ridge regressions predict each training sample by leave-one-out in closed form, and the forest
predicts it by the trees that were grown without it. Other views are fitted again without each fold.
For features that depend on the targets, the fit to all samples chooses the penalty and the widths
of kernels, while each fit without a fold finds its own directions and maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from eigenfeat._base.threads import resolve
from eigenfeat.expansion.features import Layer, as_layer
from eigenfeat.gem.gem import GEM
from eigenfeat.linear.ridge import Ridge, fit_ridge, solve_ridge
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.moments.columns import deviations
from eigenfeat.samples.targets import supervised_contractions, target_groups
from eigenfeat.tables.representations import Kernel, Table
from eigenfeat.tables.views import BoostingView, EstimatorView, Folds, ForestView, Samples, View

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats

    LeftOut = Callable[[Codes], NDArray[np.float64]]

__all__ = ["VIEWS", "reason_against"]

_Array = NDArray[np.float64]

# bench/regression.py shows the effect of the following numbers.
_MAX_GEM_COLUMNS = 500  # with more, moments of all bins take most of the time
_MAX_MAP_COLUMNS = 200
_MAX_BOOSTED_OUTPUTS = 5  # each output has its own trees
_MIN_SAMPLES = 100  # fewer samples mislead boosting and learned maps
_COUNTED_AT_ONCE = 16_384  # samples whose columns are in memory for the moments of bins
_BINS, _CONTRACTIONS = 5, 5  # of the target, and of several outputs
_DIRECTIONS = 5  # for each pair of bins
_POWERS = (1, 2, 3)
_SHARPNESS = (2.0, 0.7, 0.25, 0.08)  # of kernels that are tried, relative to the inputs' variance
_MAP_SHARPNESS = (1.0, 0.25)
_MAP_STEPS = 2
_MAX_TUNED = 4_000  # samples that choose the sharpness and learn the map
_TREES = 50  # of a forest
_MANY_SAMPLES = 20_000  # beyond, trees are fewer and larger
_MORE_SAMPLES = 50_000  # beyond, boosting is fitted once
_TREES_OF_MANY, _MAX_GROWN = 30, 40_000  # trees of a forest of many samples, and samples of each
_MAX_TRIED = 500  # columns that one split tries
_MAX_TREES = ((_MANY_SAMPLES, 800), (np.inf, 200))  # of boosting, and the largest number of samples
_MAX_SEARCHED = 100_000  # trees of boosting times columns, but for the first trees
# Views of the logarithms of targets, and the least skewness of targets if the view of the targets
# themselves is tried.
_OF_LOGARITHMS = {"splines_log": 0.5, "boosting_log": 2.0}
_LEAST_VARIATION = 0.1  # standard deviation over mean; logarithms of others are nearly linear
# Options of boosting, and the largest number of samples that has them.
_BOOSTING: tuple[tuple[float, dict[str, Any]], ...] = (
    (
        _MANY_SAMPLES,
        {
            "max_iter": 50,
            "learning_rate": 0.2,
            "max_leaf_nodes": 6,
            "min_samples_leaf": 3,
            "max_bins": 64,
            "max_features": 0.3,
        },
    ),
    (
        np.inf,
        {"max_iter": 100, "max_leaf_nodes": 31, "min_samples_leaf": 10, "max_features": 0.5},
    ),
)


class LinearView(View):
    """Ridge regression on features of the columns."""

    def outputs(self, table: Table) -> _Array:
        return self.ridge.predict(self.features(table), table.n_threads)

    def fit_ridge(self, samples: Samples, common_scale: bool = False) -> LeftOut:
        """Fit to samples, and return the function of their leave-one-out predictions."""
        problem = self.feature_function(samples), samples.targets, samples.share
        ridge, left_out = fit_ridge(*problem, common_scale=common_scale)
        self.keep(ridge)
        return left_out

    def solve_ridge(self, samples: Samples, penalty: float, common_scale: bool = False) -> None:
        """Fit to samples with a given penalty."""
        problem = self.feature_function(samples), samples.targets, samples.share
        self.keep(solve_ridge(*problem, penalty, common_scale=common_scale))

    def feature_function(self, samples: Samples) -> Callable[[Codes | slice], Floats]:
        """The function that computes features of samples by their indices."""
        view = copy(self)  # later fits change the kernel
        return lambda rows: view.features(samples.table.subset(rows))

    def keep(self, ridge: Ridge) -> None:
        """Store a fitted regression."""
        self.ridge, self.penalty, self.n_features = ridge, ridge.penalty, len(ridge.coef)


class RidgeView(LinearView):
    """Ridge regression on columns or splines."""

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        return self.fit_ridge(samples)(folds.held)


class KernelView(LinearView):
    """Ridge regression on a Gaussian kernel of the columns, with the best of four widths."""

    kernel: Kernel

    def features(self, table: Table) -> Floats:
        return self.kernel.features(self.mapped(table), table.n_threads)

    def outputs(self, table: Table) -> _Array:
        scores = self.kernel.scores(self.mapped(table), self.ridge.coef, table.n_threads)
        return scores + self.ridge.intercept

    def mapped(self, table: Table) -> NDArray[np.float32]:
        """The columns, or a map of their ranks, whose distances the kernel reads."""
        inputs: NDArray[np.float32] = super().features(table)
        return inputs

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        return self.fit_kernel(samples)(folds.held)

    def fit_kernel(self, samples: Samples) -> LeftOut:
        """Choose the kernel on at most 4,000 samples, and fit to all.

        Returns what `fit_ridge` returns.
        """
        drawn = samples.drawn(_MAX_TUNED)
        left_out = self.choose_kernel(drawn, _SHARPNESS)
        return left_out if drawn is samples else self.fit_ridge(samples, common_scale=True)

    def choose_kernel(self, samples: Samples, tried: tuple[float, ...]) -> LeftOut:
        """Fit the kernel of the smallest leave-one-out error; return what `fit_ridge` returns."""
        trials = []
        for sharpness in tried:
            self.set_kernel(samples, sharpness)
            left_out = self.fit_ridge(samples, common_scale=True)
            trials.append((self.ridge.error, self.kernel, self.ridge, left_out, sharpness))
        _, self.kernel, ridge, left_out, self.sharpness = min(trials, key=itemgetter(0))
        self.keep(ridge)
        return left_out

    def set_kernel(self, samples: Samples, sharpness: float) -> None:
        """Draw landmarks of a kernel of this sharpness."""
        random = np.random.RandomState(samples.seed)
        self.kernel = Kernel.fit(self.mapped(samples.table), random, sharpness)


class LearnedKernelView(KernelView):
    r"""Ridge regression on a Gaussian kernel of ``r @ map``, r the ranks of a sample.

    The map (Radhakrishnan et al. 2024) starts as the identity. With the gradients :math:`g_i` of
    the regression at the samples, it becomes a root of the mean of :math:`g_i g_i^T`, so that
    distances are large along directions in which the regression changes. With fewer than 100
    samples, whose gradients mislead, the map stays the identity.
    """

    def mapped(self, table: Table) -> NDArray[np.float32]:
        return np.ascontiguousarray(np.einsum("ij,jk->ik", table.ranks, self.map), np.float32)

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        drawn = self._start(samples)
        if len(samples) < _MIN_SAMPLES:
            return super().cross_fit(samples, folds)
        options = []
        for _ in range(_MAP_STEPS):
            self.choose_kernel(drawn, _MAP_SHARPNESS)
            options.append((self.sharpness, self.penalty))
            self._update_map(drawn)
        self.fit_kernel(samples)
        self.options = [*options, (self.sharpness, self.penalty)]
        view = copy(self)  # `self` keeps the fit to all samples
        return view.fold_outputs(view.refit, samples, folds)

    def refit(self, samples: Samples) -> None:
        """Fit to samples of a fold."""
        drawn, (*steps, (sharpness, penalty)) = self._start(samples), self.options
        for step_sharpness, step_penalty in steps:
            self.set_kernel(drawn, step_sharpness)
            self.solve_ridge(drawn, step_penalty, common_scale=True)
            self._update_map(drawn)
        self.set_kernel(drawn, sharpness)
        self.solve_ridge(samples, penalty, common_scale=True)

    def _start(self, samples: Samples) -> Samples:
        """Set the map to the identity, and return the samples that it is learned from."""
        self.map = np.eye(samples.table.ranks.shape[1], dtype=np.float32)
        return samples.drawn(_MAX_TUNED)

    def _update_map(self, drawn: Samples) -> None:
        """Learn the map from the gradients of the fitted regression at these samples."""
        gradients = _gradients(self.kernel, self.ridge, self.mapped(drawn.table)) @ self.map.T
        weighted = np.sqrt(drawn.share)[:, None, None] * gradients
        weighted = weighted.reshape(-1, weighted.shape[2])
        self.map = _root(weighted.T @ weighted)


def _gradients(kernel: Kernel, ridge: Ridge, inputs: NDArray[np.float32]) -> _Array:
    """Gradients (n, q, d) of the regression at the inputs."""
    landmarks = kernel.landmarks.astype(np.float64)
    similar = kernel.similarities(inputs).astype(np.float64)
    gradients = [
        similar @ (one[:, None] * landmarks) - (similar @ one)[:, None] * inputs
        for one in kernel.weights(ridge.coef).T
    ]
    return 2.0 * kernel.gamma * np.stack(gradients, axis=1)


def _root(products: _Array) -> NDArray[np.float32]:
    """``V diag(lambda)^(1/2)`` of a positive semidefinite matrix, of mean eigenvalue 1."""
    values, vectors = np.linalg.eigh(products)
    values = np.maximum(values, 0.0)
    if not values.sum() > 0:
        return np.eye(len(products), dtype=np.float32)
    return np.asarray(vectors * np.sqrt(values / values.mean()), dtype=np.float32)


class GemView(LinearView):
    """Ridge regression on splines and on GEM features of ranks between bins of the target.

    The mean squares of two bins differ along the directions (Karampatziakis and Mineiro 2014,
    section 5).
    """

    def features(self, table: Table) -> Floats:
        X = table.ranks.astype(np.float64)
        layers = (layer.transform(X, table.n_threads) for layer in self.layers)
        return np.hstack([table.splines, *layers])

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        self._find_directions(samples)
        self.fit_ridge(samples)
        view = copy(self)  # `self` keeps the fit to all samples
        return view.fold_outputs(view.refit, samples, folds)

    def refit(self, samples: Samples) -> None:
        """Fit to samples of a fold."""
        self._find_directions(samples)
        self.solve_ridge(samples, self.penalty)

    def _find_directions(self, samples: Samples) -> None:
        """Solve for directions between the bins of each contraction of the outputs."""
        outputs = samples.targets[:, (samples.targets != samples.targets[:1]).any(axis=0)]
        self.layers: list[Layer] = []
        if not outputs.shape[1]:
            return
        vectors = None
        if outputs.shape[1] > 1:
            vectors = supervised_contractions(
                samples.table.ranks, outputs, _CONTRACTIONS, sample_weight=samples.weight
            )
        groupings = target_groups(
            outputs, _BINS, sample_weight=samples.weight, contractions=vectors
        )
        self.layers = [self._layer(samples, groups) for groups in groupings]

    def _layer(self, samples: Samples, groups: NDArray[np.int64]) -> Layer:
        """Directions between groups of samples."""
        moments = ClassMoments()
        for start in range(0, len(samples), _COUNTED_AT_ONCE):
            rows = slice(start, start + _COUNTED_AT_ONCE)
            X = samples.table.subset(rows).ranks.astype(np.float64)
            moments.update(X, groups[rows], samples.weight_of(rows), n_threads=samples.n_threads)
        return as_layer(self._gem(samples).fit_moments(moments))

    def _gem(self, samples: Samples) -> GEM:
        return GEM(
            ridge="auto",
            n_directions=_DIRECTIONS,
            pairs="all",
            constant=True,
            scale="none",
            expansion="shifted",
            powers=_POWERS,
            random_state=samples.seed,
            n_threads=samples.n_threads,
        )


class ForestRegressorView(ForestView):
    """Extremely randomised trees of bootstrap samples (Geurts, Ernst and Wehenkel 2006)."""

    def unfitted(self, samples: Samples) -> Any:
        many = len(samples) > _MANY_SAMPLES
        return ExtraTreesRegressor(
            n_estimators=_TREES_OF_MANY if many else _TREES,
            max_features=min(self.n_inputs(samples), _MAX_TRIED),
            bootstrap=True,
            max_samples=min(len(samples), _MAX_GROWN) if many else None,
            random_state=samples.seed,
            n_jobs=resolve(samples.n_threads) or -1,
        )


class BoostingRegressorView(BoostingView):
    """Boosting with a series of trees for each output."""

    max_refitted = _MORE_SAMPLES

    def step_limits(self, samples: Samples) -> tuple[int, int]:
        searched = _MAX_SEARCHED // samples.table.statistics.n_columns
        return samples.sized(_BOOSTING)["max_iter"], min(samples.sized(_MAX_TREES), searched)

    def loss(self, outputs: _Array, samples: Samples, held: Codes) -> float:
        squares = ((outputs - samples.targets[held]) ** 2).sum(axis=1)
        return float(samples.share[held] @ squares)

    def unfitted(self, samples: Samples) -> list[tuple[Any, NDArray[Any]]]:
        boosting = HistGradientBoostingRegressor(
            early_stopping=False,
            random_state=samples.seed,
            **samples.sized(_BOOSTING) | {"max_iter": self.steps},
        )
        return [(clone(boosting), target) for target in samples.targets.T]

    def joined(
        self, fitted: list[Any], steps: list[list[Any]]
    ) -> tuple[_Array, list[tuple[int, Any]]]:
        start = np.array([boosting._baseline_prediction[0, 0] for boosting in fitted])
        return start, [
            (j, tree) for step in zip(*steps, strict=True) for j, (tree,) in enumerate(step)
        ]


class LogView(View):
    """A view of the logarithms of positive targets.

    Its predictions are the exponentials of those of the inner view, times the ratio of the means of
    targets and held-out predictions, which corrects the bias of the exponential function (cf. the
    smearing estimate of Duan, JASA 78, 1983). With the variance v of held-out residuals of the
    logarithms, the ratio is clipped to exp(-v) and exp(v), because few large targets may determine
    it. Logarithms are clipped to a standard deviation beyond their range in the samples.
    """

    def __init__(self, view: View) -> None:
        super().__init__(view.inputs)
        self.view = view

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        logs: Any = samples.logarithms
        self.mean = np.average(logs, axis=0, weights=samples.weight)
        scale = deviations(logs, samples.weight)
        self.zero, self.scale = samples.zero, np.where(scale > 0, scale, 1.0)
        scaled = self._of_logarithms(samples)
        self.low, self.high = scaled.targets.min(axis=0) - 1.0, scaled.targets.max(axis=0) + 1.0
        outputs = self.view.cross_fit(scaled, folds)
        held, share = folds.held, samples.share[folds.held]
        share /= share.sum()
        bound = share @ (self.scale * (scaled.targets[held] - outputs)) ** 2
        values = self._exponentials(outputs)
        ratio = (share @ (samples.targets[held] - self.zero)) / (share @ values)
        self.factor = np.exp(np.clip(np.log(ratio), -bound, bound))
        held_out: _Array = self.factor * values + self.zero
        return held_out

    def fit(self, samples: Samples) -> None:
        self.view.fit(self._of_logarithms(samples))
        self.penalty, self.n_features = self.view.penalty, self.view.n_features

    def outputs(self, table: Table) -> _Array:
        outputs: _Array = self.factor * self._exponentials(self.view.outputs(table)) + self.zero
        return outputs

    def _of_logarithms(self, samples: Samples) -> Samples:
        """The samples with standardised logarithms as targets."""
        logs: Any = samples.logarithms
        return replace(samples, targets=(logs - self.mean) / self.scale)

    def _exponentials(self, outputs: _Array) -> _Array:
        """Exponentials (n, q) of the logarithms that the inner view predicts."""
        logs = self.mean + self.scale * np.clip(outputs, self.low, self.high)
        values: _Array = np.exp(logs)
        return values


class RegressorView(EstimatorView):
    """A regressor with scikit-learn's interface, fitted to standardised targets."""

    def unfitted(self, samples: Samples) -> Any:
        fitted = super().unfitted(samples)
        several = samples.targets.shape[1] > 1
        if several and not get_tags(fitted).target_tags.multi_output:
            return MultiOutputRegressor(fitted)
        return fitted

    def outputs(self, table: Table) -> _Array:
        outputs = np.asarray(self.fitted.predict(table.X), np.float64).reshape(len(table), -1)
        if not np.isfinite(outputs).all():
            raise ValueError(f"{type(self.estimator).__name__}: expected finite predictions")
        return outputs


VIEWS: dict[str, Callable[[], View]] = {
    "columns": partial(RidgeView, "columns"),
    "splines": partial(RidgeView, "splines"),
    "splines_log": lambda: LogView(RidgeView("splines")),
    "gem_ranks": partial(GemView, "ranks"),
    "kernel": partial(KernelView, "columns"),
    "kernel_learned": partial(LearnedKernelView, "ranks"),
    "forest": partial(ForestRegressorView, "for_trees"),
    "boosting": partial(BoostingRegressorView, "for_trees"),
    "boosting_log": lambda: LogView(BoostingRegressorView("for_trees")),
}


def reason_against(name: str, names: Sequence[str], samples: Samples) -> str:
    """Why the view `name`, one of `names`, is not used for these samples; empty if it is used."""
    statistics = samples.table.statistics
    varying = int((statistics.scale > 0).sum())
    if name == "columns":
        return ""
    if "columns" in names and not samples.targets.any():
        return "the target is constant"
    if not varying:
        return "no column with spread"
    if name in _OF_LOGARITHMS and (why := _reason_against_logarithms(name, names, samples)):
        return why
    name = name.removesuffix("_log")
    if name in ("splines", "gem_ranks") and statistics.why_no_splines:
        return statistics.why_no_splines
    if name == "gem_ranks" and varying > _MAX_GEM_COLUMNS:
        return f"more than {_MAX_GEM_COLUMNS} columns"
    if name == "kernel_learned" and varying > _MAX_MAP_COLUMNS:
        return f"more than {_MAX_MAP_COLUMNS} columns"
    if name == "boosting" and len(samples) < _MIN_SAMPLES:
        return f"fewer than {_MIN_SAMPLES} samples"
    if name == "boosting" and samples.targets.shape[1] > _MAX_BOOSTED_OUTPUTS:
        return f"more than {_MAX_BOOSTED_OUTPUTS} outputs"
    return ""


def _reason_against_logarithms(name: str, names: Sequence[str], samples: Samples) -> str:
    """Why a view of the logarithms of the targets is not used; empty if it is used."""
    if samples.logarithms is None:
        return "the target is not positive"
    if (samples.zero < -1.0 / _LEAST_VARIATION).any():
        return f"the target varies by less than {_LEAST_VARIATION:.0%} of its mean"
    least, deviation = _OF_LOGARITHMS[name], samples.targets - samples.share @ samples.targets
    variance, third = (samples.share @ deviation**power for power in (2, 3))
    if name.removesuffix("_log") in names and (third < least * variance**1.5).any():
        return f"the skewness of the target is less than {least:g}"
    return ""

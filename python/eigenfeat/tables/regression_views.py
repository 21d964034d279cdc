r"""Views of `TableRegressor`: regressions on several representations of a table's columns.

==================  ================================================================================
view                regression
==================  ================================================================================
"columns"           ridge regression on the standardised columns; categories are one-hot
"splines"           ridge regression on cubic B-splines of each numeric column
"gem"               ridge regression on the columns and on GEM features of them: directions along
                    which the mean squares of two bins of the target differ (Karampatziakis and
                    Mineiro 2014, section 5)
"gem_ranks"         ridge regression on the splines and on GEM features of the columns' ranks
"kernel"            ridge regression on a Gaussian kernel of the columns with at most 400 samples
"kernel_ranks"      the same kernel of the columns' ranks
"kernel_learned"    a Gaussian kernel of a linear map of the ranks, learned from the gradients of
                    the regression (Radhakrishnan et al. 2024)
"forest"            random forest of 200 trees (Breiman 2001)
"boosting"          gradient boosting of 200 trees of 8 leaves (Friedman 2001)
"boosting_pairs"    gradient boosting that also reads sums and differences of two columns' ranks
==================  ================================================================================

Ridge regressions on features that need no target predict each training sample by leave-one-out in
closed form, and the forest predicts it by the trees that were grown without it. Other views are
fitted again without each fold, directions and maps included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from eigenfeat._base.threads import resolve
from eigenfeat.expansion.features import Layer, as_layer
from eigenfeat.gem.gem import GEM
from eigenfeat.linear.ridge import Ridge, fit_ridge
from eigenfeat.samples.targets import supervised_contractions, target_groups
from eigenfeat.tables.trees import Trees, grow, unequal
from eigenfeat.tables.views import Kernel, Table, TableStatistics

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats

__all__ = ["VIEWS", "EstimatorView", "Samples", "View", "candidate_views"]

_Array = NDArray[np.float64]

# bench/regression.py shows the effect of the following numbers.
_MAX_SPLINES = 1_500  # features of all columns
_MAX_GEM_COLUMNS = 500  # beyond, moments of all bins take most of the time
_MAX_MAP_COLUMNS = 200
_MAX_BOOSTED_OUTPUTS = 5  # each output has its own trees
_MIN_SAMPLES = 100  # of boosting and learned kernels, which a few samples mislead
_BINS, _DIRECTIONS, _CONTRACTIONS = 5, 5, 5  # of the target, of a pair of bins, of the outputs
_POWERS = (1, 2, 3)
_SHARPNESS = (2.0, 0.7, 0.25, 0.08)  # of a kernel, relative to the inputs' variance
_MAP_SHARPNESS = (1.0, 0.25)
_MAP_STEPS = 2
_MAX_TUNED = 4_000  # samples that choose the sharpness and learn the map
_TREES, _TREES_OF_MANY, _MANY = 200, 100, 5_000  # trees of a forest beyond 5,000 samples
_MIN_TREES, _MAX_TRIED, _MAX_TRIES = 50, 500, 25_000  # columns that one split and all trees try
_BOOSTED_TREES, _MIN_BOOSTED_TREES, _MAX_SEARCHED = 200, 50, 100_000  # the last: trees x columns
_MAX_GROWN = 20_000  # samples of one tree


@dataclass(frozen=True, eq=False)
class Samples:
    """Training samples of a regression.

    Attributes
    ----------
    table : Table
        The columns and what views read of them.
    targets : (n, q) array
        Outputs of mean 0 and variance 1.
    weight : (n,) array
        Positive weights of mean 1.
    seed : int
    """

    table: Table
    targets: _Array
    weight: _Array
    seed: int

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def share(self) -> _Array:
        """Weights of sum 1."""
        share: _Array = self.weight / self.weight.sum()
        return share

    @property
    def n_threads(self) -> int | None:
        """Number of threads."""
        return self.table.n_threads

    def subset(self, indices: Codes) -> Samples:
        """Samples by their indices."""
        table, weight = self.table.subset(indices), self.weight[indices]
        return replace(self, table=table, targets=self.targets[indices], weight=weight)

    def drawn(self, most: int) -> Samples:
        """Draw at most `most` samples at random."""
        if len(self) <= most:
            return self
        drawn = np.random.RandomState(self.seed).permutation(len(self))[:most]
        return self.subset(np.sort(drawn))


class View:
    """A regression on one representation of a table."""

    def fit(self, samples: Samples) -> None:
        """Fit to samples."""
        raise NotImplementedError

    def predict(self, table: Table) -> _Array:
        """Outputs (n, q)."""
        raise NotImplementedError

    def cross_fit(self, samples: Samples, folds: list[tuple[Codes, Codes]]) -> _Array:
        """Fit to samples, and return predictions (n, q) of each by fits without it.

        Samples that no fold holds out may have NaN.
        """
        held_out = np.full_like(samples.targets, np.nan)
        for train, held in folds:
            self.fit(samples.subset(train))
            held_out[held] = self.predict(samples.table.subset(held))
        self.fit(samples)
        return held_out


class RidgeView(View):
    """Ridge regression on columns or splines."""

    def __init__(self, features: str) -> None:
        self.features = features

    def cross_fit(self, samples: Samples, folds: list[tuple[Codes, Codes]]) -> _Array:
        features = getattr(samples.table, self.features)
        self.ridge, left_out = fit_ridge(features, samples.targets, samples.share)
        return left_out

    def predict(self, table: Table) -> _Array:
        return self.ridge.predict(getattr(table, self.features), table.n_threads)


class KernelView(View):
    """Ridge regression on a Gaussian kernel of columns or ranks, with the best of four widths."""

    def __init__(self, inputs: str) -> None:
        self.inputs = inputs

    def cross_fit(self, samples: Samples, folds: list[tuple[Codes, Codes]]) -> _Array:
        inputs = getattr(samples.table, self.inputs)
        few = samples.drawn(_MAX_TUNED)
        tried = getattr(few.table, self.inputs)
        self.kernel, self.ridge, left_out = _fit_kernel(tried, few, _SHARPNESS)
        if few is samples:
            return left_out
        features = self.kernel.features(inputs, samples.n_threads)
        self.ridge, left_out = fit_ridge(
            features, samples.targets, samples.share, common_scale=True
        )
        return left_out

    def predict(self, table: Table) -> _Array:
        features = self.kernel.features(getattr(table, self.inputs), table.n_threads)
        return self.ridge.predict(features, table.n_threads)


class LearnedKernelView(View):
    r"""Ridge regression on a Gaussian kernel of ``r @ map``, r the ranks of a sample.

    The map starts as the identity. With the gradients :math:`g_i` of the regression at the samples,
    it becomes a root of the mean of :math:`g_i g_i^T`, so that distances are large along
    directions in which the regression changes.
    """

    def fit(self, samples: Samples) -> None:
        few = samples.drawn(_MAX_TUNED)
        ranks = few.table.ranks
        self.map = np.eye(ranks.shape[1], dtype=np.float32)
        for _ in range(_MAP_STEPS):
            kernel, ridge, _ = _fit_kernel(_mapped(ranks, self.map), few, _MAP_SHARPNESS)
            gradients = _gradients(kernel, ridge, _mapped(ranks, self.map)) @ self.map.T
            weighted = np.sqrt(few.share)[:, None, None] * gradients
            weighted = weighted.reshape(-1, weighted.shape[2])
            self.map = _root(weighted.T @ weighted)
        inputs = _mapped(ranks, self.map)
        self.kernel, self.ridge, _ = _fit_kernel(inputs, few, _SHARPNESS)
        if few is not samples:
            inputs = _mapped(samples.table.ranks, self.map)
            features = self.kernel.features(inputs, samples.n_threads)
            self.ridge, _ = fit_ridge(features, samples.targets, samples.share, common_scale=True)

    def predict(self, table: Table) -> _Array:
        features = self.kernel.features(_mapped(table.ranks, self.map), table.n_threads)
        return self.ridge.predict(features, table.n_threads)


def _fit_kernel(
    inputs: NDArray[np.float32], samples: Samples, sharpness: tuple[float, ...]
) -> tuple[Kernel, Ridge, _Array]:
    """Kernel and regression with the least leave-one-out error, and those predictions."""
    best: tuple[float, Kernel, Ridge, _Array] | None = None
    for one in sharpness:
        kernel = Kernel.fit(inputs, np.random.RandomState(samples.seed), one)
        features = kernel.features(inputs, samples.n_threads)
        ridge, left_out = fit_ridge(features, samples.targets, samples.share, common_scale=True)
        error = float((samples.share @ (samples.targets - left_out) ** 2).sum())
        if best is None or error < best[0]:
            best = error, kernel, ridge, left_out
    assert best is not None
    return best[1:]


def _mapped(ranks: NDArray[np.float32], linear: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ascontiguousarray(np.einsum("ij,jk->ik", ranks, linear), dtype=np.float32)


def _gradients(kernel: Kernel, ridge: Ridge, inputs: NDArray[np.float32]) -> _Array:
    """Gradients (n, q, d) of the regression at the inputs."""
    landmarks = kernel.landmarks.astype(np.float64)
    coef = kernel.whitening.astype(np.float64) @ ridge.coef  # (m, q)
    similar = kernel.similarities(inputs).astype(np.float64)
    gradients = [
        similar @ (one[:, None] * landmarks) - (similar @ one)[:, None] * inputs for one in coef.T
    ]
    return 2.0 * kernel.gamma * np.stack(gradients, axis=1)


def _root(products: _Array) -> NDArray[np.float32]:
    """``V diag(lambda)^(1/2)`` of a positive semidefinite matrix, of mean eigenvalue 1."""
    values, vectors = np.linalg.eigh(products)
    values = np.maximum(values, 0.0)
    if not values.sum() > 0:
        return np.eye(len(products), dtype=np.float32)
    return np.asarray(vectors * np.sqrt(values / values.mean()), dtype=np.float32)


class GemView(View):
    """Ridge regression on GEM features between bins of the target, beside other features."""

    def __init__(self, inputs: str, beside: str) -> None:
        self.inputs, self.beside = inputs, beside

    def fit(self, samples: Samples) -> None:
        self._find_directions(samples)
        features = self._features(samples.table)
        self.ridge, _ = fit_ridge(features, samples.targets, samples.share)

    def predict(self, table: Table) -> _Array:
        return self.ridge.predict(self._features(table), table.n_threads)

    def _find_directions(self, samples: Samples) -> None:
        """Solve for directions between the bins of each contraction of the outputs."""
        X = getattr(samples.table, self.inputs).astype(np.float64)
        outputs = samples.targets[:, (samples.targets != samples.targets[:1]).any(axis=0)]
        self.layers: list[Layer] = []
        if not outputs.shape[1] or not np.ptp(X, axis=0).any():
            return
        vectors = None
        if outputs.shape[1] > 1:
            vectors = supervised_contractions(
                X, outputs, _CONTRACTIONS, sample_weight=samples.weight
            )
        groupings = target_groups(
            outputs, _BINS, sample_weight=samples.weight, contractions=vectors
        )
        self.layers = [
            as_layer(self._gem(samples).fit(X, groups, samples.weight)) for groups in groupings
        ]

    def _gem(self, samples: Samples) -> GEM:
        return GEM(
            ridge="auto",
            n_directions=_DIRECTIONS,
            pairs="all",
            scale="none",
            expansion="shifted",
            powers=_POWERS,
            random_state=samples.seed,
            n_threads=samples.n_threads,
        )

    def _features(self, table: Table) -> Floats:
        beside: Floats = getattr(table, self.beside)
        X = getattr(table, self.inputs).astype(np.float64)
        return np.hstack([beside, *(one.transform(X, table.n_threads) for one in self.layers)])


class ForestView(View):
    """Random forest, whose trees predict the samples that they were grown without."""

    def cross_fit(self, samples: Samples, folds: list[tuple[Codes, Codes]]) -> _Array:
        n, q = samples.targets.shape
        tried = min(samples.table.for_trees.shape[1], _MAX_TRIED)
        most = _TREES if n <= _MANY else _TREES_OF_MANY
        forest = RandomForestRegressor(
            n_estimators=max(min(most, _MAX_TRIES // tried), _MIN_TREES),
            max_features=tried,
            max_samples=None if n <= _MAX_GROWN else _MAX_GROWN,
            oob_score=True,
            random_state=samples.seed,
            n_jobs=resolve(samples.n_threads) or -1,
        )
        targets = samples.targets if q > 1 else samples.targets[:, 0]
        forest.fit(samples.table.for_trees, targets, unequal(samples.weight))
        self.trees = Trees.of_forest(forest, samples.table.for_trees)
        left_out: _Array = forest.oob_prediction_.reshape(n, q)
        return left_out

    def predict(self, table: Table) -> _Array:
        return self.trees.predict(table.for_trees)


class BoostingView(View):
    """Gradient boosting of small trees, one series of trees for each output."""

    def __init__(self, features: str) -> None:
        self.features = features

    def fit(self, samples: Samples) -> None:
        X, q = getattr(samples.table, self.features), samples.targets.shape[1]
        self.start, predictors = np.zeros(q), []
        n_first = samples.table.for_trees.shape[1]
        for output in range(q):
            boosting = HistGradientBoostingRegressor(
                max_iter=max(min(_BOOSTED_TREES, _MAX_SEARCHED // n_first), _MIN_BOOSTED_TREES),
                learning_rate=0.15,
                max_leaf_nodes=8,
                min_samples_leaf=3,
                max_bins=64,
                max_features=0.3,
                early_stopping=False,
                random_state=samples.seed,
            )
            target, weight = samples.targets[:, output], unequal(samples.weight)
            steps = grow(boosting, X, target, weight, n_first, samples.n_threads)
            self.start[output] = boosting._baseline_prediction[0, 0]
            predictors += [(output, tree) for (tree,) in steps]
        self.trees = Trees.of_boosting(predictors, q, X)

    def predict(self, table: Table) -> _Array:
        return self.start + self.trees.predict(getattr(table, self.features))


class EstimatorView(View):
    """A regressor of scikit-learn's kind."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, samples: Samples) -> None:
        """As `View.fit`, with standardised targets."""
        single = samples.targets.shape[1] == 1
        fitted = clone(self.estimator)
        options = {}
        if unequal(samples.weight) is not None and has_fit_parameter(fitted, "sample_weight"):
            options["sample_weight"] = samples.weight
        if not single and not get_tags(fitted).target_tags.multi_output:
            fitted = MultiOutputRegressor(fitted)
        targets = samples.targets[:, 0] if single else samples.targets
        self.fitted = fitted.fit(samples.table.X, targets, **options)

    def predict(self, table: Table) -> _Array:
        """As `View.predict`."""
        outputs = np.asarray(self.fitted.predict(table.X), np.float64).reshape(len(table), -1)
        if not np.isfinite(outputs).all():
            raise ValueError(f"{type(self.estimator).__name__}: expected finite predictions")
        return outputs


VIEWS = (
    *("columns", "splines", "gem", "gem_ranks", "kernel", "kernel_ranks", "kernel_learned"),
    *("forest", "boosting", "boosting_pairs"),
)


def candidate_views(names: list[str], samples: Samples) -> tuple[dict[str, View], dict[str, str]]:
    """Views by name that serve these samples, and the reasons why others do not."""
    made = {
        "columns": RidgeView("columns"),
        "splines": RidgeView("splines"),
        "gem": GemView("columns", "columns"),
        "gem_ranks": GemView("ranks", "splines"),
        "kernel": KernelView("columns"),
        "kernel_ranks": KernelView("ranks"),
        "kernel_learned": LearnedKernelView(),
        "forest": ForestView(),
        "boosting": BoostingView("for_trees"),
        "boosting_pairs": BoostingView("with_pairs"),
    }
    statistics, n_outputs = samples.table.statistics, samples.targets.shape[1]
    reasons = {name: _reason_against(name, statistics, len(samples), n_outputs) for name in names}
    views = {name: made[name] for name in names if not reasons[name]}
    return views, {name: why for name, why in reasons.items() if why}


def _reason_against(name: str, statistics: TableStatistics, n: int, n_outputs: int) -> str:
    """Why a view is left out; empty for others."""
    varying = int((statistics.scale > 0).sum())
    if name == "columns":
        return ""
    if not varying:
        return "no column with spread"
    if name in ("splines", "gem_ranks") and not len(statistics.numeric):
        return "no numeric column"
    if name in ("splines", "gem_ranks") and statistics.has_more_splines_than(_MAX_SPLINES):
        return f"more than {_MAX_SPLINES} features"
    if name.startswith("gem") and varying > _MAX_GEM_COLUMNS:
        return f"more than {_MAX_GEM_COLUMNS} columns"
    boosts = name.startswith("boosting")
    if (boosts or name == "kernel_learned") and n < _MIN_SAMPLES:
        return f"fewer than {_MIN_SAMPLES} samples"
    if name == "kernel_learned" and varying > _MAX_MAP_COLUMNS:
        return f"more than {_MAX_MAP_COLUMNS} columns"
    if boosts and n_outputs > _MAX_BOOSTED_OUTPUTS:
        return f"more than {_MAX_BOOSTED_OUTPUTS} outputs"
    return statistics.why_no_pairs if name == "boosting_pairs" else ""

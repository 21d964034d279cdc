"""Views of `TableClassifier`: classifiers on several representations of a table's columns.

Logits are fitted again without each fold, together with the directions and pairs of columns that
depend on labels. Moments of the samples outside a fold are sums of the moments of the other folds.
The forest predicts each training sample by the trees that were grown without this sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning

from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.threads import resolve
from eigenfeat.expansion.features import Layer, as_layer, layer_features
from eigenfeat.gem.gem import GEM
from eigenfeat.linear.logistic import PENALTIES, MultinomialLogit, choose_penalty
from eigenfeat.linear.logit_problem import (
    LOG_FLOOR,
    LogitProblem,
    Penalty,
    loss_at_best,
)
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.problems import SingularDenominatorError
from eigenfeat.samples.labelled import Block, MemorySamples
from eigenfeat.tables.representations import (
    MOST_BINS,
    Interactions,
    Kernel,
    Table,
    bin_tables,
    interactions_fit_in,
)
from eigenfeat.tables.views import (
    STEP,
    BoostingView,
    EstimatorView,
    Folds,
    ForestView,
    Samples,
    View,
)

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes

__all__ = ["MANY_SAMPLES", "VIEWS", "reason_against"]

_Array = NDArray[np.float64]
_Part = tuple[MemorySamples, MemorySamples]

# bench/tables.py shows the effect of the following numbers.
MANY_SAMPLES, _MORE_SAMPLES = 5_000, 30_000  # with more samples, some views are smaller
_FEW_SAMPLES = 1_000  # with fewer samples, some views are smaller, too
_MIN_BOOSTED = {"boosting": 300, "boosting_pairs": _FEW_SAMPLES}  # samples
_MAX_COLUMNS = 200  # for many samples; "gem" and "forest" take more
_MAX_RANK_PAIRS = 20  # ordered pairs of classes of many samples, for GEM features of ranks
# Indicators of pairs of columns, and the largest number of samples that has them.
_MAX_CELLS = ((MANY_SAMPLES, 1_500), (_MORE_SAMPLES, 600), (np.inf, 300))
_COUNTED_AT_ONCE = 65_536  # samples whose bins are in memory while pairs are counted
_GEM_PENALTIES = (0.1, 0.03, 0.01)  # for many samples
# The usual penalty is this number over the root of n: the default of scikit-learn's
# LogisticRegression with two classes, if the mean square of the features is 1.
_USUAL_PENALTY = 4.0
_MULTIPLES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # of the usual penalty, to try for columns
_PENALTY_SPREAD = 0.5  # mean absolute deviation of the logarithm of a penalty from its usual one
_MAX_FORESTED = 50_000  # samples; with more, trees times columns are bounded
_MAX_TRIES, _MIN_TREES = 450, 15  # trees times columns, and trees
_MAX_TRIED, _MAX_TRIED_OF_FEW = 12, 100  # columns that a node tries
# Options of trees, and the largest number of samples that has them.
_FOREST: tuple[tuple[float, dict[str, Any]], ...] = (
    (_FEW_SAMPLES - 1, {"n_estimators": 100, "max_features": 0.5}),
    (MANY_SAMPLES, {"n_estimators": 200}),
    (20_000, {"n_estimators": 100, "max_features": 0.5}),
    (_MAX_FORESTED, {"n_estimators": 50, "max_features": 0.5, "max_samples": 20_000}),
    (np.inf, {"n_estimators": 50, "max_features": 0.4, "max_samples": 40_000}),
)
_BOOSTING: tuple[tuple[float, dict[str, Any]], ...] = (
    (
        MANY_SAMPLES,
        {"max_iter": 50, "learning_rate": 0.2, "max_leaf_nodes": 8, "min_samples_leaf": 5},
    ),
    (10_000, {"max_iter": 150, "max_leaf_nodes": 16, "min_samples_leaf": 5}),
    (20_000, {"max_iter": 200, "min_samples_leaf": 10}),
    (np.inf, {"max_iter": 75, "learning_rate": 0.15, "max_leaf_nodes": 63, "min_samples_leaf": 10}),
)
# Options of all boosting; without a penalty, boosting of many classes diverges.
_BOOSTED = {"max_features": 0.5, "l2_regularization": 1.0}
# Largest product of samples and features of a logit, and samples that it takes with any features.
_MAX_ENTRIES, _MAX_FITTED = 12_000_000, 30_000
_TOLERANCE = 1e-3  # of the final logits
# Steps of boosting double up to this number times samples / columns trees, all classes together;
# the bounds are those of this limit.
_MAX_SEARCHED, _TREE_BOUNDS = 4, (200, 2_000)
_MAX_DOUBLED = 20_000  # samples; with more, the number of steps does not double
_MIN_TEMPERED = 60  # held-out samples from which each penalty has a temperature of its own
_MAX_BOOSTED_CLASSES = 5
# Largest product of columns (and sums and differences of their pairs) and classes, and the largest
# number of samples that has it.
_MAX_BOOSTED = {
    "boosting": ((_FEW_SAMPLES - 1, 300), (np.inf, 3_000)),
    "boosting_pairs": ((np.inf, 1_000),),
}


class LogitView(View):
    """Multinomial logit on features of the columns.

    Attributes
    ----------
    logit : MultinomialLogit
        The fitted classifier.
    learned : Layer, Kernel, Interactions or None
        Directions, landmarks or pairs of columns of the features.
    """

    common = False  # whether all features have one unit
    ridge = 0.5  # of the logit
    has_prior = False  # whether penalties always have a prior, and no temperatures
    learned: Any = None

    def learn(self, samples: Samples) -> None:
        """Set `learned`, from all samples."""

    def learned_outside(self, samples: Samples, folds: Folds) -> list[Any]:
        """Values of `learned` for the samples to train on in each fold."""
        raise NotImplementedError

    def penalties(self, samples: Samples) -> Sequence[float]:
        """Penalties to try, from large to small."""
        return PENALTIES

    def usual_penalty(self, samples: Samples) -> float:
        """The mode of the prior of the penalty."""
        return _USUAL_PENALTY / float(np.sqrt(len(samples)))

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        penalties = self.penalties(samples)
        has_prior = self.has_prior or len(folds.held) < _MIN_TEMPERED
        choice = choose_penalty(
            (
                (LogitProblem(train, constant=True, common=self.common), held)
                for train, held in self.fold_features(samples, folds)
            ),
            [Penalty(one / self._energy, self.ridge, 0.0) for one in penalties],
            fixed=1.0 if has_prior else None,
            log_prior=_log_prior(penalties, self.usual_penalty(samples)) if has_prior else None,
        )
        self.penalty = penalties[choice.number]
        return np.concatenate([part[0] for part in choice.logits]).astype(np.float64)

    def fit(self, samples: Samples) -> None:
        self.learn(samples)
        samples = self._fitted_samples(samples)
        self.logit = MultinomialLogit(
            penalty=self.penalty / self._energy,
            ridge=self.ridge,
            ridge_scale="common" if self.common else "columns",
            tol=_TOLERANCE,
            random_state=samples.seed,
            n_threads=samples.n_threads,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.logit.fit(samples.rows.with_features(self.features(samples.table)))
        self.n_features = int(self.logit.coef_.shape[1])

    def _fitted_samples(self, samples: Samples) -> Samples:
        """Samples to fit the logit: all, or a random subsample if there are more than 30,000."""
        if len(samples) <= _MAX_FITTED:
            return samples
        width = self.features(samples.table.subset(slice(1))).shape[1]
        most = max(_MAX_FITTED, _MAX_ENTRIES // max(width, 1))
        if (weight := samples.weight) is not None:  # few of the samples may have most of the weight
            most = int(most * len(weight) * (weight @ weight) / weight.sum() ** 2)
        if len(samples) <= most:
            return samples
        return samples.subset(draw_subsample(len(samples), most, samples.rows.codes))

    def outputs(self, table: Table) -> _Array:
        scores = np.asarray(self.products(table), dtype=np.float64) + self.logit.intercept_
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        return scores

    def products(self, table: Table) -> Any:
        """Features of samples times the weights of the logit."""
        return Block(self.features(table)).scores(self.logit.coef_.T, False, table.n_threads)

    def fold_features(self, samples: Samples, folds: Folds) -> Iterator[_Part]:
        """Features of the samples to train on and of the held-out ones, for each fold."""
        for (train, held), learned in zip(
            folds.parts, self.learned_outside(samples, folds), strict=True
        ):
            self.learned = learned
            yield self.part(samples, train), self.part(samples, held)

    def part(self, samples: Samples, indices: Codes) -> MemorySamples:
        """Features of the samples `indices`."""
        part = samples.subset(indices)
        return part.rows.with_features(self.features(part.table))

    @property
    def _energy(self) -> float:
        """Divisor of the penalties where the ridge exceeds the energy of the logits."""
        return max(2.0 * self.ridge, 1.0)


class FixedView(LogitView):
    """Logit on features that need no labels."""

    def fold_features(self, samples: Samples, folds: Folds) -> Iterator[_Part]:
        self.learn(samples)
        used = np.union1d(*folds.parts[0])  # all samples, or those of the only fold
        union = samples.subset(used)
        rows = union.rows.with_features(self.features(union.table))
        for part in folds.parts:
            train, held = (rows.subset(np.searchsorted(used, indices)) for indices in part)
            yield train, held


class ColumnsView(FixedView):
    """Logit on columns or splines."""

    # Features are correlated, so that squared weights are a better penalty than energies of logits.
    ridge = 100.0
    has_prior = True

    def __init__(self, inputs: str) -> None:
        super().__init__(inputs)
        self.common = inputs != "splines"

    def penalties(self, samples: Samples) -> Sequence[float]:
        usual = self.usual_penalty(samples)
        return [multiple * usual for multiple in _MULTIPLES]

    def usual_penalty(self, samples: Samples) -> float:
        usual = super().usual_penalty(samples)
        if self.inputs != "columns":
            return usual
        # Penalties are relative to the mean square of all columns, which indicators make small.
        return usual / float(np.mean(np.square(samples.table.columns)))


class KernelView(FixedView):
    """Logit on a Gaussian kernel of the ranks."""

    common = True

    def features(self, table: Table) -> Any:
        return self.learned.features(super().features(table), table.n_threads)

    def learn(self, samples: Samples) -> None:
        ranks = super().features(samples.table)
        self.learned = Kernel.fit(ranks, np.random.RandomState(samples.seed))

    def products(self, table: Table) -> Any:
        ranks = super().features(table)
        return self.learned.scores(ranks, self.logit.coef_.T, table.n_threads)


class GemView(LogitView):
    """Logit on GEM features (Karampatziakis and Mineiro 2014) of the columns or their ranks."""

    common = True

    def __init__(self, inputs: str, scale: str) -> None:
        super().__init__(inputs)
        self.scale = scale

    def features(self, table: Table) -> Any:
        inputs = table.ranks if self.inputs == "ranks" else table.without_gaps
        return layer_features(inputs, [self.learned], table.n_threads)

    def learn(self, samples: Samples) -> None:
        self.learned = as_layer(self._gem(samples).fit_samples(self._rows(samples)))

    def learned_outside(self, samples: Samples, folds: Folds) -> list[Any]:
        rows = self._rows(samples)
        if self.scale == "auto":  # one choice for all folds
            self.scale = self._gem(samples).fit_samples(rows).scale_
        moments = folds.outside(lambda some: rows.subset(some).moments(), ClassMoments.merge)
        return [self._layer(samples, one) for one in moments]

    def penalties(self, samples: Samples) -> Sequence[float]:
        return _GEM_PENALTIES if samples.size > MANY_SAMPLES else PENALTIES

    def part(self, samples: Samples, indices: Codes) -> MemorySamples:
        rows = self._rows(samples).subset(indices)
        features: Any = np.zeros((len(indices), 1))
        if self.learned is not None:
            features = layer_features(rows.block.X, [self.learned], rows.n_threads)
        return rows.with_features(features)

    def _layer(self, samples: Samples, moments: ClassMoments) -> Layer | None:
        """Directions of moments; None if no column varies."""
        try:
            return as_layer(self._gem(samples).fit_moments(moments))
        except SingularDenominatorError:
            return None

    def _rows(self, samples: Samples) -> MemorySamples:
        """Samples for the moments; missing entries contribute their conditional covariances."""
        rows = samples.rows
        return rows.with_features(samples.table.ranks) if self.inputs == "ranks" else rows

    def _gem(self, samples: Samples) -> GEM:
        return GEM(
            constant=True, scale=self.scale, random_state=samples.seed, n_threads=samples.n_threads
        )


class InteractionsView(LogitView):
    """Logit on indicators of cells of pairs of columns, which are chosen by labels."""

    common = True

    def features(self, table: Table) -> Any:
        return self.learned.features(table.bins, table.fine, table.statistics.n_fine)

    def learn(self, samples: Samples) -> None:
        self.learned = self._chosen(samples, self._tables(samples, np.arange(len(samples))))

    def learned_outside(self, samples: Samples, folds: Folds) -> list[Any]:
        tables = folds.outside(lambda some: self._tables(samples, some), np.add)
        return [self._chosen(samples, table) for table in tables]

    @staticmethod
    def _chosen(samples: Samples, tables: _Array) -> Interactions:
        counts = samples.table.statistics.bin_counts
        return Interactions.fit(counts, tables, samples.sized(_MAX_CELLS))

    @staticmethod
    def _tables(samples: Samples, indices: Codes) -> _Array:
        counts, k = samples.table.statistics.bin_counts, len(samples.rows.classes)
        tables = np.zeros((k, sum(counts), sum(counts)))
        for start in range(0, len(indices), _COUNTED_AT_ONCE):
            some = indices[start : start + _COUNTED_AT_ONCE]
            bins, weight = samples.table.subset(some).bins, samples.weight_of(some)
            targets, n_threads = samples.targets[some], samples.n_threads
            tables += bin_tables(bins, counts, targets, k, weight, n_threads)
        return tables


# ---- other classifiers ---------------------------------------------------------------------------


class ForestClassifierView(ForestView):
    """Random forest (Breiman 2001), with out-of-bag probabilities instead of folds.

    Above 5,000 samples, trees are extremely randomised (Geurts, Ernst and Wehenkel 2006), because
    their splits need no sorting. With T trees and k classes, the mean probabilities p of the leaves
    become ``(p T + 1 / k) / (T + 1)``, so that no logarithm is infinite.
    """

    def unfitted(self, samples: Samples) -> Any:
        n, options = len(samples), samples.sized(_FOREST).copy()
        n_inputs = self.n_inputs(samples)
        if samples.size < _FEW_SAMPLES and n_inputs > 2 * _MAX_TRIED_OF_FEW:
            options["max_features"] = _MAX_TRIED_OF_FEW
        if n > _MAX_FORESTED:
            most = max(_MAX_TRIES // n_inputs, _MIN_TREES)
            options["n_estimators"] = min(options["n_estimators"], most)
            if options["max_features"] * n_inputs > _MAX_TRIED:
                options["max_features"] = _MAX_TRIED
        return (ExtraTreesClassifier if n > MANY_SAMPLES else RandomForestClassifier)(
            **options,
            bootstrap=True,
            random_state=samples.seed,
            n_jobs=resolve(samples.n_threads) or -1,
        )

    def of_means(self, means: _Array) -> _Array:
        count = len(self.trees.roots)
        return np.log((means * count + 1.0 / means.shape[1]) / (count + 1.0))


class BoostingClassifierView(BoostingView):
    """Boosting with a series of trees for each class."""

    max_refitted = _MORE_SAMPLES
    n_classes: int

    def step_limits(self, samples: Samples) -> tuple[int, int]:
        k, (least, largest) = len(samples.rows.classes), _TREE_BOUNDS
        first = min(samples.sized(_BOOSTING)["max_iter"], max(largest // k // STEP, 1) * STEP)
        trees = _MAX_SEARCHED * samples.size // samples.table.statistics.n_columns
        most = min(max(trees, least), largest) // k
        return first, most if samples.size <= _MAX_DOUBLED else first

    def loss(self, outputs: _Array, samples: Samples, held: Codes) -> float:
        return loss_at_best(outputs, samples.targets[held], samples.weight_of(held))[0]

    def unfitted(self, samples: Samples) -> list[tuple[Any, NDArray[Any]]]:
        self.n_classes = len(samples.rows.classes)
        boosting = HistGradientBoostingClassifier(
            **_BOOSTED,
            early_stopping=False,
            random_state=samples.seed,
            **samples.sized(_BOOSTING) | {"max_iter": self.steps},
        )
        return [(boosting, samples.targets)]

    def joined(
        self, fitted: list[Any], steps: list[list[Any]]
    ) -> tuple[_Array, list[tuple[int, Any]]]:
        (boosting,) = fitted
        start = np.full(self.n_classes, LOG_FLOOR)  # a class without samples has no trees
        start[boosting.classes_] = 0.0
        outputs = [1] if self.n_classes == 2 else boosting.classes_
        start[outputs] = boosting._baseline_prediction[0]
        return start, [pair for step in steps[0] for pair in zip(outputs, step, strict=True)]


class ClassifierView(EstimatorView):
    """A classifier with scikit-learn's interface."""

    def fit(self, samples: Samples) -> None:
        self.n_classes = len(samples.rows.classes)
        super().fit(samples)

    def outputs(self, table: Table) -> _Array:
        # A class without samples to train on has no column.
        share = np.full((len(table), self.n_classes), 1e-6)
        found = np.asarray(self.fitted.predict_proba(table.X), np.float64)
        if not (np.isfinite(found) & (found >= 0)).all():
            raise ValueError(f"{type(self.estimator).__name__}: expected probabilities of 0 to 1")
        share[:, self.fitted.classes_] += found
        return np.log(share)


# ---- choice --------------------------------------------------------------------------------------


VIEWS: dict[str, Callable[[], View]] = {
    "columns": partial(ColumnsView, "columns"),
    "splines": partial(ColumnsView, "splines"),
    "gem": partial(GemView, "columns", "auto"),
    "gem_ranks": partial(GemView, "ranks", "none"),
    "kernel": partial(KernelView, "ranks"),
    "interactions": partial(InteractionsView, "bins"),
    "forest": partial(ForestClassifierView, "for_trees"),
    "boosting": partial(BoostingClassifierView, "for_trees"),
    "boosting_pairs": partial(BoostingClassifierView, "with_pairs"),
}


def reason_against(name: str, names: Sequence[str], samples: Samples) -> str:
    """Why the view `name`, one of `names`, is not used for these samples; empty if it is used."""
    statistics, k = samples.table.statistics, len(samples.rows.classes)
    varying = int((statistics.scale > 0).sum())
    if varying == 0:
        return "no column with spread"
    if name == "gem":
        return ""
    if name.startswith("boosting"):
        return _reason_against_boosting(name, names, samples)
    if name == "forest":
        return ""
    if samples.size > MANY_SAMPLES and varying > _MAX_COLUMNS:
        return f"more than {_MAX_COLUMNS} columns and {MANY_SAMPLES:,} samples"
    if name == "splines" and statistics.why_no_splines:
        return statistics.why_no_splines
    if name == "gem_ranks" and samples.size > MANY_SAMPLES and k * (k - 1) > _MAX_RANK_PAIRS:
        return f"more than {_MAX_RANK_PAIRS} pairs of classes beyond {MANY_SAMPLES:,} samples"
    indicators = bool(statistics.indicator[statistics.scale > 0].all())
    if name == "gem_ranks" and "gem" in names and indicators:
        return "ranks of indicators are the columns themselves"
    if name != "interactions":
        return ""
    fits = varying <= MOST_BINS and interactions_fit_in(statistics.bin_counts, k)
    return "" if fits else "too many columns, or only one"


def _reason_against_boosting(name: str, names: Sequence[str], samples: Samples) -> str:
    """Why a view of boosting is not used for these samples; empty if it is used."""
    statistics, k = samples.table.statistics, len(samples.rows.classes)
    if len(samples) < _MIN_BOOSTED[name]:
        return f"fewer than {_MIN_BOOSTED[name]:,} samples"
    if samples.size <= MANY_SAMPLES and k > _MAX_BOOSTED_CLASSES:
        return f"more than {_MAX_BOOSTED_CLASSES} classes, which need {MANY_SAMPLES:,} samples"
    n_columns = statistics.n_columns
    if name == "boosting_pairs":
        if statistics.why_no_pairs:
            return statistics.why_no_pairs
        n_columns += 2 * statistics.numeric_pairs.shape[1]
    if k * n_columns > (most := samples.sized(_MAX_BOOSTED[name])):
        return f"columns times classes are more than {most:,}"
    if name == "boosting" and samples.size > MANY_SAMPLES and "boosting_pairs" in names:
        has_pairs = not reason_against("boosting_pairs", names, samples)
        return "boosting_pairs reads the same columns" if has_pairs else ""
    return ""


def _log_prior(penalties: Sequence[float], usual: float) -> list[float]:
    """Logarithms of prior probabilities of penalties.

    The logarithm of a penalty has a Laplace distribution around that of `usual`. Its peak keeps the
    noise of few held-out samples from deciding, and its long tails let clear data decide.
    """
    return [-abs(float(np.log(one / usual))) / _PENALTY_SPREAD for one in penalties]

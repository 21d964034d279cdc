"""Estimators of eigenfeat and scikit-learn by name; hyperparameters chosen on held-out samples."""

import time
from functools import partial
from importlib import import_module
from inspect import signature

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import ParameterGrid, PredefinedSplit, StratifiedShuffleSplit
from sklearn.utils.validation import check_is_fitted, validate_data

from bench.papers.protocol import Scores
from eigenfeat.expansion.features import expand

HELD_OUT = 1 / 6  # share of the training samples to choose hyperparameters on
RANDOM_DIRECTIONS = 900  # if GEM's number of directions is not known
FLOATS = [np.float64, np.float32]

# ---- estimators ----------------------------------------------------------------------------------


class RandomDirections(TransformerMixin, BaseEstimator):
    """Expand projections on Gaussian directions as GEM does; "Random" in the paper's Table 2."""

    def __init__(self, n_directions=RANDOM_DIRECTIONS, random_state=0):
        self.n_directions = n_directions
        self.random_state = random_state

    def fit(self, X, y=None):
        """Draw directions; projections have mean 0 and unit variance."""
        X = validate_data(self, X, dtype=FLOATS, order="C")
        shape = (X.shape[1], self.n_directions)
        directions = np.random.RandomState(self.random_state).standard_normal(shape)
        directions = directions.astype(X.dtype)
        self.directions_ = directions / (X @ directions).std(axis=0)
        self.offset_ = -X.mean(axis=0) @ self.directions_
        return self

    def transform(self, X):
        """Return ``max(0, s p)^(a/2)`` for both signs and powers 1, 2 and 3."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, order="C", reset=False)
        return expand(X, self.directions_, self.offset_)


def made(context, *, where, **parameters):
    """Make an estimator, or a pipeline of several, by their modules and names.

    Only modules of these estimators are imported, because the memory of a method's process is
    measured. Estimators with a random state get the context's seed.
    """
    from sklearn.pipeline import make_pipeline

    parts = []
    for module, _, name in (path.rpartition(".") for path in where):
        kind = getattr(import_module(module), name)
        seeded = "random_state" in signature(kind).parameters
        parts.append(kind(random_state=context.seed) if seeded else kind())
    model = parts[0] if len(parts) == 1 else make_pipeline(*parts)
    return model.set_params(**parameters)


GEM, LOGIT = "eigenfeat.gem.classifier.GEMClassifier", "eigenfeat.linear.logistic.MultinomialLogit"
SAMPLER = "sklearn.kernel_approximation.RBFSampler"
SCALER, SVC = "sklearn.preprocessing.StandardScaler", "sklearn.svm.SVC"

gem = partial(made, where=(GEM,))  # with a multinomial logit; `depth` makes it deep
fourier = partial(made, where=(SAMPLER, LOGIT))
joint_gem = partial(made, where=("eigenfeat.gem.joint.JointGEMClassifier",))
joint_gem_on_fourier = partial(made, where=(SAMPLER, "eigenfeat.gem.joint.JointGEMClassifier"))
gem_on_fourier = partial(made, where=(SAMPLER, GEM))  # nearly eigenfunctions of the kernel's space
svc = partial(made, where=(SVC,))
perceptron = partial(made, where=("sklearn.neural_network.MLPClassifier",))
boosting = partial(made, where=("sklearn.ensemble.HistGradientBoostingClassifier",))
extra_trees = partial(made, where=("sklearn.ensemble.ExtraTreesClassifier",), n_jobs=-1)
lightgbm = partial(made, where=("lightgbm.LGBMClassifier",), verbosity=-1)
standardised_svc = partial(made, where=(SCALER, SVC))
standardised_logistic = partial(
    made,
    where=(SCALER, "sklearn.linear_model.LogisticRegression"),
    logisticregression__max_iter=2_000,  # enough to converge
)


def random_directions(context):
    """Make as many random directions as GEM has eigenvectors, with GEM's logit."""
    count = context.directions or RANDOM_DIRECTIONS
    where = (f"{__name__}.RandomDirections", LOGIT)
    return made(context, where=where, randomdirections__n_directions=count)


# ---- choices -------------------------------------------------------------------------------------


def train(method, data, objective, context, outcome):
    """Choose a method's hyperparameters without the test samples, and return the trained method.

    The choice minimises the `objective`, "error" or "cross_entropy", and takes the first of equal
    candidates. The outcome gets the choice, the number of candidates, and seconds.
    """
    estimator = method.build(context).set_params(**method.set_for(context))
    grid = method.chosen_from(context)
    candidates = list(ParameterGrid(grid))
    best = candidates[0]
    started = time.perf_counter()
    if len(candidates) > 1 and _is_searchable(estimator, data, objective):
        from eigenfeat.gem.search import GEMClassifierCV  # shares moments and features

        cv = _splitter(data, context.seed)
        search = GEMClassifierCV(estimator=estimator, grid=grid, cv=cv, refit=False, verbose=0)
        best = search.fit(data.train.X, data.train.y).best_params_
    elif len(candidates) > 1:
        best = _by_trial(estimator, candidates, data, objective, context.seed)
    chosen = time.perf_counter()
    model = clone(estimator).set_params(**best)
    if method.ensemble:  # a member for each hypercube, or draw of frequencies
        given = {"n_members": method.ensemble[context.quick], "random_state": context.seed}
        if method.drawn_pairs:
            from bench.papers.baselines.pairs import DrawnPairsEnsemble

            model = DrawnPairsEnsemble(model, method.drawn_pairs, **given)
        else:
            from eigenfeat.gem.ensemble import GEMEnsemble

            model = GEMEnsemble(estimator=model, **given)
    model.fit(data.train.X, data.train.y)
    outcome.parameters, outcome.n_candidates = dict(best), len(candidates)
    outcome.choose_seconds = chosen - started
    outcome.train_seconds = time.perf_counter() - chosen
    return model


def score(model, rows):
    """Return a model's error rate and, if it gives probabilities, its cross-entropy."""
    if not hasattr(model, "predict_proba"):
        return Scores(float(np.mean(model.predict(rows.X) != rows.y)))
    probabilities = np.asarray(model.predict_proba(rows.X), dtype=np.float64)
    classes = np.asarray(model.classes_)
    error = float(np.mean(classes[probabilities.argmax(axis=1)] != rows.y))
    given = np.where(classes == rows.y[:, None], probabilities, 0.0).sum(axis=1)
    tiny = np.finfo(np.float64).tiny
    return Scores(error, float(-np.log(np.maximum(given, tiny)).mean()))


def _is_searchable(estimator, data, objective):
    """Whether `GEMClassifierCV` can choose the parameters."""
    is_gem = type(estimator).__name__ == "GEMClassifier"
    return is_gem and data.development is None and objective == "error"


def _by_trial(estimator, candidates, data, objective, seed):
    """Train each candidate on a part of the samples, and return the best on the held-out part."""
    fit, held_out = data.train, data.development
    if held_out is None:
        splits = _splitter(data, seed).split(fit.y[:, None], fit.y)
        fit, held_out = (data.train[part] for part in next(splits))
    models = (clone(estimator).set_params(**one).fit(fit.X, fit.y) for one in candidates)
    values = [getattr(score(model, held_out), objective) for model in models]
    return candidates[int(np.argmin(values))]


def _splitter(data, seed):
    if not data.by_source:
        return StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
    n = len(data.train)
    return PredefinedSplit(np.where(np.arange(n) < n - round(HELD_OUT * n), -1, 0))

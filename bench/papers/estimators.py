"""Estimators by the names under which methods refer to them, ours and those of scikit-learn."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bench.papers.protocol import Context
from eigenfeat._base.extras import require
from eigenfeat.expansion.features import expand

FLOATS = [np.float64, np.float32]
RANDOM_DIRECTIONS = 900  # where no count of GEM's directions is known


class RandomDirections(TransformerMixin, BaseEstimator):
    """Expand projections on Gaussian directions as GEM does; "Random" in the paper's Table 2."""

    def __init__(self, n_directions: int = RANDOM_DIRECTIONS, random_state: int = 0) -> None:
        self.n_directions = n_directions
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomDirections:
        """Draw directions on which the rows have unit variance and mean zero."""
        X = validate_data(self, X, dtype=FLOATS, order="C")
        shape = (X.shape[1], self.n_directions)
        directions = np.random.RandomState(self.random_state).standard_normal(shape)
        directions = directions.astype(X.dtype)
        projections = X @ directions
        self.directions_ = directions / projections.std(axis=0)
        self.offset_ = -X.mean(axis=0) @ self.directions_
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return ``max(0, s p)^(a/2)`` for both signs and powers 1, 2 and 3."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, order="C", reset=False)
        return expand(X, self.directions_, self.offset_)


def made(context: Context, *, where: tuple[str, ...], **parameters: Any) -> Any:
    """Make an estimator, or a pipeline of several, by their modules and names.

    Only what is made is imported: the memory of a method's process is measured. Whatever takes a
    seed gets the context's.
    """
    from sklearn.pipeline import make_pipeline

    parts = []
    for module, _, name in (one.rpartition(".") for one in where):
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
gem_on_fourier = partial(made, where=(SAMPLER, GEM))  # nearly eigenfunctions of the kernel's space
svc = partial(made, where=(SVC,))
perceptron = partial(made, where=("sklearn.neural_network.MLPClassifier",))
boosting = partial(made, where=("sklearn.ensemble.HistGradientBoostingClassifier",))
extra_trees = partial(made, where=("sklearn.ensemble.ExtraTreesClassifier",), n_jobs=-1)
_lightgbm = partial(made, where=("lightgbm.LGBMClassifier",), verbosity=-1)
standardised_svc = partial(made, where=(SCALER, SVC))
standardised_logistic = partial(
    made,
    where=(SCALER, "sklearn.linear_model.LogisticRegression"),
    logisticregression__max_iter=2_000,  # enough to converge
)


def lightgbm(context: Context, **parameters: Any) -> Any:
    """LightGBM's boosted trees, which the extra "bench" installs."""
    require("lightgbm", "the peer LightGBM")
    return _lightgbm(context, n_jobs=context.threads, **parameters)


def random_directions(context: Context) -> Any:
    """As many random directions as GEM has found eigenvectors, and the same logit."""
    count = context.directions or RANDOM_DIRECTIONS
    where = (f"{__name__}.RandomDirections", LOGIT)
    return made(context, where=where, randomdirections__n_directions=count)


def ensemble(chosen: Any, context: Context, *, n_members: int, quick: int) -> Any:
    """So many of the chosen classifier: one for each hypercube, or draw of frequencies."""
    from eigenfeat.gem.ensemble import GEMEnsemble

    n_members = quick if context.quick else n_members
    return GEMEnsemble(estimator=chosen, n_members=n_members, random_state=context.seed)

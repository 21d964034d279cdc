"""Estimators by the names under which methods refer to them, ours and those of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bench.papers import settings
from bench.papers.protocol import Context
from eigenfeat.expansion.features import expand

FLOATS = [np.float64, np.float32]


class RandomDirections(TransformerMixin, BaseEstimator):
    """Expand projections on Gaussian directions as GEM does; "Random" in the paper's Table 2.

    Parameters
    ----------
    n_directions : int, default=900
        How many.
    random_state : int, default=0
        For the directions.
    """

    def __init__(self, n_directions: int = 900, random_state: int = 0) -> None:
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


# ---- ours ----------------------------------------------------------------------------------------


def gem(context: Context) -> Any:
    """GEM and a multinomial logit; `depth` makes it deep."""
    from eigenfeat.gem.classifier import GEMClassifier

    return GEMClassifier(random_state=context.seed)


def hypercubes(chosen: Any, context: Context) -> Any:
    """As many of the chosen classifiers as there are hypercubes, one for each."""
    return _ensemble(chosen, settings.MEMBERS, context)


def fourier_draws(chosen: Any, context: Context) -> Any:
    """As many of the chosen pipelines as there are draws of frequencies, one for each."""
    return _ensemble(chosen, 2 if context.quick else settings.COVERTYPE_DRAWS, context)


def _ensemble(chosen: Any, n_members: int, context: Context) -> Any:
    from eigenfeat.gem.ensemble import GEMEnsemble

    return GEMEnsemble(estimator=chosen, n_members=n_members, random_state=context.seed)


def random_directions(context: Context) -> Any:
    """As many random directions as GEM has found eigenvectors, and the same logit."""
    from sklearn.pipeline import make_pipeline

    from eigenfeat.linear.logistic import MultinomialLogit

    count = context.directions or settings.RANDOM_DIRECTIONS
    return make_pipeline(
        RandomDirections(count, random_state=context.seed),
        MultinomialLogit(random_state=context.seed),
    )


def fourier(context: Context) -> Any:
    """Random Fourier features and the same logit."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import make_pipeline

    from eigenfeat.linear.logistic import MultinomialLogit

    sampler = RBFSampler(random_state=context.seed)
    return make_pipeline(sampler, MultinomialLogit(random_state=context.seed))


def gem_on_fourier(context: Context) -> Any:
    """GEM on random Fourier features: nearly generalized eigenfunctions of the kernel's space."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import make_pipeline

    return make_pipeline(RBFSampler(random_state=context.seed), gem(context))


# ---- peers ---------------------------------------------------------------------------------------


def svc(context: Context) -> Any:
    """Support vector machine with the Gaussian kernel."""
    from sklearn.svm import SVC

    return SVC(kernel="rbf")


def perceptron(context: Context) -> Any:
    """Multilayer perceptron."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(random_state=context.seed)


def boosting(context: Context) -> Any:
    """Boosted trees on histograms."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=context.seed)


def extra_trees(context: Context) -> Any:
    """Extremely randomised trees, on all cores."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(random_state=context.seed, n_jobs=-1)


def standardised_logistic(context: Context) -> Any:
    """Logistic regression on standardised columns, with enough iterations to converge."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))


def standardised_svc(context: Context) -> Any:
    """Support vector machine with the Gaussian kernel on standardised columns."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), svc(context))

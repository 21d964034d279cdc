"""Stand-ins for classifiers that a build may not have yet, with their parameters."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import GEM

NAMES = ("GEMClassifier", "GEMClassifierCV", "GEMEnsemble", "MultinomialLogit")


class Delegating(ClassifierMixin, BaseEstimator):
    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class MultinomialLogit(Delegating):
    def __init__(self, penalty=0.1, random_state=0):
        self.penalty = penalty
        self.random_state = random_state

    def fit(self, X, y):
        regression = LogisticRegression(C=1 / (100 * self.penalty), max_iter=50, tol=1e-1)
        self.model_ = make_pipeline(StandardScaler(), regression).fit(X, y)
        self.classes_ = self.model_.classes_
        return self


class GEMClassifier(Delegating):
    def __init__(
        self,
        ridge=0.2,
        n_directions=10,
        threshold=1.5,
        pairs="all",
        scale="auto",
        penalty=0.1,
        depth=1,
        random_state=0,
    ):
        self.ridge = ridge
        self.n_directions = n_directions
        self.threshold = threshold
        self.pairs = pairs
        self.scale = scale
        self.penalty = penalty
        self.depth = depth
        self.random_state = random_state

    def fit(self, X, y):
        names = ("ridge", "n_directions", "threshold", "pairs", "scale", "random_state")
        parameters = {name: getattr(self, name) for name in names}
        layers = [GEM(**parameters) for _ in range(self.depth)]
        self.model_ = make_pipeline(*layers, MultinomialLogit(self.penalty)).fit(X, y)
        self.classes_ = self.model_.classes_
        self.layers_ = [layer for _, layer in self.model_.steps[:-1]]
        return self


class GEMClassifierCV(Delegating):
    def __init__(self, estimator, grid, validation_fraction=0.2, random_state=0, verbose=1):
        self.estimator = estimator
        self.grid = grid
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y):
        parts = train_test_split(
            X, y, test_size=self.validation_fraction, stratify=y, random_state=self.random_state
        )
        X_fit, X_held, y_fit, y_held = parts
        candidates = list(ParameterGrid(self.grid))
        models = [clone(self.estimator).set_params(**c).fit(X_fit, y_fit) for c in candidates]
        best = int(np.argmax([model.score(X_held, y_held) for model in models]))
        self.best_params_ = candidates[best]
        self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_).fit(X, y)
        return self


class GEMEnsemble(Delegating):
    def __init__(self, estimator, n_members=5, random_state=0):
        self.estimator = estimator
        self.n_members = n_members
        self.random_state = random_state

    def fit(self, X, y):
        numbers = range(self.random_state, self.random_state + self.n_members)
        self.members_ = [
            clone(self.estimator).set_params(random_state=n).fit(X, y) for n in numbers
        ]
        self.classes_ = self.members_[0].classes_
        return self

    def predict_proba(self, X):
        logs = [np.log(np.maximum(m.predict_proba(X).astype(float), 1e-300)) for m in self.members_]
        means = np.exp(np.mean(logs, axis=0))
        return means / means.sum(axis=1, keepdims=True)

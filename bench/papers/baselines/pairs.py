"""Random pairs of classes that the GEM paper compares with the hypercube (section 4.3)."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from eigenfeat.pencils import class_pairs


def random_pairs(n_classes, n_pairs, random):
    """Draw distinct ordered pairs, which include every class."""
    order = random.permutation(n_classes)
    if n_classes % 2:
        order = np.append(order, order[0])
    cover = order.reshape(-1, 2)
    pairs = class_pairs(np.arange(n_classes), "all")
    rest = pairs[~np.isin(pairs @ [n_classes, 1], cover @ [n_classes, 1])]
    drawn = random.permutation(len(rest))[: n_pairs - len(cover)]
    return np.concatenate([cover, rest[drawn]])


def stratified_pairs(n_classes, n_pairs, random):
    """Draw rounds of k pairs of classes at a fixed distance on a random circle.

    Every class is as often a numerator as a denominator.
    """
    circle = random.permutation(n_classes)
    distances = 1 + random.permutation(n_classes - 1)[: -(-n_pairs // n_classes)]
    return np.concatenate([np.column_stack([circle, np.roll(circle, -s)]) for s in distances])


DRAWN = {"random": random_pairs, "stratified": stratified_pairs}


class DrawnPairsEnsemble(ClassifierMixin, BaseEstimator):
    """Average of classifiers, each on as many drawn pairs as a hypercube has."""

    def __init__(self, estimator, kind, n_members, random_state=0):
        self.estimator = estimator
        self.kind = kind
        self.n_members = n_members
        self.random_state = random_state

    def fit(self, X, y):
        """Fit the members."""
        self.classes_ = np.unique(y)
        random = np.random.RandomState(self.random_state)
        self.members_ = []
        for _ in range(self.n_members):
            n_pairs = len(class_pairs(self.classes_, "hypercube", random_state=random))
            drawn = DRAWN[self.kind](len(self.classes_), n_pairs, random)
            pairs = [(a, b) for a, b in self.classes_[drawn].tolist()]
            self.members_.append(clone(self.estimator).set_params(gem__pairs=pairs).fit(X, y))
        return self

    def predict_proba(self, X):
        """Average the members' probabilities."""
        return np.mean([member.predict_proba(X) for member in self.members_], axis=0)

    def predict(self, X):
        """Return the most probable labels."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

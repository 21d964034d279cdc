"""LDG keeps scikit-learn's contract: its own checks, in several configurations."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from eigenfeat.ldg import LDG

CONFIGURATIONS = [
    LDG(gamma=0.5, n_neighbors=2),
    LDG(gamma=0.5, n_neighbors=2, solver="randomized", random_state=0),
    LDG("greedy", gamma=[0.3, 0.9], n_neighbors="cv", random_state=0, standardize=False),
]


@parametrize_with_checks(CONFIGURATIONS)
def test_scikit_learn_check(estimator, check):
    check(estimator)

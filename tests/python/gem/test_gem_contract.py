"""GEM keeps scikit-learn's contract: its own checks, in several configurations."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from eigenfeat import GEM

CONFIGURATIONS = [
    GEM(),
    GEM(pairs="hypercube", expansion="shifted", include_input=True),
    GEM(constant=False, scale="columns", expansion="none", threshold=1.0),
    GEM(denominator="covariance", pairs="stratified", powers=(2,), solver="full"),
]


@parametrize_with_checks(CONFIGURATIONS)
def test_scikit_learn_check(estimator, check):
    check(estimator)

"""What holds of early decisions for any series: order of rows, and what has been seen alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.incomplete import GaussianCompletion, ReliableClassifier

few = settings(max_examples=6, deadline=None, derandomize=True)


@st.composite
def series(draw):
    d = draw(st.integers(3, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    y = np.arange(60) % 2
    return np.cumsum(rng.standard_normal((60, d)), axis=1) + 2 * y[:, None], y, rng


@few
@given(series())
def test_completion_is_exact_where_samples_are_seen_and_follows_the_order_of_rows(problem):
    X, _, rng = problem
    d = X.shape[1]
    order = rng.permutation(len(X))
    seen = np.where(np.arange(d) < 2, X[:5], np.nan)
    one, other = (GaussianCompletion().fit(rows) for rows in (X, X[order]))
    found = one.transform(seen)
    assert np.array_equal(found[:, :2], X[:5, :2])
    assert_allclose(other.transform(seen), found, rtol=0, atol=1e-8 * np.abs(X).max())


@few
@given(series())
def test_complete_series_are_decided_and_higher_reliability_decides_no_earlier(problem):
    X, y, _ = problem
    model = ReliableClassifier(LinearDiscriminantAnalysis(), correct=False).fit(X[:40], y[:40])
    loose, strict = (model.predict_early(X[40:], tau) for tau in (0.6, 0.99))
    assert (strict.time >= loose.time).all()
    assert (strict.time <= X.shape[1]).all()
    late = strict.time == X.shape[1]
    assert np.array_equal(strict.label[late], model.predict(X[40:])[late])

"""What holds of the multiclass SVM for any rows: order, kinds of rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat import MulticlassSVM

few = settings(max_examples=10, deadline=None, derandomize=True)


@st.composite
def labelled_rows(draw):
    n, d = draw(st.integers(10, 50)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    y = np.arange(n) % draw(st.integers(2, 4))
    return rng.standard_normal((n, d)) + 0.5 * y[:, None], y, rng


def scores(X, y, rows):
    model = MulticlassSVM(tol=1e-8, max_iter=20_000).fit(X, y)
    assert_allclose(model.dual_coef_.sum(axis=1), 0, rtol=0, atol=1e-12)
    return model.decision_function(rows)


@few
@given(labelled_rows())
def test_order_and_kinds_of_rows(problem):
    X, y, rng = problem
    whole = scores(X, y, X)
    order = rng.permutation(len(y))
    # A gap of 1e-8 of the objective bounds the weights' error by its square root.
    atol = 2e-3 * max(1.0, np.abs(whole).max())
    assert_allclose(scores(X[order], y[order], X), whole, rtol=0, atol=atol)
    assert_allclose(scores(sp.csr_array(X), y, X), whole, rtol=0, atol=atol)

"""What holds of linear classifiers for any rows: order, weights, kinds of rows, solvers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat import MultinomialLogit

few = settings(max_examples=8, deadline=None, derandomize=True)
OPTIONS = {"penalty": 0.1, "tol": 1e-9, "max_iter": 1000, "gram_rows": None}


@st.composite
def labelled_rows(draw):
    n, d = draw(st.integers(20, 60)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    y = np.arange(n) % draw(st.integers(2, 4))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.8) + 0.3 * y[:, None]
    return X, y, rng.integers(1, 4, n), rng


def probabilities(X, y, rows, weights=None, **options):
    model = MultinomialLogit(**{**OPTIONS, **options}).fit(X, y, sample_weight=weights)
    return model.predict_proba(rows)


@few
@given(labelled_rows())
def test_order_weights_and_kinds_of_rows(problem):
    X, y, counts, rng = problem
    order = rng.permutation(len(y))
    weighted = probabilities(X, y, X, counts)
    for rows, labels, weights in (
        (X[order], y[order], counts[order]),
        (np.repeat(X, counts, axis=0), np.repeat(y, counts), None),
        (sp.csr_array(X), y, counts),
    ):
        # The objective is strongly convex, and is solved to 1e-9.
        assert_allclose(probabilities(rows, labels, X, weights), weighted, rtol=0, atol=1e-5)
    single = probabilities(X.astype(np.float32), y, X.astype(np.float32), counts, tol=1e-6)
    assert_allclose(single, weighted, rtol=0, atol=1e-3)


@few
@given(labelled_rows())
def test_labels_may_have_any_names(problem):
    X, y, _, _ = problem
    names = np.array(["d", "c", "b", "a"])[y]
    model = MultinomialLogit(**OPTIONS).fit(X, names)
    found = model.predict_proba(X)[:, ::-1]
    assert_allclose(found, probabilities(X, y, X), rtol=0, atol=1e-5)

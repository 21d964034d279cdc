"""Reducers of one column: matrices of order one are decomposed with every version of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import DOMAINS, X, Y

from eigenfeat import ldg

REDUCERS = (
    *("DirectLDA", "GSVDDiscriminant", "KernelLDG", "LDG", "LocalFisher"),
    *("MaximumMarginCriterion", "PCAFisher", "PooledFisher", "PooledPCA", "RegularizedFisher"),
    *("SparseLDG", "TransferLDG", "DiscriminativeGaussian", "NCA"),
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REDUCERS)
def test_one_column(name):
    rows = X[:, :1]
    more = {"sample_domain": DOMAINS} if name.startswith(("Pooled", "Transfer")) else {}
    found = getattr(ldg, name)().fit(rows, Y, **more).transform(rows)
    assert len(found) == len(rows)
    assert np.isfinite(found).all()

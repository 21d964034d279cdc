"""Tables in which many samples are equally far: results do not depend on the order of columns."""

import numpy as np
import pytest
from scipy import sparse

from eigenfeat.ldg import LDG, DiscriminativeGaussian, KernelLDG, SparseLDG
from eigenfeat.moments.columns import in_any_order


def tied_table(seed):
    """Indicators, small counts, copies, and repeated samples."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 97)), int(rng.integers(2, 7))
    y = rng.integers(0, int(rng.integers(2, 4)), n)
    y[:4] = [0, 1, 0, 1]
    columns = [np.arange(n) % 2 * 1.0]
    for _ in range(d):
        kind = rng.integers(4)
        if kind == 0:
            columns.append((rng.random(n) < 0.5) * 1.0)
        elif kind == 1:
            columns.append(rng.integers(0, 4, n) * 1.0)
        elif kind == 2:
            columns.append(columns[-1].copy())
        else:
            columns.append(np.round(rng.standard_normal(n)))
    X = np.column_stack(columns)
    again = rng.integers(0, n, n // 3)
    X[: len(again)] = X[again]
    return X, y, rng.permutation(X.shape[1])


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("linear", np.asarray),
        ("rbf", np.asarray),
        ("laplacian", np.asarray),
        ("linear", np.float32),
        ("linear", sparse.csr_matrix),
    ],
)
def test_a_kernels_parameters_and_features(kernel, kind):
    for seed in range(3):
        X, y, order = tied_table(seed)
        one, other = (
            KernelLDG(kernel=kernel, random_state=0).fit(kind(rows), y) for rows in (X, X[:, order])
        )
        assert other.n_neighbors_ == one.n_neighbors_
        assert other.gamma_ == one.gamma_
        np.testing.assert_array_equal(other.dual_coef_, one.dual_coef_)


@pytest.mark.parametrize("estimator", [LDG, SparseLDG, DiscriminativeGaussian])
def test_directions_of_columns(estimator):
    for seed in range(8 if estimator is LDG else 2):
        X, y, order = tied_table(seed)
        one = estimator(random_state=0).fit(X, y)
        other = estimator(random_state=0).fit(X[:, order], y)
        assert other.n_neighbors_ == one.n_neighbors_
        # Either of two equal columns may have the weight.
        places, others = in_any_order(X), in_any_order(X[:, order])
        np.testing.assert_array_equal(other.components_[:, others], one.components_[:, places])

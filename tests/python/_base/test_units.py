"""No estimator has a constant in the units of the columns: all in amperes or in picoamperes."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import ESTIMATORS, Y, good_rows, new
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import eigenfeat as ef
from eigenfeat.incomplete import LocalQDA
from eigenfeat.ldg import LDG, KernelLDG
from eigenfeat.moments.class_moments import is_rounding, varying
from eigenfeat.moments.columns import deviations, mean_variance

# Their docstrings name a parameter in the units of the columns: C, sigma2, or that of the kernel.
BY_DEFINITION = {"MulticlassSVM", "MulticlassSVM, warm", "KernelLDG", "KernelLDG, chi2"}
BY_DEFINITION |= {name for name in ESTIMATORS if name.startswith("MaxMargin")}
ANY_SEED = {"LDG, chosen"}


def found(name, rows):
    model, given = new(name)
    if name in ANY_SEED:
        model.set_params(random_state=0)
    model.fit(rows, Y, **given)
    labels = hasattr(model, "predict")
    return np.asarray(model.predict(rows) if labels else model.transform(rows))


def projector(features):
    """Onto the span of centred features."""
    centred = features.astype(float) - features.mean(axis=0)
    left, values, _ = np.linalg.svd(centred / np.abs(centred).max(), full_matrices=False)
    kept = left[:, values > 1e-9 * values[0]]
    return kept @ kept.T


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in BY_DEFINITION])
def test_other_units_give_the_same(name):
    rows = good_rows(name)
    known, other = found(name, rows), found(name, 1e-12 * rows)
    if name == "JointGEMClassifier":  # 3 epochs of float32 steps
        assert (known == other).mean() > 0.9
    elif known.dtype.kind != "f":
        assert_array_equal(known, other)
    else:
        if known.ndim == 2:  # features may be in the unit of the columns, and have other signs
            known, other = projector(known), projector(other)
        assert_allclose(other, known, rtol=0, atol=1e-5 * np.abs(known).max())


@pytest.mark.parametrize("power", [-44, -30, 40])
def test_neighbours_have_no_unit(power):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 4)), np.arange(90) % 3
    X[:, 0] += 2 * y
    known = LocalQDA().fit(X, y).predict(X)
    scaled = X * 2.0**power  # which changes no digit
    assert_array_equal(LocalQDA().fit(scaled, y).predict(scaled), known)
    for kind in (KernelLDG(random_state=0), LDG(random_state=0, standardize=False)):
        chosen = [kind.fit(rows, y).n_neighbors_ for rows in (X, X * 2.0**power)]
        assert chosen[0] == chosen[1]


def test_the_floor_of_standardised_rows_is_that_of_the_thesis():
    rng = np.random.default_rng(1)
    X = StandardScaler().fit_transform(rng.standard_normal((50, 3)) * [1, 10, 1e6])
    constant = np.column_stack([X, np.full(50, 7.0)])
    for rows in (X, constant):
        variances = LocalQDA(1).fit(rows, np.arange(50) % 2).local_gaussians(rows[:2])[1]
        assert_allclose(variances, 1e-4, rtol=1e-12)


def test_spread_is_relative_to_size():
    rng = np.random.default_rng(2)
    noise = rng.choice([-1.0, 0.0, 1.0], 200)
    X = np.column_stack([np.full(200, 0.1), 1 + 2.0**-52 * noise, 1 + 1e-9 * noise, 1e-200 * noise])
    assert_array_equal(deviations(X) > 0, [False, False, True, True])
    assert_allclose(deviations(X)[2], X[:, 2].std(), rtol=1e-6)
    assert_allclose(deviations(X)[3], 1e-200 * noise.std(), rtol=1e-6)
    assert_array_equal(deviations(X.astype(np.float32))[:3] > 0, [False, False, False])
    assert mean_variance(X[:, :2]) == 1.0
    assert_array_equal(varying([-1e-30, 0.0, 4.0], [1.0, 0.0, 1.0]), [0, 0, 2])
    assert_array_equal(is_rounding([0.0, 1e-17, 1e-3], [0.0, 1.0, 1.0]), [True, True, False])


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    months, fee = rng.integers(0, 72, n), rng.uniform(20, 110, n)
    X = np.column_stack([rng.random(n) < 0.16, months, fee, months * fee]).astype(float)
    return X, np.where(rng.normal(size=n) + months / 40 - fee / 60 > 0, "stays", "leaves")


SCALES = (0.0, 0.1, 1.0)


@pytest.mark.parametrize(
    "kind",
    [ef.MaxMarginShift(PCA(2), scales=SCALES), ef.maxmargin.MaxMarginPCA(2, scales=SCALES)],
)
def test_moves_of_a_table_in_its_own_units(kind):
    """As many epochs as of the standardised table, whose results are those without scaling."""
    X, y = table(40)
    Z = StandardScaler().fit_transform(X)
    plain = kind.fit(Z, y)
    epochs, known = plain.svm_.n_iter_, plain.cv_scores_
    assert_array_equal(plain.column_scale_, np.ones(4))
    raw = kind.fit(X, y)
    assert raw.svm_.n_iter_ <= 2 * epochs
    assert_allclose(raw.column_scale_, X.std(axis=0), rtol=1e-12)
    assert_allclose(kind.fit(1e-12 * X, y).cv_scores_, raw.cv_scores_)
    for rows in (1e-12 * Z, np.column_stack([Z + 280.0, np.full(40, 1e9)])):
        other = kind.fit(rows, y)
        assert other.svm_.n_iter_ <= 2 * epochs
        assert_allclose(other.cv_scores_, known)
        assert np.isfinite(other.transform(rows)).all()


def test_moved_rows_are_in_the_columns_units():
    X, y = table(80)
    Z = StandardScaler().fit_transform(X)
    svm, sigma2 = ef.MulticlassSVM(tol=1e-6), 0.5
    known = ef.MaxMarginShift(sigma2=sigma2, svm=svm).shift(Z, y)
    moved = ef.MaxMarginShift(sigma2=sigma2, svm=svm, scale="columns").shift(X, y)
    assert_allclose((moved - X.mean(axis=0)) / X.std(axis=0), known, rtol=0, atol=1e-6)
    components = ef.maxmargin.MaxMarginPCA(2, sigma2=sigma2, svm=svm, max_iter=1000)
    expected = components.fit(Z, y).transform(Z)
    scaled = components.set_params(scale="columns").fit(X, y).transform(X)
    assert_allclose(scaled, expected, rtol=0, atol=1e-4)

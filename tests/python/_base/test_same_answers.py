"""Results do not depend on units of columns and weights, nor on the number of threads."""

import numpy as np
import pytest
from every_estimator import ESTIMATORS, Y, good_rows, new, outputs, rows_for, seeded
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from random_tables import projector
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

import eigenfeat as ef
from eigenfeat.tables.classification_views import VIEWS


def fitted(name, rows, labels, **parameters):
    estimator, more = seeded(name)
    return estimator.set_params(**parameters).fit(rows, labels, **more)


# ---- units of the columns ------------------------------------------------------------------------

# Estimators with a documented parameter in the units of the columns: C, sigma2, or the kernel's.
BY_DEFINITION = {"MulticlassSVM", "KernelLDG", "KernelLDG, chi2"}
BY_DEFINITION |= {name for name in ESTIMATORS if name.startswith("MaxMargin")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in BY_DEFINITION])
def test_other_units_give_the_same_results(name):
    rows = good_rows(name)
    known, other = (
        [*outputs(fitted(name, part, Y), part).values()][-1] for part in (rows, 1e-12 * rows)
    )
    if name == "JointGEMClassifier":  # 3 epochs of float32 steps
        assert (known == other).mean() > 0.9
    elif known.dtype.kind != "f":
        assert_array_equal(known, other)
    else:
        if known.ndim == 2:  # features may be in the unit of the columns, and have other signs
            known, other = projector(known), projector(other)
        assert_allclose(other, known, rtol=0, atol=1e-5 * np.abs(known).max())


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
    """The SVM takes as many epochs as for a standardised table, whose columns are not scaled."""
    X, y = table(40)
    Z = StandardScaler().fit_transform(X)
    plain = kind.fit(Z, y)
    epochs, known = plain.svm_.n_iter_, plain.cv_results_["mean_test_score"]
    assert_array_equal(plain.column_scale_, np.ones(4))
    raw = kind.fit(X, y)
    assert raw.svm_.n_iter_ <= 2 * epochs
    assert_allclose(raw.column_scale_, X.std(axis=0), rtol=1e-12)
    expected = raw.cv_results_["mean_test_score"]
    assert_allclose(kind.fit(1e-12 * X, y).cv_results_["mean_test_score"], expected)
    for rows in (1e-12 * Z, np.column_stack([Z + 280.0, np.full(40, 1e9)])):
        other = kind.fit(rows, y)
        assert other.svm_.n_iter_ <= 2 * epochs
        assert_allclose(other.cv_results_["mean_test_score"], known)
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


# ---- weights of samples --------------------------------------------------------------------------

WEIGHTED = [name for name in ESTIMATORS if has_fit_parameter(new(name)[0], "sample_weight")]
COUNTS = np.random.default_rng(0).integers(1, 4, len(Y))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_any_size(name):
    rows = good_rows(name)
    for unit in (1e-290, 1e290):
        model = new(name)[0].fit(rows, Y, sample_weight=unit * COUNTS)
        for found in outputs(model, rows).values():
            assert found.dtype.kind != "f" or np.isfinite(found).all()


@pytest.mark.parametrize("unit", [1e-290, 1e290])
def test_blocks_accept_weights_of_any_size(unit):
    rows = good_rows("MultinomialLogit")
    whole = ef.MultinomialLogit(tol=1e-9).fit(rows, Y, unit * COUNTS)
    for kind in (ef.MultinomialLogit(tol=1e-9), gem_classifier(n_directions=1)):
        blocks = ef.samples.ArrayBlocks(rows, Y, unit * COUNTS, block_rows=17)
        found = kind.fit(blocks).predict_proba(rows)
        assert np.isfinite(found).all()
        if isinstance(kind, ef.MultinomialLogit):
            assert_allclose(found, whole.predict_proba(rows), rtol=0, atol=1e-6)


def test_balanced_classes_of_the_svm_count_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = rng.choice(["a", "b", "c"], 90, p=[0.6, 0.3, 0.1])
    X[y == "a", 0] *= 2
    X[y == "b", 1] += 1
    svm = ef.MulticlassSVM(class_weight="balanced", tol=1e-7)
    for weight in (rng.integers(0, 4, 90), np.where(y == "c", 10, 1)):
        found = svm.fit(X, y, sample_weight=weight).decision_function(X)
        svm.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        assert_allclose(svm.decision_function(X), found, rtol=0, atol=1e-3)


# ---- threads -------------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
N = 1200  # several blocks for several threads
LABELS = np.arange(N) % 3
MANY = RNG.standard_normal((N, 8)) * (1 + (LABELS[:, None] == np.arange(8) % 3))
MANY += 0.4 * LABELS[:, None]
# Fits that take long, or whose work grows with the square of the number of samples.
SMALL = ("ITML", "KernelLDG", "MaxMargin", "Sparse")
SMALL += ("MinimumCost", "Reliable", "Discriminative", "MulticlassSVM")
SIZES = {"TableClassifier": 90, "TableClassifier, all": 1010, "TableRegressor, all": 120}
SIZES |= {"ReliableClassifier, local": 60}
COLUMNS = {"TableClassifier, all": 2, "TableRegressor, all": 3}
# All but "boosting", whose code "boosting_pairs" runs, too.
PARAMETERS = {"TableClassifier, all": {"views": [name for name in VIEWS if name != "boosting"]}}


def of_many_samples(name, **parameters):
    n = SIZES.get(name, 90 if name.startswith(SMALL) else N)
    rows, labels = MANY[:n, : COLUMNS.get(name)], LABELS[:n]
    labels = labels % 2 if name.startswith("Table") else labels  # trees take time for each class
    if name == "TransferLDG":
        domains = np.where(np.arange(len(labels)) % 2, 1, -1)
        return new(name)[0].set_params(**parameters).fit(rows, labels, sample_domain=domains), rows
    rows = rows_for(name, rows)
    return fitted(name, rows, labels, **parameters, **PARAMETERS.get(name, {})), rows


def with_parameter(parameter):
    return [name for name in ESTIMATORS if parameter in ESTIMATORS[name]().get_params()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", with_parameter("n_threads"))
def test_threads_do_not_change_a_bit(name):
    models = [of_many_samples(name, n_threads=n_threads) for n_threads in (1, 7)]
    one, other = (outputs(model, rows[:300]) for model, rows in models)
    for method in one:
        assert_array_equal(other[method], one[method], strict=True)
    # Views without weight are in no prediction.
    scores = ([view.score for view in getattr(model, "views_", [])] for model, _ in models)
    assert_array_equal(*scores)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [n for n in with_parameter("verbose") if "," not in n])
def test_progress_is_printed_on_stderr_and_only_with_verbose(name, capfd):
    rows = good_rows(name)
    fitted(name, rows, Y)
    assert capfd.readouterr() == ("", "")
    fitted(name, rows, Y, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert err

"""Parameters of any size and type give a message that names them, or a result without NaN."""

import re
import warnings

import numpy as np
import pytest
from every_estimator import ESTIMATORS, LDG, X, Y, good_rows, new
from flat_gem import joint_classifier
from sklearn.base import is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import eigenfeat as ef
from eigenfeat import ldg
from eigenfeat.neighbours import local_means

VALUES = {
    **{"2**70": 2**70, "1e300": 1e300, "nan": np.nan, "-1": -1, "text": "x", "None": None},
    **{"nothing": [], "object": object(), "array": np.array([1, 2]), "list of NaN": [np.nan]},
}
# Parameters that set the length of the work: 2**31 steps are slow, but valid.
LONG = {"max_iter", "depth", "n_iterations", "n_members", "epochs", "tol"}
# Parameters whose extreme values are accepted; attributes report the accuracy of the result.
EXTREME = {"C"}


def problem(name, parameter, value):
    """What is wrong with an estimator's response to a value; None if nothing is wrong."""
    estimator, more = new(name)
    estimator.set_params(**{parameter: value})
    rows = good_rows(name)
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            estimator.fit(rows, Y, **more)
            method = (
                "predict" if is_classifier(estimator) or is_regressor(estimator) else "transform"
            )
            made = np.asarray(getattr(estimator, method)(rows[:5]))
    except (ValueError, TypeError) as error:
        if re.search(rf"\b{parameter}\b", str(error)):
            return None
        return f"{type(error).__name__}: {error}"[:200]
    except MemoryError as error:
        return None if parameter in str(error) else f"MemoryError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    if made.dtype.kind == "f" and not np.isfinite(made).all():
        return "NaN"
    texts = [str(one.message) for one in caught if one.category is not ConvergenceWarning]
    return next((text[:200] for text in texts if not re.search(parameter, text)), None)


# Each estimator once, and estimators with parameters that have an effect in one mode only.
MODES = ("MaxMarginShift, joint", "MaxMarginShift, corrupted")


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if "," not in n or n in MODES])
def test_every_parameter_of_every_estimator(name):
    found = {}
    for parameter, default in new(name)[0].get_params(deep=False).items():
        if parameter in EXTREME | {"verbose", "n_threads"} or (
            name.startswith(("Reliable", "MinimumCost")) and parameter == "classifier"
        ):
            continue
        for label, value in VALUES.items():
            big = isinstance(value, int) and value > 0
            if value is default or (parameter in LONG and (big or label == "1e300")):
                continue
            if what := problem(name, parameter, value):
                found[parameter, label] = what
    assert found == {}


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda v: ldg.LDG(n_components=2, gamma=1.0, n_neighbors=[3, v]), "n_neighbors"),
        (lambda v: ef.GEMEnsemble(ef.GEMClassifier(), n_members=v), "n_members"),
        (lambda v: ef.GEMClassifier(depth=v), "depth"),
        (lambda v: joint_classifier(epochs=v), "epochs"),
        (lambda v: ef.CalibratedLeastSquares(n_iterations=v), "n_iterations"),
        (lambda v: ef.GEMClassifierCV(cv=v), "cv"),
    ],
)
@pytest.mark.parametrize("value", [2**31, 2**64])
def test_counts_beyond_31_bits(make, parameter, value):
    with pytest.raises(ValueError, match=rf"\b{parameter}\b.* (expected|must be) .*{value}"):
        make(value).fit(X, Y)


def test_neighbours_that_do_not_fit_into_memory():
    with pytest.raises(ValueError, match=r"n_neighbors: expected lists that fit .* got 2147483647"):
        ldg.LDG(n_components=2, gamma=1.0, n_neighbors=2**31 - 1).fit(X, Y)
    with pytest.raises(ValueError, match=r"n_neighbors: expected lists that fit .* got 2147483648"):
        local_means.local_neighbours(X, Y, 3, 2**31)


CV = [
    [1, 2],
    [],
    {},
    "ab",
    [[1]],
    [([0, 1],)],
    [([0.5], [1])],
    [([0, 1], [10**9])],
    [np.nan],
    1,
    61,
]


@pytest.mark.parametrize("cv", CV, ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda cv: ef.GEMClassifierCV(grid={"logit__penalty": [0.1, 1.0]}, cv=cv),
        lambda cv: ef.MaxMarginShift(PCA(2), scales=[0.5, 1.0], cv=cv),
    ],
    ids=["GEMClassifierCV", "MaxMarginShift"],
)
def test_wrong_splits_are_named(make, cv):
    model = make(cv)
    if isinstance(model, ef.MaxMarginShift) and cv in (1, 61):
        pytest.skip("MaxMarginShift takes as many folds as the smallest class has rows")
    with pytest.raises(ValueError, match=r"^(cv: expected |The 'cv' parameter)"):
        model.fit(X, Y)


def test_splits_of_every_kind_are_accepted():
    halves = [(np.arange(0, 60, 2), np.arange(1, 60, 2)), (np.arange(60) < 30, np.arange(60) >= 30)]
    for cv in (2, KFold(3), halves, iter(halves), halves[:1], [([*range(40)], [*range(40, 60)])]):
        ef.GEMClassifierCV(grid={"logit__penalty": [0.1, 1.0]}, cv=cv).fit(X, Y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sigma2", [1e300, 1e200])
def test_moves_beyond_all_numbers(sigma2, dtype):
    with pytest.raises(ValueError, match=r"^sigma2: expected .* got 1e\+[23]00$"):
        ef.MaxMarginShift(PCA(2), sigma2=sigma2).fit(X.astype(dtype), Y)


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2"])
def test_kernels_of_counts(kernel):
    with pytest.raises(
        ValueError, match=rf"^X: expected numbers >= 0 with kernel='{kernel}', got -"
    ):
        ldg.KernelLDG(kernel=kernel, **LDG).fit(X, Y)
    model = ldg.KernelLDG(kernel=kernel, **LDG).fit(np.abs(X), Y)
    with pytest.raises(ValueError, match=r"^X: expected numbers >= 0"):
        model.transform(X)

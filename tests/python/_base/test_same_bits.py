"""Every estimator: the same bits for every number of threads, and no unasked lines."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import ESTIMATORS

import eigenfeat as ef

RNG = np.random.default_rng(3)
N = 1200  # several blocks for several threads
Y = np.arange(N) % 3
X = RNG.standard_normal((N, 8)) * (1 + (Y[:, None] == np.arange(8) % 3)) + 0.4 * Y[:, None]
FEW = slice(0, 90)
# Fits that take long, or whose work grows with the square of the number of samples.
SMALL = ("Autoencoder", "ECTS", "FixedTime", "ITML", "KernelLDG", "MaxMargin", "NCA", "Sparse")
SMALL += ("MinimumCost", "Reliable", "TransferITML", "Discriminative", "MulticlassSVM", "ClassNear")
METHODS = ("decision_function", "predict_proba", "transform", "predict")


def fitted(name, **parameters):
    estimator = ESTIMATORS[name]().set_params(**parameters)
    rows, labels = (X[FEW], Y[FEW]) if name.startswith(SMALL) or "pool" in name else (X, Y)
    given = {}
    if name in ("TransferITML", "TransferLDG", "PooledPCA", "PooledFisher"):
        given["sample_domain"] = np.where(np.arange(len(labels)) % 2, 1, -1)
    if name == "OrientedPCA":
        estimator.set_params(noise_matrix=np.eye(8))
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    rows = np.abs(rows) if "chi2" in name else rows
    return estimator.fit(rows, labels, **given), rows


def with_parameter(parameter):
    return [name for name in ESTIMATORS if parameter in ESTIMATORS[name]().get_params()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", with_parameter("n_threads"))
def test_threads_do_not_change_a_bit(name):
    models = [fitted(name, n_threads=n_threads) for n_threads in (1, 7)]
    for method in METHODS:
        if hasattr(models[0][0], method):
            made = [np.asarray(getattr(model, method)(rows[:300])) for model, rows in models]
            for other in made[1:]:
                np.testing.assert_array_equal(other, made[0], strict=True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [n for n in with_parameter("verbose") if "," not in n])
def test_progress_goes_to_stderr_and_only_if_asked_for(name, capfd):
    fitted(name)
    assert capfd.readouterr() == ("", "")
    fitted(name, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert err


def test_a_threads_count_reaches_the_parts_of_an_estimator():
    search = ef.GEMClassifierCV(grid={"logit__penalty": [0.1]}, n_threads=1).fit(X[FEW], Y[FEW])
    assert search.best_estimator_.n_threads == 1
    ensemble = ef.GEMEnsemble(n_members=1, n_threads=1).fit(X[FEW], Y[FEW])
    assert ensemble.members_[0].n_threads == 1

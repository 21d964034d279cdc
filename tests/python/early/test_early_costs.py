"""`MinimumCostClassifier`: decisions of least expected cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from eigenfeat.demo.early import signals
from eigenfeat.early import MinimumCostClassifier
from eigenfeat.early.stopping import fitted_policy
from eigenfeat.rayleigh import QuadraticDiscriminant


def shown_late(random, n, at=6, d=10, share=0.5):
    """Half of the series show their class at the first sample, the others at sample `at`."""
    y = random.integers(0, 2, n)
    X = 0.3 * random.standard_normal((n, d))
    early = random.random(n) < share
    X[early, 0] += 4.0 * y[early] - 2
    X[~early, at - 1] += 4.0 * y[~early] - 2
    return X, y, early


def paid(model, X, y, delay):
    found = model.predict_early(X)
    return np.mean((found.label != y) + delay * found.time / X.shape[1])


@pytest.mark.parametrize("delay", [0.05, 0.4, 3.0])
def test_decisions_are_as_late_as_the_delay_cost_allows(delay):
    random = np.random.default_rng(1)
    X, y, _ = shown_late(random, 300)
    fresh, truth, early = shown_late(random, 2000)
    model = MinimumCostClassifier(GaussianNB(), delay, times=[1, 3, 6, 10]).fit(X, y)
    found = model.predict_early(fresh)
    if delay == 3.0:  # waiting for 5 samples costs more than it can save
        assert_array_equal(found.time, 1)
    else:
        assert np.mean(found.time[early] == 1) > 0.7
        assert np.mean(found.time[~early] == 6) > 0.9
    # No fixed time costs less.
    for k, t in enumerate(model.times_):
        fixed = model.classifiers_[k].predict(fresh[:, :t]) != truth
        assert paid(model, fresh, truth, delay) <= np.mean(fixed) + delay * t / 10 + 0.01
    assert_allclose(found.cost.mean(), paid(model, fresh, truth, delay), atol=0.05)


def test_backward_induction_is_the_optimum_of_a_known_problem():
    """Two kinds of rows at the first time; the value of waiting is known for each."""
    random = np.random.default_rng(2)
    kind = random.integers(0, 2, 2000)
    first = np.where(kind[:, None] == 0, [0.5, 0.5], [0.9, 0.1])
    later = np.tile([0.99, 0.01], (2000, 1))
    wrong = np.stack([random.random(2000) < np.where(kind == 0, 0.5, 0.1), np.zeros(2000)])
    for delay, wait in ((0.05, [True, True]), (0.2, [True, False]), (0.7, [False, False])):
        costs = wrong + np.array([[0.0], [delay]])
        policy = fitted_policy([first, later], costs)
        assert_array_equal(policy.saving(0, first) > 0, np.array(wait)[kind])
        expected = np.where(kind == 0, 0.5, 0.1) - delay
        assert_allclose(policy.saving(0, first), expected, atol=0.05)


def test_misclassification_costs_change_decisions():
    random = np.random.default_rng(3)
    X, y, _ = shown_late(random, 300, share=0.3)
    costs = np.array([[0.0, 1.0], [30.0, 0.0]])  # 30: deciding 0 for true class 1
    even = MinimumCostClassifier(GaussianNB(), 0.1).fit(X, y)
    careful = MinimumCostClassifier(GaussianNB(), 0.1, costs).fit(X, y)
    fresh, truth, _ = shown_late(random, 1000)
    assert np.sum(careful.predict(fresh) == 0) <= np.sum(even.predict(fresh) == 0)
    missed = [np.sum((m.predict_early(fresh).label == 0) & (truth == 1)) for m in (even, careful)]
    assert missed[1] <= missed[0]
    assert careful.predict_early(fresh).time.mean() != even.predict_early(fresh).time.mean()


def test_missing_entries_of_rows_are_named():
    X, y, _ = shown_late(np.random.default_rng(3), 40)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="X: expected complete samples, got NaN in row 2") as found:
        MinimumCostClassifier(KNeighborsClassifier()).fit(X, y)
    assert "; pass series with missing values as X[:, None] or as a list" in str(found.value)
    assert str(found.value).endswith("as a list of arrays, without NaN at their ends")
    assert "decide" not in str(found.value)  # this classifier has no method `decide`
    MinimumCostClassifier(KNeighborsClassifier()).fit(X[:, None], y)


def test_objects_that_are_not_classifiers_are_refused():
    X, y, _ = shown_late(np.random.default_rng(3), 40)
    with pytest.raises(ValueError, match="classifier: expected a classifier with predict_pro"):
        MinimumCostClassifier(StandardScaler()).fit(X, y)
    with pytest.raises(ValueError, match="classifier: expected a classifier that can be f"):
        MinimumCostClassifier(KNeighborsClassifier(10_000)).fit(X, y)


# ---- series with equal beginnings ----------------------------------------------------------------


def lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


IDLE = 12


def idle_series(n=90, seed=0, idle=IDLE, value=0.0):
    X, y = signals(n, np.random.default_rng(seed))
    X[:, :idle] = value
    return X, y


@pytest.mark.parametrize("classifier", [LinearDiscriminantAnalysis(), QuadraticDiscriminant()])
def test_idle_beginnings(classifier):
    X, y = idle_series()
    N, t = idle_series(40, 1)
    early = MinimumCostClassifier(classifier, delay_cost=0.5, n_times=6, n_folds=2).fit(X, y)
    assert early.onset_ == IDLE
    assert early.times_[0] > IDLE
    assert len(early.times_) == 6
    found = early.predict_early(N)
    assert np.mean(found.label == t) > 0.7
    assert (found.time > IDLE).all()


def test_the_level_of_the_idle_beginning_does_not_matter():
    X, y = idle_series(value=-1e6)
    X[:, :IDLE] *= 1 + np.random.default_rng(2).choice([0.0, 2.0**-52], (len(X), IDLE))
    by_time = np.arange(1, 61) / 100
    early = MinimumCostClassifier(lda(), by_time, n_times=3, n_folds=2).fit(X, y)
    assert early.onset_ == IDLE
    wanted = MinimumCostClassifier(lda(), by_time[IDLE:], n_times=3, n_folds=2)
    wanted.fit(X[:, IDLE:], y)
    assert_array_equal(early.times_, wanted.times_ + IDLE)
    found = early.predict_early(X)
    assert_array_equal(found.label, wanted.predict_early(X[:, IDLE:]).label)


def test_given_times_before_the_onset_are_left_out():
    X, y = idle_series()
    early = MinimumCostClassifier(lda(), times=[4, 12, 13, 40]).fit(X, y)
    assert early.times_.tolist() == [13, 40, X.shape[1]]


def test_beginnings_that_differ_in_one_idle_series():
    X, y = idle_series()
    X[0, :IDLE] = 1.0  # equal beginnings in every fold but one
    early = MinimumCostClassifier(LinearDiscriminantAnalysis(), 0.5, times=[5, 30]).fit(X, y)
    assert early.onset_ == 0
    assert np.mean(early.predict_early(X).label == y) > 0.7


def test_series_that_never_differ():
    X, y = idle_series()
    with pytest.raises(ValueError, match=r"^X: expected series that differ, got equal series"):
        MinimumCostClassifier().fit(np.ones_like(X), y)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"delay_cost": -1}, r"^delay_cost: expected nonnegative costs that do not .* got -1$"),
        ({"delay_cost": np.linspace(-1, 0, 10)}, "^delay_cost: expected nonnegative costs that"),
        ({"delay_cost": np.arange(10, 0, -1)}, "^delay_cost: expected nonnegative costs that do n"),
        ({"delay_cost": [0.0] * 9 + [np.nan]}, "^delay_cost: expected finite costs, got .*nan"),
        ({"delay_cost": np.arange(9)}, r"^delay_cost: expected a number or shape \(10,\), got "),
        ({"misclassification_cost": -1}, "^misclassification_cost: expected a nonnegative cost, "),
        (
            {"misclassification_cost": np.eye(3)},
            r"^misclassification_cost: expected .* shape \(2, 2\), .*true and .*decided classes in "
            r"the order \['no', 'yes'\], got shape \(3, 3\)$",
        ),
    ],
)
def test_invalid_costs_are_refused(costs, message):
    X, y, _ = shown_late(np.random.default_rng(0), 60)
    with pytest.raises(ValueError, match=message):
        MinimumCostClassifier(GaussianNB(), **costs).fit(X, np.where(y == 1, "yes", "no"))


def test_equal_costs_of_all_times_allow_waiting():
    X, y, _ = shown_late(np.random.default_rng(0), 60)
    for free in 0, np.zeros(10):
        model = MinimumCostClassifier(GaussianNB(), delay_cost=free).fit(X, y)
        assert model.predict_early(X).time.max() > 1

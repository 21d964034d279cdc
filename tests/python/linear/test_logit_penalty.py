"""``penalty="auto"``: the penalty with the least log loss of held-out rows, and its fit."""

import numpy as np
import pytest
from flat_gem import gem_classifier
from logit_problems import held_out_logits, wide_problem
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from eigenfeat import GEMClassifierCV, MultinomialLogit
from eigenfeat.linear.logistic import PENALTIES, draw_folds
from eigenfeat.linear.logit_problem import LogitProblem, log_loss, temperature
from eigenfeat.samples import ArrayBlocks
from eigenfeat.samples.estimator import prepare
from eigenfeat.samples.labelled import MemorySamples

SMALL = {"n_directions": 2, "pairs": "hypercube", "scale": "none", "penalty": "auto"}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400].astype(np.float32), y[:400]


@pytest.fixture(scope="module", params=["many samples", "many columns"])
def exact_folds(request, digits):
    """Samples, labels, and logits of exact fits of each fold, for each penalty."""
    many = request.param == "many samples"
    X, y = digits if many else wide_problem(0)
    parts = draw_folds(y, 10 if many else 3, np.random.RandomState(0))
    options = {"ridge_scale": "common", "tol": 1e-4 if many else 1e-8, "max_iter": 1000}
    exact = [MultinomialLogit(penalty, **options) for penalty in PENALTIES]
    return X, y, [held_out_logits(model, X, y, parts) for model in exact]


@pytest.mark.parametrize("fixed", ["auto", 1.0, 0.1])
def test_the_penalty_has_the_least_held_out_loss_of_exact_fits(exact_folds, fixed):
    X, y, held_out = exact_folds
    model = MultinomialLogit("auto", temperature=fixed, ridge_scale="common").fit(X, y)
    found = [temperature(logits) if fixed == "auto" else fixed for logits in held_out]
    losses = [log_loss(logits, T) for logits, T in zip(held_out, found, strict=True)]
    chosen = PENALTIES.index(model.penalty_)
    assert losses[chosen] <= 1.01 * min(losses)
    # With many columns, logits over their temperature have similar losses for all penalties.
    assert 1.01 * min(losses) < max(losses) or (fixed == "auto" and X.shape[1] > len(X))
    assert model.temperature_ == pytest.approx(found[chosen], rel=0.04)


def test_the_fit_equals_a_fit_with_the_chosen_penalty(digits):
    model = gem_classifier(**SMALL).fit(*digits)
    assert model.logit.penalty == "auto"
    assert model.penalty_ == model.logit_.penalty_ in PENALTIES
    given = gem_classifier(**SMALL | {"penalty": model.penalty_}).fit(*digits)
    assert given.penalty_ == model.penalty_
    ours, theirs = (one.logit_.coef_ * one.temperature_ for one in (model, given))
    np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    assert_array_equal(given.predict(digits[0]), model.predict(digits[0]))
    assert given.temperature_ == pytest.approx(model.temperature_, rel=0.05)


def test_blocks_and_threads_choose_the_same_penalty(digits):
    model = gem_classifier(**SMALL, n_threads=1).fit(*digits)
    spread = gem_classifier(**SMALL).fit(ArrayBlocks(*digits, block_rows=97))
    threads = gem_classifier(**SMALL, n_threads=3).fit(*digits)
    assert spread.penalty_ == model.penalty_ == threads.penalty_
    assert threads.temperature_ == model.temperature_


def test_paths_take_none_for_the_chosen_penalty(digits):
    one = MultinomialLogit("auto").fit(*digits)
    (same,) = list(MultinomialLogit("auto").iterate_path(*digits, None))
    assert_array_equal(same.coef_, one.coef_)
    path = list(MultinomialLogit("auto").iterate_path(*digits, [0.3, 0.1]))
    assert [model.penalty_ for model in path] == [model.penalty for model in path] == [0.3, 0.1]


def test_searches_accept_numbers_only(digits):
    with pytest.raises(ValueError, match="grid: expected numbers as penalties"):
        GEMClassifierCV(grid={"logit__penalty": [0.1, "auto"]}).fit(*digits)
    search = GEMClassifierCV(gem_classifier(**SMALL), grid={"gem__ridge": [0.1]})
    with pytest.raises(ValueError, match="estimator: expected a penalty that is a number"):
        search.fit(*digits)
    chosen = GEMClassifierCV(gem_classifier(**SMALL), grid={"logit__penalty": [0.1, 0.01]}, cv=2)
    assert chosen.fit(*digits).best_params_["logit__penalty"] in (0.1, 0.01)


def test_the_metric_of_a_subsample_leads_to_the_minimum_of_all_samples():
    random = np.random.default_rng(0)
    X = random.standard_normal((5_200, 2_700), dtype=np.float32)
    X[:, 2_699] = 0.0
    X[random.integers(5_200), 2_699] = 1.0  # in one sample
    y = (X[:, :20].sum(axis=1) + random.standard_normal(5_200) > 0).astype(int)
    model = MultinomialLogit(temperature="auto", tol=1e-3, n_threads=1).fit(X, y)
    exact = MultinomialLogit(tol=1e-5).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert model.objective_ <= 1.005 * exact.objective_
    again = MultinomialLogit(temperature="auto", tol=1e-3, n_threads=2).fit(X, y)
    assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("block_rows", [None, 7])
def test_a_fold_has_the_weight_of_its_samples(rng, block_rows):
    X, y, weight = rng.standard_normal((60, 3)), np.arange(60) % 2, rng.uniform(0.1, 9.0, 60)
    rows = MemorySamples.of(X, y, weight, 1)
    if block_rows:
        blocks = ArrayBlocks(X, y, weight, block_rows)
        rows = prepare(MultinomialLogit(), blocks, None, None, moments=False)
    train = np.arange(20)
    fold, _ = LogitProblem(rows, constant=True).fold(train, np.arange(20, 60))
    assert fold.total == pytest.approx(weight[train].sum())

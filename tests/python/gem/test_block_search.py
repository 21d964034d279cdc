"""GEMClassifierCV on blocks of rows and on memory-mapped files, against the same rows in memory."""

import logging

import numpy as np
import pytest
from block_support import FarBlocks, objective_gap
from flat_gem import gem_classifier
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold, PredefinedSplit

from eigenfeat import GEMClassifierCV
from eigenfeat.samples import ArrayBlocks

GRID = {"gem__threshold": [1.0, 75.0], "logit__penalty": [1.0, 0.1]}
# Relative tolerance: float32 features do not determine the optimum more accurately.
SAME = float(np.finfo(np.float32).eps) ** 0.5


@pytest.fixture(scope="module")
def digits():
    """480 rows of four classes, with more rows than features."""
    X, y = load_digits(return_X_y=True)
    return X[y < 4][:480], y[y < 4][:480]


@pytest.fixture(scope="module")
def weight():
    return np.random.RandomState(0).randint(0, 3, 480) / 2.0


def search(**options):
    grid = options.pop("grid", GRID)
    own = {name: options.pop(name) for name in ("cv", "scoring", "refit") if name in options}
    base = gem_classifier(**{"n_directions": 2, "scale": "none", "tol": 1e-6} | options)
    return GEMClassifierCV(base, grid, **own)


def assert_same(found, memory, n_held, X):
    """Check that both searches held out the same samples and agree up to rounding."""
    expected = {repr(result["params"]): result for result in memory.results_}
    assert len(found.results_) == len(expected)
    for result in found.results_:
        in_memory = expected[repr(result["params"])]
        assert np.abs(np.subtract(result["errors"], in_memory["errors"])).max() <= 1.01 / n_held
        assert result["log_loss"] == pytest.approx(in_memory["log_loss"], rel=SAME)
        assert result["n_directions_kept"] == in_memory["n_directions_kept"]
    assert found.best_params_ == memory.best_params_
    assert_array_equal(found.classes_, memory.classes_)
    assert found.n_features_in_ == memory.n_features_in_ == X.shape[1]
    best, best_in_memory = found.best_estimator_, memory.best_estimator_
    assert objective_gap(best.logit_, best_in_memory.logit_) < 1e-4
    assert np.abs(best.predict_proba(X) - best_in_memory.predict_proba(X)).max() < 1e-2


KINDS = [
    {},
    {"scale": "auto", "grid": {"gem__ridge": [0.1, 1.0], "gem__n_directions": [1, 2]}},
    {"depth": 2, "hidden_directions": 1, "n_directions": 1, "expansion": "with_input"},
    {"cv": 3, "scoring": "log_loss"},
    {"cv": KFold(2, shuffle=True, random_state=1), "pairs": "hypercube"},
]


@pytest.mark.parametrize(("number", "options"), list(enumerate(KINDS)), ids=str)
def test_the_search_on_blocks_agrees_with_that_in_memory(digits, weight, number, options):
    X, y = digits
    w = weight if number % 2 == 0 else None
    memory = search(**options).fit(X, y, w)
    found = search(**options).fit(FarBlocks(X, y, w, block_rows=130))
    assert_same(found, memory, 40, X)


def test_indices_of_given_splits_count_rows_without_weight(digits, weight):
    X, y = digits
    kept = weight > 0
    fold = np.arange(480) % 3
    plain = search(cv=PredefinedSplit(fold[kept])).fit(X[kept], y[kept], weight[kept])
    masks = [(fold != i, fold == i) for i in range(3)]
    blocks = ArrayBlocks(X, y, weight, block_rows=130)
    for cv, rows in ((PredefinedSplit(fold), (X, y, weight)), (masks, (blocks,))):
        assert_same(search(cv=cv).fit(*rows), plain, 90, X)


def attributes(model):
    return {name: value for name, value in model.__dict__.items() if name != "results_"}


@pytest.mark.parametrize("kind", [lambda X, y: (X, y), lambda X, y: (ArrayBlocks(X, y),)])
def test_unfit_splits_are_named(digits, kind):
    X, y = digits
    for cv, message in (
        (
            PredefinedSplit(np.where(y == 3, 0, -1)),
            "cv: expected samples of every class .* class 3",
        ),
        (
            [(np.arange(480), np.arange(0))],
            "cv: expected samples held out in every split, got none",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            search(cv=cv).fit(*kind(X, y))
    twice = [(np.arange(480) // 2 * 2, np.arange(1, 480, 2))]
    if len(kind(X, y)) == 1:
        with pytest.raises(
            ValueError, match="cv: expected splits of blocks without repeated samples"
        ):
            search(cv=twice).fit(ArrayBlocks(X, y))


class Interrupt(logging.Handler):
    """Raises KeyboardInterrupt when the fourth logit begins its search."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.begun = 0

    def emit(self, record):
        self.begun += "iteration 0" in record.getMessage()
        if self.begun == 4:
            raise KeyboardInterrupt


@pytest.fixture
def interrupted():
    logger, handler = logging.getLogger("eigenfeat"), Interrupt()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_search_keeps_finished_candidates(digits):
    X, y = digits
    model = search()
    before = attributes(model)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ArrayBlocks(X, y))
    tried = [tuple(result["params"].values()) for result in model.results_]
    assert sorted(tried) == [(1.0, 0.1), (1.0, 1.0), (75.0, 1.0)]
    assert attributes(model) == before

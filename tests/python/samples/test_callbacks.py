"""Callbacks of scikit-learn follow the steps of iterative estimators, and change nothing."""

import numpy as np
import pytest
from command_line import python
from every_estimator import LDG, X, Y
from flat_gem import gem_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eigenfeat as ef
from eigenfeat import ldg

MODELS = {
    "MultinomialLogit": lambda: ef.MultinomialLogit(tol=1e-6, max_iter=200),
    "MulticlassSVM": ef.MulticlassSVM,
    "CalibratedLeastSquares": lambda: ef.CalibratedLeastSquares(n_iterations=4),
    "DiscriminativeGaussian": lambda: ldg.DiscriminativeGaussian(**LDG, max_iter=40, tol=0.02),
    "GEMClassifierCV": lambda: ef.GEMClassifierCV(grid={"logit__penalty": [0.1, 0.5, 1.0]}),
    "TableClassifier": lambda: ef.TableClassifier(["columns", "gem"]),
    "TableRegressor": lambda: ef.TableRegressor(["columns", "gem_ranks"]),
    "GEMClassifier": lambda: gem_classifier(n_directions=1, threshold=0, tol=1e-6),
    "GEMEnsemble": lambda: ef.GEMEnsemble(n_members=3),
    "GEMEnsemble of pipelines": lambda: ef.GEMEnsemble(
        make_pipeline(StandardScaler(), gem_classifier(n_directions=1)), n_members=3
    ),
    "ITML": lambda: ldg.ITML(2, max_iter=20),
}
STEPS = {
    "MultinomialLogit": lambda model: int(model.n_iter_[0]),
    "MulticlassSVM": lambda model: model.n_iter_,
    "CalibratedLeastSquares": lambda model: len(model.error_history_),
    "DiscriminativeGaussian": lambda model: len(model.objective_history_) - 1,
    "GEMClassifierCV": lambda model: len(model.results_),
    "TableClassifier": lambda model: int(sum(view.score < 0 for view in model.views_)),
    "TableRegressor": lambda model: sum(np.isfinite(view.score) for view in model.views_),
    "GEMClassifier": lambda model: int(model.logit_.n_iter_[0]),
    "GEMEnsemble": lambda model: len(model.members_),
    "GEMEnsemble of pipelines": lambda model: len(model.members_),
    "ITML": lambda model: model.n_iter_,
}
try:
    import sklearn.callback
except ImportError:
    sklearn = None

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Recorder:
    """Counts its calls, and asks to stop after `most` steps."""

    def __init__(self, most=10**9):
        self.most, self.begun, self.ended, self.calls = most, [], 0, []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "step":
            self.ended += 1
        return self.ended >= self.most

    def teardown(self, estimator, context):
        self.calls.append("teardown")


needs = pytest.mark.skipif(sklearn is None, reason="this scikit-learn has no callbacks")


@needs
@pytest.mark.parametrize("name", MODELS)
def test_callbacks_get_every_step_and_change_nothing(name, tmp_path):
    recorder = Recorder()
    model = MODELS[name]().set_callbacks(recorder).fit(X, Y)
    plain = MODELS[name]().fit(X, Y)
    method = "predict" if hasattr(model, "predict") else "transform"
    assert np.array_equal(getattr(model, method)(X), getattr(plain, method)(X))
    assert recorder.calls == ["setup", "teardown"]
    assert recorder.begun[0][0] == "fit"
    assert recorder.ended == len(recorder.begun) - 1
    assert abs(recorder.ended - STEPS[name](model)) <= 1  # the last step may only test convergence
    assert "_callback_fit_ctx" not in vars(model)
    ef.save(model.set_callbacks(), tmp_path / "model.efm")


@needs
@pytest.mark.parametrize("name", [name for name in MODELS if name != "GEMClassifierCV"])
def test_a_callback_stops_a_fit(name):
    recorder = Recorder(most=2)
    model = MODELS[name]().set_callbacks(recorder).fit(X, Y)
    assert recorder.ended == 2
    assert STEPS[name](model) <= 2


@needs
def test_an_error_ends_callbacks_and_leaves_the_model_unchanged():
    recorder = Recorder()
    model = ef.MultinomialLogit().fit(X, Y)
    before = model.coef_.copy()
    model.set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2, np.nan, X), Y)
    assert recorder.calls == ["setup", "teardown"]
    assert np.array_equal(model.coef_, before)


@needs
@pytest.mark.parametrize("shape", [(60, 4), (3000, 200)])  # the larger begins in float32
def test_a_fit_that_takes_all_its_steps_ends(shape):
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal(shape), rng.integers(0, 3, shape[0])
    model = ef.MultinomialLogit(penalty=0, l2=1e-6, tol=1e-14, max_iter=2)
    recorder = Recorder()
    model.set_callbacks(recorder).fit(rows, labels)
    assert model.stop_reason_ == "iterations"
    assert recorder.ended == 2
    pipeline = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), model))
    pipeline.fit(rows, labels)


@pytest.mark.long
@needs
def test_estimators_work_without_callbacks_of_scikit_learn():
    """Versions of scikit-learn before 1.9 have no module sklearn.callback."""
    code = (
        "import sys, sklearn.linear_model, sklearn.model_selection, sklearn.neighbors\n"
        "import sklearn.pipeline, sklearn.discriminant_analysis, sklearn.decomposition\n"
        "sys.modules['sklearn.callback'] = None; del sklearn.callback\n"
        "import numpy as np, eigenfeat as ef\n"
        "X = np.random.default_rng(0).standard_normal((40, 3)); y = np.arange(40) % 2\n"
        "model = ef.MulticlassSVM().fit(X, y); ef.GEMClassifier().fit(X, y)\n"
        "print(hasattr(model, 'set_callbacks'), model.predict(X).shape)\n"
    )
    ran = python(code)
    assert ran.stdout == "False (40,)\n", ran.stderr

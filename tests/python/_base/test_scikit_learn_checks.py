"""Every public estimator passes scikit-learn's checks, except those that a page declares."""

from pathlib import Path

import pytest
from every_estimator import ESTIMATORS, OF_SERIES
from flat_gem import gem_classifier, joint_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_estimator

import eigenfeat as ef
from eigenfeat import early, ldg

# Checks that estimators are known to fail; the page lists them.
SOLVED = "fits with weights and with repeated samples agree to the tolerance of the solver"
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": SOLVED for kind in ("dense", "sparse")
}
HELD_OUT = "samples are held out one by one, and copies fall on both sides of a split"
OF_LOSSES = "a weight is a factor of a sample's hinge loss, and the extractor takes no weights"
DECLARED = {
    "TableClassifier": dict.fromkeys(WEIGHTS, HELD_OUT),
    "GEMClassifier": WEIGHTS,
    "RandomizedGEM": dict.fromkeys(WEIGHTS, "the default ridge depends on the number of samples"),
    "GEMClassifierCV": dict.fromkeys(WEIGHTS, HELD_OUT),
    "TableRegressor": {"check_sample_weight_equivalence_on_dense_data": HELD_OUT},
    "JointGEMClassifier": dict.fromkeys(WEIGHTS, "steps take samples in a random order"),
    "GEMEnsemble": WEIGHTS,
    "MultinomialLogit": WEIGHTS,
    "CalibratedLeastSquares": WEIGHTS,
    "MulticlassSVM": WEIGHTS,
    "MaxMarginShift": dict.fromkeys(WEIGHTS, OF_LOSSES),
    "MaxMarginPCA": dict.fromkeys(WEIGHTS, OF_LOSSES),
    "LocalQDA": {
        "check_classifiers_train": "predict_log_proba is finite where predict_proba underflows to 0"
    },
}

PAGE = Path(__file__).parents[3] / "docs" / "api" / "checks.rst"
SVM = ef.MulticlassSVM(C=0.01, max_iter=20)
ONE, GRID = {"logit__penalty": [0.1]}, {"logit__penalty": [0.1, 1.0]}
LDA = early.ReliableClassifier(
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), correct=False
)
# Configurations that accept any number of columns, and fast configurations of slow estimators; the
# defaults of slow estimators are among OTHERS.
FREE = {
    "GEMClassifier": lambda: ef.GEMClassifier(),
    "GEMClassifierCV": lambda: ef.GEMClassifierCV(gem_classifier(n_directions=1), ONE, cv=2),
    "GEMEnsemble": lambda: ef.GEMEnsemble(gem_classifier(n_directions=1), n_members=1),
    "TableClassifier": lambda: ef.TableClassifier(["columns"]),
    "TableRegressor": lambda: ef.TableRegressor(["columns"]),
    "OrientedPCA": ef.rayleigh.OrientedPCA,
    "MaxMarginShift": lambda: ef.MaxMarginShift(PCA(1), sigma2=0.5, svm=SVM),
    "MaxMarginPCA": lambda: ef.maxmargin.MaxMarginPCA(1, sigma2=0.5, svm=SVM, max_iter=2),
    "ReliableClassifier": lambda: early.ReliableClassifier(GaussianNB(), correct=False),
    "MinimumCostClassifier": lambda: early.MinimumCostClassifier(
        GaussianNB(), n_times=2, n_folds=2
    ),
    "ReliableClassifierCV": lambda: early.ReliableClassifierCV({"LDA": LDA}, n_folds=2),
}


OTHERS = [
    ef.GEM(pairs="hypercube", expansion="with_input"),
    ef.GEM(constant=False, scale="columns", expansion="none", threshold=1.0),
    ef.GEM(denominator="covariance", pairs="one_vs_rest", powers=(2,)),
    gem_classifier(expansion="with_input", pairs="hypercube"),
    gem_classifier(expansion="polynomial", constant=False, scale="columns", threshold=None),
    ef.TableClassifier(),
    ef.GEMClassifierCV(grid=GRID),
    ef.TableRegressor(),
    ef.GEMClassifier(depth=2),
    joint_classifier(epochs=2),
    ef.GEMEnsemble(make_pipeline(MaxAbsScaler(), gem_classifier(n_directions=2)), n_members=2),
    ef.TableRegressor(["columns", "kernel_learned", "boosting"]),
    ef.gem.ClassComponents("vanishing", 3, center="all"),
    ef.MultinomialLogit(penalty=0, l2=1.0, fit_intercept=False),
    ef.CalibratedLeastSquares(n_iterations=0, ridge=2.0),
    ef.rayleigh.RayleighPCA(center=False, scale="columns"),
    ef.rayleigh.VanishingComponents(center=False, scale="columns"),
    ef.rayleigh.OrientedPCA(center=False, scale="columns"),
    ef.rayleigh.SlicedInverseRegression(target="continuous", n_slices=3),
    ldg.LDG("greedy", gamma=[0.3, 0.9], n_neighbors="cv", random_state=0, standardize=False),
    ldg.KernelLDG(1, n_neighbors=2, kernel="rbf", kernel_gamma=0.1),
    ldg.SparseLDG(1, n_neighbors=2, sparsity=1.5, deflation="orthonormal"),
    ldg.TransferLDG(1, n_neighbors=2, alpha=0.5, gamma=0.5),
    ldg.LocalFisher(pca_components="auto"),
    ldg.LocalFisher(ridge=0.1, n_neighbors=1),
    ef.MulticlassSVM(C=0.1, solver="frank_wolfe", fit_intercept=False, tol=0.05, max_iter=300),
    ef.MaxMarginShift(PCA(1), svm=SVM, scales=(0.1, 1), cv=2),
    ef.MaxMarginShift(PCA(1), sigma2=1.0, svm=SVM, moves="joint", max_iter=9),
    ef.maxmargin.MaxMarginPCA(1, svm=SVM, scales=(0.0, 1), cv=2),
    early.MixtureCompletion(shrinkage=0.2, ridge=1e-3),
    early.MinimumCostClassifier(n_times=2, n_folds=2),
    early.LocalQDA(n_neighbors=3, variance_floor=0.1),
    early.ReliableClassifier(early.LocalQDA(4), rule="box"),
    early.ReliableClassifier(LinearDiscriminantAnalysis(), rule=early.Sampled(128), held_out=2),
]


def declared_of(estimator):
    """The checks that this configuration is known to fail."""
    declared = dict(DECLARED.get(type(estimator).__name__, {}))
    if getattr(estimator, "solver", None) == "frank_wolfe":
        declared["check_class_weight_classifiers"] = "costs that differ by 1e7 take more epochs"
    if isinstance(getattr(estimator, "views", None), list):  # these views accept no sparse samples
        declared.pop("check_sample_weight_equivalence_on_sparse_data", None)
    return {} if getattr(estimator, "variance_floor", None) == 0.1 else declared


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in ESTIMATORS if "," not in n and n not in OF_SERIES])
def test_no_check_fails_that_is_not_declared(name):
    check(FREE.get(name, ESTIMATORS[name])())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", OTHERS, ids=lambda one: " ".join(repr(one).split()))
def test_no_check_of_other_parameters_fails(estimator):
    check(estimator)


def check(estimator):
    declared = declared_of(estimator)
    found = check_estimator(estimator, expected_failed_checks=declared, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert failed == {}
    assert {one["check_name"] for one in found if one["status"] == "xfail"} == set(declared)
    assert sum(one["status"] == "passed" for one in found) > 25


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is not there")
def test_the_page_declares_the_checks_that_fail():
    text = " ".join(PAGE.read_text().split())
    for name, checks in DECLARED.items():
        assert f"{name}`" in text
        for reason in checks.values():
            assert reason in text, (name, reason)

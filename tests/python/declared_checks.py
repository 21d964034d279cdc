"""Checks of scikit-learn that estimators are known to fail; `docs/api/checks.rst` lists them."""

from __future__ import annotations

SOLVED = "fits with weights and with repeated rows agree to the tolerance of the solver"
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": SOLVED for kind in ("dense", "sparse")
}
OF_LOSSES = "a weight is a factor of a row's hinge loss, and components are of rows without weights"
DECLARED = {
    "GEMClassifier": WEIGHTS,
    "GEMClassifierCV": dict.fromkeys(
        WEIGHTS, "rows are held out one by one, and repeated rows fall on both sides"
    ),
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

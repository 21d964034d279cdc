"""Methods before `fit` say so, and frames with the names of `fit` give no warning about names."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from every_estimator import ESTIMATORS, X, Y
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError

from eigenfeat import incomplete

NAMES = [name for name in ESTIMATORS if "," not in name]
FITS = ("fit", "partial_fit", "iterate_path", "shift", "load", "get_m", "get_p", "set_")


def methods(estimator):
    for name, function in inspect.getmembers(type(estimator), callable):
        if not name.startswith(("_", *FITS)):
            yield name, inspect.signature(function).parameters


@pytest.mark.parametrize("name", NAMES)
def test_methods_before_fit(name):
    estimator = ESTIMATORS[name]()
    for method, parameters in methods(estimator):
        given = {"y": Y, "n_series": 2, "path": "nowhere.ef"}
        needed = [p for p in parameters.values() if p.default is p.empty and p.kind <= 1][1:]
        arguments = {p.name: given.get(p.name, X) for p in needed}
        if "y" in parameters:
            arguments["y"] = Y
        with pytest.raises(NotFittedError):
            getattr(estimator, method)(**arguments)


def test_calibrate_before_fit():
    model = incomplete.ReliableClassifier(LinearDiscriminantAnalysis())
    with pytest.raises(NotFittedError):
        model.calibrate(np.zeros((20, 3)), np.arange(20) % 2, agreement=0.9)
    with pytest.raises(NotFittedError):
        model.calibrate(np.zeros((20, 3)), agreement=7)

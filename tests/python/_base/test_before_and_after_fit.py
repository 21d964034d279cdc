"""Methods before `fit` say so, and frames with the names of `fit` give no warning about names."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from every_estimator import ESTIMATORS, X, Y, good_rows, new
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import eigenfeat as ef
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


@pytest.mark.parametrize("name", NAMES)
def test_frames_give_no_warning_about_names(name):
    estimator, more = new(name)
    frame = pd.DataFrame(good_rows(name), columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(frame, Y, **more)
        for method, parameters in methods(estimator):
            if list(parameters)[1:2] != ["X"]:
                continue
            arguments = {"y": Y} if "y" in parameters else {}
            try:
                getattr(estimator, method)(frame, **arguments)
            except incomplete.NotCertifiedError:
                assert method == "calibrate"


def test_every_attribute_of_fitted_estimators_can_be_listed():
    for make in (ef.gem.ClassComponents, ef.GEM):
        assert "directions_" in dir(make().fit(X, Y))
    assert not hasattr(ef.gem.ClassComponents().fit(X, Y), "eigenvalue_bounds_")

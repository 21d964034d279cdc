"""Errors of every estimator name the column of a text cell, and the row without a label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from every_estimator import DOMAINS, ESTIMATORS, X, Y, new
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat import incomplete

NAMES = [name for name in ESTIMATORS if "," not in name]


@pytest.mark.parametrize("name", NAMES)
def test_fit_names_the_column(name):
    frame = pd.DataFrame(X, columns=list("abcd")).astype(object)
    frame.loc[3, "c"] = "green"
    estimator, more = new(name)
    if name == "GEMClassifierCV":
        estimator.set_params(estimator=ef.GEMClassifier(views="gem"))
    for part in (estimator, getattr(estimator, "estimator", None)):
        if hasattr(part, "categorical_features"):
            part.set_params(categorical_features=None)
    with pytest.raises(ValueError, match=r"text in column 'c' \('green' in row 3\)"):
        estimator.fit(frame, Y, **more)
    assert len(DOMAINS) == len(X)


def test_predictions_name_the_column():
    frame = pd.DataFrame(X, columns=list("abcd"))
    bad = frame.astype(object)
    bad.loc[5, "b"] = "red"
    for method, model in (
        ("decide", incomplete.ReliableClassifier(LinearDiscriminantAnalysis())),
        ("predict", incomplete.ReliableClassifier(LinearDiscriminantAnalysis())),
        ("transform", ef.MaxMarginShift(sigma2=0.5)),
        ("transform", ef.GEM()),
        ("predict_proba", ef.GEMClassifier(categorical_features=None)),
        ("predict", ef.GEMRegressor(categorical_features=None)),
    ):
        with pytest.raises(ValueError, match="text in column 'b'"):
            getattr(model.fit(frame, Y), method)(bad)


def test_one_class_is_too_few():
    model = incomplete.ReliableClassifier(LinearDiscriminantAnalysis())
    with pytest.raises(ValueError, match=r"y: expected samples of at least two classes, got 1"):
        model.fit(X, np.zeros(len(X), dtype=int))

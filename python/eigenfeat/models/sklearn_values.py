"""Estimators of scikit-learn's that files may hold: those that ours are given."""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    LabelBinarizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from eigenfeat._base.files.stored import Stored, fits, is_random

__all__ = ["SKLEARN", "build_neighbours", "pack_neighbours"]


def _sklearn(cls: type[BaseEstimator]) -> Stored:
    """Attributes as they are; another version of scikit-learn warns as it does for pickles."""
    plain = Stored(cls.__name__, cls)
    names = set(cls._get_param_names())

    def pack(value: Any) -> dict[str, Any]:
        attributes = {name: part for name, part in vars(value).items() if not is_random(part)}
        return {"version": sklearn.__version__, "attributes": attributes}

    def build(state: dict[str, Any]) -> Any:
        attributes, version = state["attributes"], state["version"]
        fits(type(attributes) is dict and type(version) is str, plain.name)
        for name in attributes:
            known = name in names or (type(name) is str and name.isidentifier())
            shadows = name not in names and hasattr(cls, name)
            fits(known and not shadows and not name.startswith("__"), f"{plain.name}.{name}")
        value = cls(**{name: part for name, part in attributes.items() if name in names})
        value.__setstate__({**vars(value), **attributes, "_sklearn_version": version})
        return value

    return Stored(cls.__name__, cls, pack=pack, build=build)


def pack_neighbours(value: KNeighborsClassifier) -> dict[str, Any]:
    """Its trees are no plain data: the rows are, from which they grow again."""
    state: dict[str, Any] = {"parameters": value.get_params(deep=False)}
    if hasattr(value, "_fit_X"):
        state |= {"rows": value._fit_X, "labels": value.classes_[value._y]}
        if hasattr(value, "feature_names_in_"):
            state["names"] = value.feature_names_in_
    return state


def build_neighbours(state: dict[str, Any]) -> KNeighborsClassifier:
    """Fit the rows again."""
    value = KNeighborsClassifier(**state["parameters"])
    if "rows" in state:
        value.fit(state["rows"], state["labels"])
        if "names" in state:
            fits(state["names"].shape == (value.n_features_in_,), "feature_names_in_")
            value.feature_names_in_ = state["names"]
    return value


PLAIN = (
    *(PCA, IncrementalPCA, TruncatedSVD, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis),
    *(FrozenEstimator, LinearRegression, LogisticRegression, LogisticRegressionCV, Ridge),
    *(RidgeClassifier, GaussianNB, NearestCentroid, Pipeline, LabelBinarizer, MaxAbsScaler),
    *(MinMaxScaler, Normalizer, RobustScaler, StandardScaler, LinearSVC, RBFSampler, Nystroem),
)

SKLEARN = tuple(map(_sklearn, PLAIN))

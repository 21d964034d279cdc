"""Models of scikit-learn and of other packages, each with columns in the form that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from eigenfeat.samples.categories import category_codes, distinct_values
from eigenfeat.samples.columns import TableColumns

__all__ = ["Peer", "peer_table", "peers"]

_MAX_SVM_SAMPLES = 5_000  # the time of an SVM grows with the square of the number of samples
_MAX_ONE_HOT = 50  # indicators of a column; rarer categories share an indicator
_MAX_NATIVE = 250  # categories of a column; a column of more categories becomes numeric codes
_CATEGORICAL = "category"


@dataclass(frozen=True, eq=False)
class Peer:
    """A model to compare with."""

    name: str
    model: Any = None  # None if the model is left out
    reason: str = ""  # why the model is left out
    texts: bool = False  # whether the model takes categories as text, missing ones as "missing"


def peer_table(X: Any) -> Any:
    """A data frame of numbers and categories of a table that may have text, dates and gaps.

    Columns without any value, and columns that `TableClassifier` leaves out, are left out; the
    others are named f0, f1, ... Text of which `TableClassifier` uses only the gaps becomes
    indicators.
    """
    import pandas as pd

    frame = X if hasattr(X, "iloc") else pd.DataFrame(np.asarray(X))
    encoder = TableColumns().fit(frame)
    encoded = encoder.transform(frame)
    columns: list[Any] = []
    for at in encoder.used:
        name = encoder.names_[at]
        if encoder.kinds_[at] == "category" and encoder.categories_[name].texts != [None]:
            codes, texts = category_codes(*distinct_values(frame[name].astype(object).to_numpy()))
            values = np.array([*texts, None], dtype=object)[codes]
            is_native = len(texts) <= _MAX_NATIVE
            columns.append(pd.Categorical(values) if is_native else codes.astype(float))
        else:
            columns += list(encoded[:, encoder.groups_ == at].T)
    table = pd.DataFrame({f"f{j}": column for j, column in enumerate(columns)})
    return table.dropna(axis="columns", how="all")


def peers(table: Any, *, regression: bool, random_state: int, n_threads: int | None) -> list[Peer]:
    """The models to compare with on a table of `peer_table`, with reasons if they are left out."""
    n_jobs = -1 if n_threads is None else n_threads
    seed = {"random_state": random_state}
    one_hot = _one_hot()
    if regression:
        forest, boosting = RandomForestRegressor, HistGradientBoostingRegressor
        constant = Peer("mean", DummyRegressor())
        linear = Peer("ridge", make_pipeline(one_hot, RidgeCV(np.logspace(-3, 3, 13))))
        scaled = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        svm = make_pipeline(one_hot, scaled)
    else:
        forest, boosting = RandomForestClassifier, HistGradientBoostingClassifier
        constant = Peer("class shares", DummyClassifier())
        logit = make_pipeline(one_hot, LogisticRegression(max_iter=2000))
        linear = Peer("logistic regression", logit)
        svm = make_pipeline(one_hot, CalibratedClassifierCV(SVC(), ensemble=False))
    result = [
        constant,
        linear,
        Peer("random forest", make_pipeline(one_hot, forest(n_jobs=n_jobs, **seed))),
        Peer("HistGradientBoosting", boosting(categorical_features="from_dtype", **seed)),
    ]
    if len(table) <= _MAX_SVM_SAMPLES:
        result.append(Peer("SVM", svm))
    else:
        result.append(Peer("SVM", reason=f"more than {_MAX_SVM_SAMPLES:,} samples"))
    coded = tuple(table.select_dtypes(include=_CATEGORICAL).columns)  # a tuple, as `clone` needs
    packages: dict[str, tuple[str, dict[str, Any]]] = {
        "LightGBM": ("LGBM", {"n_jobs": n_jobs, "verbosity": -1, **seed}),
        "CatBoost": (
            "CatBoost",
            {"thread_count": n_jobs, "random_seed": random_state, "cat_features": coded}
            | {"verbose": 0, "allow_writing_files": False},
        ),
        "XGBoost": (
            "XGB",
            {"n_jobs": n_jobs, "enable_categorical": True, "tree_method": "hist", **seed},
        ),
    }
    for name, (prefix, parameters) in packages.items():
        if find_spec(name.lower()) is None:
            result.append(Peer(name, reason="not installed"))
            continue
        kind = f"{prefix}{'Regressor' if regression else 'Classifier'}"
        model = getattr(import_module(name.lower()), kind)(**parameters)
        result.append(Peer(name, model, texts=name == "CatBoost"))
    return result


def _one_hot() -> Any:
    """Transformer that imputes and scales numbers, and encodes categories as indicators."""
    medians = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    indicators = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=_MAX_ONE_HOT, sparse_output=False
    )
    return make_column_transformer(
        (make_pipeline(medians, StandardScaler()), make_column_selector(dtype_include=np.number)),
        (indicators, make_column_selector(dtype_include=_CATEGORICAL)),
    )

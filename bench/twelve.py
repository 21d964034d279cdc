"""`GEMClassifier()` beside trees and others on twelve tables, everything at its gem.

    python bench/twelve.py --data DIR [--csv FILE] [--threads 1] [--prefix "chrt -f 10"]

Prints test errors, seconds of fit and predict, and mean ranks. The tables are all at hand with 350
rows or more, no missing entries and more rows than columns, but for those that the papers use: ten
files of DIR, as `bench.papers` takes them, and two that scikit-learn brings. Official splits where
there are such, else random halves, stratified, for three seeds. Columns are standardised for the
SVM and for logistic regression. Every fit runs in a process of its own, behind `--prefix`; FILE
keeps what is finished, and a run goes on where the last one ended. LightGBM comes with
``pip install ".[bench]"``; without it, it is left out, and ranks are among the others.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.papers import choosing, gem
from bench.papers.protocol import Context, Data, Rows

FIELDS = ("set", "method", "seed", "rows", "columns", "classes", "error", "fit", "predict")
SEEDS = (0, 1, 2)


def _bundled(name, context):
    """Half of a set of scikit-learn's for training."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    half = {"test_size": 0.5, "stratify": y, "random_state": context.seed}
    X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, **half)
    return Data(Rows(X, y), lambda: Rows(X_test, y_test))


# Name, file (none: scikit-learn's), what reads it, and whether its split is official.
SETS = {
    "Isolet": ("uci_isolet.npz", gem.load_official, True),
    "OCR letters": ("ocr_letters.npz", gem.load_ocr, True),
    "OpenCV digits": ("opencv_digits.npz", gem.load_opencv, False),
    "digits": ("", partial(_bundled, "digits"), False),
    "Satimage": ("uci_satimage.npz", gem.load_official, True),
    "twonorm": ("uci_twonorm_standardized.npz", gem.load_half, False),
    "ringnorm": ("uci_ringnorm_standardized.npz", gem.load_half, False),
    "Covertype": ("covtype_subset.npz", gem.load_cover, False),
    "ionosphere": ("uci_ionosphere.npz", gem.load_half, False),
    "breast cancer": ("", partial(_bundled, "breast_cancer"), False),
    "Pima": ("uci_pima.npz", gem.load_half, False),
    "German credit": ("uci_german_numeric.npz", gem.load_half, False),
}
METHODS = {
    "GEM": choosing.gem,
    "logistic regression": choosing.standardised_logistic,
    "SVM, Gaussian kernel": choosing.standardised_svc,
    "ExtraTrees": partial(choosing.extra_trees, n_jobs=None),
    "HistGradientBoosting": choosing.boosting,
    "LightGBM": choosing.lightgbm,
}


def run(folder, name, method, seed):
    """One fit, as a line of the file."""
    file, load, _ = SETS[name]
    context = Context(seed=seed)
    data = load(folder / file, context) if file else load(context)
    test, model = data.test(), METHODS[method](context)
    started = time.perf_counter()
    model.fit(data.train.X, data.train.y)
    fitted = time.perf_counter()
    wrong = model.predict(test.X) != test.y
    return {
        "set": name,
        "method": method,
        "seed": seed,
        "rows": len(data.train),
        "columns": data.train.X.shape[1],
        "classes": len(np.unique(data.train.y)),
        "error": round(100 * float(np.mean(wrong)), 4),
        "fit": round(fitted - started, 4),
        "predict": round(time.perf_counter() - fitted, 4),
    }


def run_all(options):
    """Run in processes what the file does not have, and return all lines."""
    lines = []
    if options.csv.exists():
        with options.csv.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    done = {(line["set"], line["method"], int(line["seed"])) for line in lines}
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, str(options.threads))
    here = [sys.executable, __file__, "--data", str(options.data), "--cell"]
    cells = [
        (name, method, seed)
        for name, (_, _, official) in SETS.items()
        for seed in (SEEDS[:1] if official else SEEDS)
        for method in METHODS
    ]
    for name, method, seed in cells:
        if (name, method, seed) in done or method in options.without:
            continue
        command = [*options.prefix.split(), *here, name, method, str(seed)]
        out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
        lines.append(json.loads(out.splitlines()[-1]))
        print(*lines[-1].values(), sep=", ", file=sys.stderr, flush=True)
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(lines)
    return lines


def tables(lines):
    """Errors and ranks, then seconds, as Markdown."""
    from scipy.stats import rankdata

    def of(field, name, method):
        found = [line for line in lines if (line["set"], line["method"]) == (name, method)]
        if isinstance(field, str):
            return [float(line[field]) for line in found]
        return [sum(float(line[one]) for one in field) for line in found]

    methods = [m for m in METHODS if any(line["method"] == m for line in lines)]
    names = [n for n in SETS if all(of("error", n, m) for m in methods)]
    errors = np.array([[np.mean(of("error", n, m)) for m in methods] for n in names])
    seconds = np.array([[np.mean(of(("fit", "predict"), n, m)) for m in methods] for n in names])
    sizes = [
        "{rows} x {columns}, {classes} classes".format(
            **next(line for line in lines if line["set"] == name)
        )
        for name in names
    ]
    ranks = rankdata(errors.round(3), axis=1)
    head = f"| | {' | '.join(methods)} |\n|---|{'---:|' * len(methods)}"
    yield head
    for name, size, row in zip(names, sizes, errors, strict=True):
        cells = []
        for method, error in zip(methods, row, strict=True):
            spread = np.std(of("error", name, method))
            text = f"{error:.1f}" if SETS[name][2] else f"{error:.1f} ± {spread:.1f}"
            cells.append(f"**{text}**" if error <= row.min() + 5e-4 else text)
        yield f"| {name}, {size} | {' | '.join(cells)} |"
    yield f"| mean rank | {' | '.join(f'{rank:.2f}' for rank in ranks.mean(axis=0))} |"
    yield ""
    yield head
    for name, row in zip(names, seconds, strict=True):
        yield f"| {name} | {' | '.join(f'{value:.2g}' for value in row)} |"
    total = seconds.sum(axis=0)
    yield f"| sum | {' | '.join(f'{value:.0f}' for value in total)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--csv", type=Path, default=Path("twelve.csv"), metavar="FILE")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--prefix", default="", metavar="COMMAND", help="put before every fit")
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        name, method, seed = options.cell
        print(json.dumps(run(options.data, name, method, int(seed))))
        return
    options.without = []
    try:
        choosing.lightgbm(Context())
    except ImportError as error:
        print(error, file=sys.stderr)
        options.without = ["LightGBM"]
    print(*tables(run_all(options)), sep="\n")


if __name__ == "__main__":
    main()

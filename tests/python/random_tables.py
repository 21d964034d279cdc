"""Random small tables as users have them, and estimators by their defaults.

`random_table` draws indicators, rare categories, constants (everywhere, within a class, or up to
rounding), copies, sums, heavy tails, offsets, large and small units, repeated samples, rare
classes, weights, and types of numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature

import numpy as np
from every_estimator import ESTIMATORS, outputs, rows_for
from sklearn.exceptions import ConvergenceWarning

import eigenfeat as ef
from eigenfeat import early, gem


@dataclass(frozen=True)
class Table:
    """Samples (n, d), labels (n,), a continuous target (n,), and weights (n,) or None."""

    X: np.ndarray
    y: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None
    kinds: tuple[str, ...]


def _labels(random: np.random.Generator, n: int) -> np.ndarray:
    k = int(random.choice([2, 2, 2, 3, 3, 4, 6]))
    share = random.dirichlet(np.full(k, random.choice([0.3, 1.0, 20.0])))
    codes = np.concatenate([np.arange(min(k, n)), random.choice(k, size=max(n - k, 0), p=share)])
    return random.permutation(codes[:n])


def _column(
    kind: str, random: np.random.Generator, y: np.ndarray, others: list[np.ndarray]
) -> np.ndarray:
    n = len(y)
    normal = random.standard_normal(n)
    shift = random.standard_normal(y.max() + 1)[y]
    if kind == "normal":
        return normal
    if kind == "shifted":
        return normal + 1.5 * shift
    if kind == "cauchy":
        return random.standard_cauchy(n) + shift
    if kind == "lognormal":
        return np.exp(3 * normal + shift)
    if kind == "indicator":
        return (random.random(n) < 0.3 * random.random() + 0.4 * (shift > 0)) * 1.0
    if kind == "rare":
        return (np.arange(n) == random.integers(n)) * 1.0
    if kind == "constant":
        return np.full(n, random.choice([0.0, 0.1, -3.0, 1e6]))
    if kind == "residue":
        return random.choice([0.0, 0.1]) + 1e-17 * random.integers(-2, 3, n)
    if kind == "constant in a class":
        return np.where(y == random.integers(y.max() + 1), 2.0, normal)
    if kind == "class":
        return shift
    if kind == "counts":
        return random.poisson(np.exp(0.5 * shift)) * 1.0
    if kind == "offset":
        return 1e6 + normal
    if kind == "large":
        return 1e9 * (normal + shift)
    if kind == "small":
        return 1e-9 * (normal + shift)
    if not others:
        return normal
    other = others[int(random.integers(len(others)))]
    if kind == "copy":
        return other.copy()
    if kind == "almost a copy":
        return other * (1 + 1e-9 * normal)
    assert kind == "sum"
    return np.sum(others, axis=0)


KINDS = ["normal", "shifted", "shifted", "shifted", "cauchy", "lognormal", "indicator", "indicator"]
KINDS += ["rare", "constant", "residue", "class", "constant in a class", "counts", "offset"]
KINDS += ["large", "small", "copy", "almost a copy", "sum"]
DTYPES = ("float64",) * 5 + ("float32", "int64", "uint8", "bool", "object")


def random_table(seed: int, n_samples: int | None = None) -> Table:
    """A table of 1 to 8 columns and `n_samples` samples, 8 to 80 if None."""
    random = np.random.default_rng([20, seed])
    n, d = int(random.integers(8, 81)), int(random.integers(1, 9))
    n = n if n_samples is None else n_samples
    y = _labels(random, n)
    kinds, columns = [], []
    for _ in range(d):
        kind = str(random.choice(KINDS))
        columns.append(_column(kind, random, y, columns))
        kinds.append(kind)
    X = np.column_stack(columns)
    if random.random() < 0.2:  # repeated samples
        again = random.integers(0, n, n // 3)
        X[: len(again)], y[: len(again)] = X[again], y[again]
        if len(np.unique(y)) < 2:
            y[:2] = [0, 1]
    dtype = str(random.choice(DTYPES))
    if dtype in ("int64", "uint8"):
        X = np.clip(
            np.round(3 * X), 0 if dtype == "uint8" else -1e15, 255 if dtype == "uint8" else 1e15
        )
    elif dtype == "bool":
        X = np.median(X, axis=0) < X
    elif dtype == "float32" and (np.abs(X.mean(axis=0)) > 1e4 * X.std(axis=0)).any():
        dtype = "float64"  # float32 would keep less than three digits of the variation
    X = X.astype(dtype)
    target = y + random.standard_cauchy(n) * random.choice([0, 0.1])
    labels: np.ndarray = y
    if random.random() < 0.3:
        labels = np.array([f"class {code}" for code in y])
    weight = None
    how = random.random()
    if how < 0.2:
        weight = random.integers(1, 4, n).astype(float)
    elif how < 0.3:
        weight = np.exp(2 * random.standard_normal(n))
    elif how < 0.4:
        weight = random.integers(0, 2, n).astype(float)
        for code in np.unique(y):
            weight[np.flatnonzero(y == code)[0]] = 1.0
    return Table(X, labels, target, weight, (dtype, f"{n}x{d}", *kinds))


def table_for(name: str, seed: int, n_samples: int | None = None) -> Table:
    """A random table whose labels and weights an estimator accepts.

    `EpochClassifier` needs two samples of each class: the only sample of a class gets the most
    frequent label. `RandomizedCCA` needs numbers: it gets indicators of the classes.
    """
    table = random_table(seed, n_samples)
    classes, codes = np.unique(table.y, return_inverse=True)
    if name == "RandomizedCCA":
        return replace(table, y=np.eye(len(classes))[codes])
    if name != "EpochClassifier":
        return table
    counts = np.bincount(codes)
    codes = np.where(counts[codes] > 1, codes, counts.argmax())
    weight = table.weight
    if weight is not None:
        weight = weight.copy()
        for code in np.unique(codes):
            own = np.flatnonzero(codes == code)[:2]
            weight[own] = np.maximum(weight[own], 1.0)
    return replace(table, y=classes[codes], weight=weight)


def projector(features):
    """Projector onto the span of centred features, whatever their signs and order."""
    centred = features.astype(float) - features.mean(axis=0)
    size = np.abs(centred).max(initial=0.0)
    if not size > 0:
        return np.zeros((len(features), len(features)))
    left, values, _ = np.linalg.svd(centred / size, full_matrices=False)
    kept = left[:, values > 1e-3 * values[0]]
    return kept @ kept.T


def positive(features):
    """Features divided by their largest magnitude, with signs that do not depend on the solver."""
    features = features.astype(float)
    top = features[np.abs(features).argmax(axis=0), np.arange(features.shape[1])]
    return features * np.where(top < 0, -1, 1) / max(np.abs(features).max(initial=0.0), 1e-300)


def difference(known, other, name):
    """Distance of two results of an estimator, 0 to about 1."""
    if known is None or other is None:
        return float(known is not other)
    if "unsettled" in known or "unsettled" in other:
        return 0.0
    assert known.keys() == other.keys()
    if "predict_proba" in known:
        return float(np.abs(known["predict_proba"] - other["predict_proba"]).max())
    if "transform" in known:
        one, two = known["transform"], other["transform"]
        if not one.size and not two.size:
            return 0.0
        gap = np.inf
        if one.shape == two.shape:
            gap = float(np.abs(positive(one) - positive(two)).max())
        return min(gap, float(np.abs(projector(one) - projector(two)).max()))
    if "decision_function" in known:
        one, two = known["decision_function"], other["decision_function"]
        least = 1.0 if name == "MulticlassSVM" else 1e-300  # the margin of the SVM is 1
        return float(np.abs(one - two).max() / max(np.abs(one).max(), least))
    one, two = known["predict"], other["predict"]
    if name == "TableRegressor":
        return float(np.abs(one - two).max() / max(np.abs(one).max(), 1e-300))
    return float((one != two).mean())


LEFT_OUT = {gem.RandomizedGEM, gem.JointGEMClassifier, gem.GEMPatches, ef.TableClassifier}
CLASSES = [type(make()) for make in ESTIMATORS.values()]
DEFAULTS: dict[str, Callable[[], object]] = {
    kind.__name__: partial(kind, random_state=0)
    if "random_state" in signature(kind).parameters
    else kind
    for kind in CLASSES
    if kind not in LEFT_OUT
}
DEFAULTS |= {
    "TableClassifier, gem": partial(ef.TableClassifier, views="gem"),
    "ReliableClassifier": lambda: early.ReliableClassifier(ef.FisherLDA(), conditional=None),
}
OF_DOMAINS = {"TransferLDG"}
# Warnings that ask for more samples, more steps, other parameters, or channels with a signal.
USEFUL = (
    r"n_neighbors: expected more than|X: constant channels are left out|classifier: expected"
    r"|n_samples: expected|temperature|LDG: rows of|correct: expected at least"
)
# Parameters of estimators whose default tolerance would show in the comparisons.
TO_THE_END = {
    "GEMClassifier": {"logit": ef.MultinomialLogit(tol=1e-6, temperature="auto", solver="auto")},
    "MulticlassSVM": {"tol": 1e-8, "max_iter": 10_000},
}


def results(name, table, X=None, seen=None, weight=None, y=None, target=None, **parameters):
    """Outputs of an estimator with its defaults, by method; None if it refuses the table.

    Outputs of an estimator that warns that it has not converged are marked as "unsettled", and are
    not compared with those of related tables.
    """
    model = DEFAULTS[name]().set_params(**parameters)
    X = table.X if X is None else X
    y, target = (table.y if y is None else y), (table.target if target is None else target)
    rows = rows_for(name, X)
    seen = rows if seen is None else rows_for(name, seen)
    given = {"sample_domain": np.where(np.arange(len(y)) % 2, 1, -1)} if name in OF_DOMAINS else {}
    if weight is not None:
        given["sample_weight"] = weight
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.filterwarnings("ignore", USEFUL, UserWarning)
        warnings.filterwarnings("ignore", USEFUL, RuntimeWarning)
        try:
            model.fit(rows, target if name == "TableRegressor" else y, **given)
            out = outputs(model, seen)
            if hasattr(model, "predict_early"):
                out["time"] = model.predict_early(seen).time
        except ValueError as error:
            if "\n" in str(error) or len(str(error)) > 250:
                raise
            return None
    return out if not warned else out | {"unsettled": np.ones(1)}

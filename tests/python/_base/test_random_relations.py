"""What random tables have in common with other forms of themselves.

Each relation draws a table, gives an estimator two forms of it, and returns the faults found:
samples in another order, files mapped into memory, parallel folds, and float32. `.ci/long` draws
hundreds of tables for each.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from random_tables import DEFAULTS, OF_EPOCHS, difference, random_table, results
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import has_fit_parameter

import eigenfeat as ef

WEIGHTED = [name for name, make in DEFAULTS.items() if has_fit_parameter(make(), "sample_weight")]
# Their scales, neighbours and regularisation are given, so that nothing is chosen by folds.
ORDERED = {
    "GEM": {"scale": "columns"},
    "FisherLDA": {},
    "QuadraticDiscriminant": {},
    "RayleighPCA": {},
    "LDG": {"n_components": 1, "gamma": 1.0, "n_neighbors": 3},
}
FOLDED = ["FisherLDA", "QuadraticDiscriminant", "MultinomialLogit", "CalibratedLeastSquares"]
FOLDED += ["TableClassifier, gem", "MulticlassSVM", "GEMClassifier", "TableRegressor"]


def chosen(names, seed):
    return list(names)[seed % len(names)]


def gap(known, other, name, tolerance, what):
    """One line if the results differ by more than a tolerance, else nothing."""
    found = difference(known, other, name)
    return [] if found <= tolerance else [f"{name}, {what}: differs by {found:.2g}"]


def order_faults(seed):
    name, table = chosen(ORDERED, seed), random_table(seed)
    if name == "LDG" and table.kinds[0] in ("bool", "uint8", "int64"):
        return []  # the order chooses among neighbours at one distance
    order = np.random.default_rng(seed).permutation(len(table.y))
    weight = table.weight if name in WEIGHTED else None
    moved = None if weight is None else weight[order]
    known = results(name, table, weight=weight, **ORDERED[name])
    other = results(name, table, table.X[order], table.X, moved, table.y[order], **ORDERED[name])
    return gap(known, other, name, 1e-3, "order of samples")


def map_faults(seed):
    names = [name for name in DEFAULTS if name not in OF_EPOCHS | {"MaxMarginPCA", "ITML"}]
    name, table = chosen(names, seed), random_table(seed)
    X = table.X.astype(float) if table.X.dtype == object else table.X
    known = results(name, table, X, X)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        forms = {"mmap_mode": np.load(Path(folder) / "X.npy", mmap_mode="r")}
        forms["memmap"] = np.memmap(Path(folder) / "X", X.dtype, "w+", shape=X.shape, order="F")
        forms["memmap"][:] = X
        other = {form: results(name, table, Z, Z) for form, Z in forms.items()}
        del forms
    faults = []
    for form, found in other.items():
        if found is None or known is None:
            same = found is known
        else:
            same = all(np.array_equal(found[key], known[key]) for key in known)
        faults += [] if same else [f"{name}, {form}: {difference(known, found, name):.2g}"]
    return faults


def fold_faults(seed):
    """Two workers, which get memory maps, predict as one."""
    name, table = chosen(FOLDED, seed), random_table(seed, 60)
    y = table.target if name == "TableRegressor" else table.y
    y = y if name == "TableRegressor" else (np.arange(60) % 3 + (y == y[0])) % 3
    X, found = table.X, []
    for n_jobs in (1, 2):
        try:
            with warnings.catch_warnings(), joblib.parallel_config("loky", max_nbytes=100):
                warnings.simplefilter("ignore")
                found.append(cross_val_predict(DEFAULTS[name](), X, y, cv=3, n_jobs=n_jobs))
        except ValueError as error:
            found.append(np.array(str(error)))
    return [] if np.array_equal(*found) else [f"{name}: workers predict otherwise"]


def float32_faults(seed):
    table = random_table(seed)
    X, exact = table.X.astype(float), {"offset", "almost a copy", "residue"}
    if exact & set(table.kinds) or not np.ptp(X, axis=0).any():
        return []
    views = "auto" if seed % 8 == 0 else ["columns", "gem"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ef.TableClassifier(views=views).fit(X, table.y, sample_weight=table.weight)
        gaps = model.predict_proba(X) - model.predict_proba(X.astype(np.float32))
    far = np.abs(gaps).max()
    return [] if far <= 1e-3 else [f"TableClassifier, float32: differs by {far:.2g}"]


RELATIONS = {
    "order": order_faults,
    "maps": map_faults,
    "folds": fold_faults,
    "float32": float32_faults,
}


@pytest.mark.parametrize("relation", [one for one in RELATIONS if one != "folds"])  # slow workers
def test_some_random_tables(relation):
    for seed in (1, 2):
        assert RELATIONS[relation](seed) == []


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(4))
@pytest.mark.parametrize("relation", RELATIONS)
def test_hundreds_of_random_tables(relation, hundred):
    failed = []
    for seed in range(100 * hundred, 100 * hundred + 100):
        try:
            failed += [f"{seed}: {fault}" for fault in RELATIONS[relation](seed)]
        except Exception as error:  # all of them are reported
            failed.append(f"{seed}: {type(error).__name__}: {str(error)[:200]}")
    assert not failed, "\n".join(failed)

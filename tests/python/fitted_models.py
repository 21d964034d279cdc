"""A small fitted model of every public class, and its predictions.

`MODELS` holds functions by name; each returns a fitted model. `outputs` returns the results of a
model, which must be equal after a round trip through a file.
"""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import scipy.sparse as sp
from every_estimator import ESTIMATORS, new, rows_for
from flat_gem import gem_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import eigenfeat as ef
from eigenfeat import early, ldg

NAMES = np.array(["birch", "elm", "oak"])


def rows(n=90, seed=7):
    """Rows of three classes that differ in scale, and their labels."""
    rng = np.random.RandomState(seed)  # equal numbers in all versions of NumPy, unlike a Generator
    scale = np.array([[3, 1, 0.5, 2], [1, 3, 1, 0.5], [0.5, 1, 3, 1]])[np.arange(n) % 3]
    return rng.standard_normal((n, 4)) * scale + 1.5, NAMES[np.arange(n) % 3]


X, Y = rows()
DOMAINS = np.where(np.arange(90) % 2, 1, -1)
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])


def _reliable(classifier, completion=None, **options):
    return early.ReliableClassifier(classifier, completion, **options).fit(X, Y)


def _calibrated():
    model = _reliable(LinearDiscriminantAnalysis(), reliability=0.9)
    return model.calibrate(X, Y)


def _partial_gem():
    return ef.GEM(n_directions=2, random_state=np.random.RandomState(3)).partial_fit(
        X[::2], Y[::2], classes=NAMES
    )


def _wide():
    return sp.csr_matrix(np.where(X > 1.0, X, 0.0))


def _fitted(name):
    estimator, more = new(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fits have few steps
        return estimator.fit(rows_for(name, X), Y, **({"sample_domain": DOMAINS} if more else {}))


AS_THEY_ARE = [name for name in ESTIMATORS if "," not in name] + ["MaxMarginShift, joint"]
MODELS = {name: partial(_fitted, name) for name in AS_THEY_ARE} | {
    "moments": lambda: ef.ClassMoments().update(X, Y, np.arange(90) / 45),
    "moments of few": lambda: ef.ClassMoments(classes=[3, 1, 2], dtype="f4").update(X[:2], [1, 3]),
    "pencils": lambda: ef.generalized_eigh(np.diag([3.0, 1.0]), np.eye(2)),
    "directions": lambda: ef.pencils.pair_directions(
        ef.ClassMoments().update(X, Y), n_directions=2
    ),
    "contrasts": lambda: ef.pencils.one_vs_rest(["a", "b", "c"]),
    "GEM": lambda: ef.GEM(n_directions=2).fit(FRAME, Y),
    "RandomizedGEM": lambda: ef.gem.RandomizedGEM(n_directions=2).fit(_wide(), Y),
    "GEM, partly fitted": _partial_gem,
    "GEM, groups": lambda: ef.GEM(n_directions=2, pairs=ef.pencils.one_vs_rest(NAMES.tolist())).fit(
        X, Y
    ),
    "ClassComponents": lambda: ef.gem.ClassComponents("vanishing", 2).fit(FRAME, Y),
    "GEMClassifier": lambda: gem_classifier(n_directions=2).fit(FRAME, Y),
    "GEMClassifier, deep": lambda: gem_classifier(n_directions=2, hidden_directions=2, depth=2).fit(
        X, np.arange(90) % 3 - 1
    ),
    "GEMEnsemble": lambda: ef.GEMEnsemble(gem_classifier(n_directions=1), n_members=2).fit(X, Y),
    "GEMPatches": lambda: ef.gem.GEMPatches(patch_size=2, pool=2).fit(X, Y),
    "TableRegressor": lambda: ef.TableRegressor().fit(FRAME, X[:, 0] ** 2 + X[:, 1]),
    "TableClassifier": lambda: ef.TableClassifier(["columns", "gem"]).fit(FRAME, Y),
    "TableClassifier, gem": lambda: ef.TableClassifier("gem").fit(FRAME, Y),
    "MultinomialLogit, two": lambda: ef.MultinomialLogit(max_iter=500).fit(
        X.astype(np.float32), Y == "elm"
    ),
    "SlicedInverseRegression": lambda: ef.rayleigh.SlicedInverseRegression(n_slices=4).fit(
        X, X[:, 0] + 0.1 * X[:, 1]
    ),
    "SpatialFilters, bands": lambda: ef.SpatialFilters(
        1, align="session", bands=[(8, 12), (16, 20)], sfreq=50
    ).fit(np.tile(X.reshape(15, 4, 6), 6), Y[:15], groups=np.arange(15) // 5),
    "TangentSpace, sessions": lambda: ef.TangentSpace(align="session").fit(
        X.reshape(15, 4, 6), groups=np.arange(15) // 5
    ),
    "EpochClassifier": lambda: ef.EpochClassifier(50.0, frequencies=[10.0]).fit(
        np.tile(X.reshape(15, 4, 6), 6), np.arange(15) % 2, groups=np.arange(15) // 5
    ),
    "VanishingComponents": lambda: ef.rayleigh.VanishingComponents().fit(sp.csr_matrix(X)),
    "LDG": lambda: ef.LDG().fit(X, Y),
    "KernelLDG": lambda: ldg.KernelLDG(kernel="rbf", n_components=2, gamma=1.0, n_neighbors=8).fit(
        X[:30], Y[:30]
    ),
    "MulticlassSVM, sparse": lambda: ef.MulticlassSVM().fit(sp.csr_array(X), Y),
    "RandomizedCCA": lambda: ef.embedding.RandomizedCCA(2).fit(X, X[:, :2] ** 2),
    "ReliableClassifier, LDA": _calibrated,
    "ReliableClassifier, QDA": lambda: _reliable(
        QuadraticDiscriminantAnalysis(), early.MixtureCompletion()
    ),
    "ReliableClassifier, SVC": lambda: _reliable(LinearSVC(), rule="chebyshev"),
    "ReliableClassifier, logit": lambda: _reliable(LogisticRegression(), rule="box"),
    "ReliableClassifier, local": lambda: _reliable(early.LocalQDA()),
    "ReliableClassifier, prefixes": lambda: _reliable(
        LinearDiscriminantAnalysis(), rule="prefixes", reliability=0.5
    ),
    "ReliableClassifier, features": lambda: _reliable(
        ef.MultinomialLogit(), rule=early.Sampled(128), features=PCA(2)
    ),
    "ReliableClassifier, sampled": lambda: _reliable(ef.GEMClassifier(), rule=early.Sampled(128)),
    "Pipeline": lambda: make_pipeline(
        ef.GEM(n_directions=2), StandardScaler(), LogisticRegression()
    ).fit(X, Y),
}

METHODS = ("predict", "predict_proba", "decision_function", "transform")


def outputs(model):
    """Arrays by name: all results of the model for a few rows."""
    queries = X[40:60] + 0.1
    if hasattr(model, "feature_names_in_"):
        queries = pd.DataFrame(queries, columns=FRAME.columns)
    if isinstance(model, ef.EpochClassifier):
        queries = np.tile(queries.reshape(5, 4, 4), 9)
    if isinstance(model, (ef.SpatialFilters, ef.TangentSpace)):
        queries = queries.reshape(5, 4, 4)
        if getattr(model, "bands", None) is not None:
            queries = np.tile(queries, 10)
    given = {}
    if getattr(model, "alignment_", None) is not None:
        given["groups"] = np.zeros(len(queries), dtype=np.int64)  # a session of fit
    found = {
        name: np.asarray(getattr(model, name)(queries, **given))
        for name in METHODS
        if hasattr(model, name)
    }
    holes = np.where(np.arange(80).reshape(20, 4) % 3 == 0, np.nan, X[40:60])
    if hasattr(model, "condition"):
        known = model.condition(holes)
        found |= {"mean": known.mean, "covariance": known.covariance}
    if hasattr(model, "decide"):
        decisions = model.decide(holes)
        found |= {"decided": decisions.labels, "reliability": decisions.reliability}
    if hasattr(model, "predict_early"):
        early = model.predict_early(X[40:60])
        found |= {"early": early.label, "time": early.time}
    if isinstance(model, ef.ClassMoments):
        for c in model.classes_.tolist():
            found[f"weight {c}"] = np.asarray(model.weight(c))
            if model.weight(c):
                found |= {f"mean {c}": model.mean(c), f"covariance {c}": model.covariance(c)}
    if isinstance(model, (ef.pencils.PencilResult, ef.pencils.PairDirections)):
        found |= {name: np.asarray(part) for name, part in vars(model).items() if part is not None}
    if isinstance(model, ef.pencils.Contrasts):
        found |= {"names": model.names, "above": np.array([c.dense(3) for c in model.above])}
    return found

"""Every estimator's fit, and some functions, in four sizes: what bench/limits.py runs.

"small" takes milliseconds, "middle" a few seconds at most, "large" and "wide" (columns as many as
rows and more) some seconds, if they are not interrupted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat import incomplete, ldg

__all__ = ["SIZES", "fits", "rows"]

# Rows and columns.
SIZES = {"small": (200, 12), "middle": (1500, 150), "large": (20_000, 400), "wide": (2000, 2500)}
Calls = dict[str, Callable[[], object]]


def rows(n: int, d: int, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes that differ in mean and covariance."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    X = rng.standard_normal((n, d)) * (0.5 + rng.random((k, d)))[y]
    return X + 0.2 * rng.standard_normal((k, d))[y], y


def fits(size: str, only: str | None = None) -> Calls:
    """Calls by name; what takes long to make is as large as asked only for the name `only`."""
    n, d = SIZES[size]
    X, y = rows(n, d, 3 if size == "small" else 10)
    return {
        **_functions(size, X, y, only),
        **_directions(size, X, y, only),
        **_predictors(size, X, y),
        **_relatives(size, X, y),
        **_early(size, X, y),
    }


def _functions(size: str, X: np.ndarray, y: np.ndarray, only: str | None) -> Calls:
    n, d = X.shape
    pencil = _pencil(1500 if size == "large" and only == "generalized_eigh" else min(d, 2500))
    many = 4 * n if size == "large" and only == "certified_sign" else 100
    quadratics = _quadratics(many, min(d, 40))
    return {
        "ClassMoments": lambda: ef.ClassMoments().update(*_many(size, X, y)),
        "pair_directions": lambda: ef.pair_directions(
            ef.ClassMoments().update(X, y), ridge=0.5, solver="auto" if size == "small" else "full"
        ),
        "generalized_eigh": lambda: ef.generalized_eigh(*pencil, solver="full"),
        "certified_sign": lambda: ef.certified_sign(*quadratics),
    }


def _many(size: str, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """More of them where few are done before the interrupt comes."""
    if size != "large":
        return X, y
    return np.tile(X, (2, 3)), np.tile(y, 2)


def _directions(size: str, X: np.ndarray, y: np.ndarray, only: str | None) -> Calls:
    columns = min(X.shape[1], 40)
    names = ("FisherLDA", "RayleighPCA", "OrientedPCA", "SlicedInverseRegression")
    many = _many(size, X, y) if only in names else (X, y)
    channels = 4 if size == "small" else 30
    epochs = X[:, : X.shape[1] // channels * channels].reshape(len(X), channels, -1)
    return {
        "GEM": lambda: ef.GEM().fit(X, y),
        "ClassComponents": lambda: ef.ClassComponents().fit(X, y),
        "SpatialFilters": lambda: ef.SpatialFilters().fit(epochs, y % 2),
        "FisherLDA": lambda: ef.FisherLDA().fit(*many),
        "SlicedInverseRegression": lambda: ef.SlicedInverseRegression().fit(many[0], many[0][:, 0]),
        "RayleighPCA": lambda: ef.RayleighPCA().fit(many[0]),
        "OrientedPCA": lambda: ef.OrientedPCA(noise_matrix=np.eye(many[0].shape[1])).fit(many[0]),
        "VanishingComponents": lambda: ef.VanishingComponents().fit(
            X[:, : columns if size == "large" else columns // 2], y
        ),
        "Autoencoder": lambda: ef.Autoencoder(
            max_iter=200 if size in ("large", "wide") else 10
        ).fit(X),
    }


def _predictors(size: str, X: np.ndarray, y: np.ndarray) -> Calls:
    long = size in ("large", "wide")
    # Its problem has an inequality for each pair of rows.
    shifted = (X[:150, :20], y[:150] % 3) if size == "middle" else (X, y)
    return {
        "GEMClassifier": lambda: ef.GEMClassifier().fit(X, y),
        "GEMClassifier, clusters": lambda: ef.GEMClassifier(n_clusters=2).fit(X, y),
        "GEMClassifierCV": lambda: ef.GEMClassifierCV().fit(X, y),
        "GEMEnsemble": lambda: ef.GEMEnsemble().fit(X, y),
        "GEMRegressor": lambda: ef.GEMRegressor().fit(X, X[:, 0]),
        "MultinomialLogit": lambda: ef.MultinomialLogit(
            penalty=0, l2=1e-6 if long else 1e-3, tol=1e-9 if long else 1e-4
        ).fit(X, y),
        "CalibratedLeastSquares": lambda: ef.CalibratedLeastSquares().fit(X, y),
        "MulticlassSVM": lambda: ef.MulticlassSVM(C=100 if long else 1, tol=1e-6).fit(X, y),
        "MaxMarginShift": lambda: ef.MaxMarginShift().fit(*shifted),
        "MaxMarginShift, given": lambda: ef.MaxMarginShift(PCA(2), sigma2=0.5).fit(*shifted),
    }


def _relatives(size: str, X: np.ndarray, y: np.ndarray) -> Calls:
    n = len(X)
    few = n // 10 if size == "large" else n
    X, y = X[:few], y[:few]
    domains = np.where(np.arange(few) % 7 < 4, 1, -1)
    calls: Calls = {}
    for name in ("LDG", "KernelLDG", "SparseLDG", "DiscriminativeGaussian", "RegularizedFisher"):
        calls[name] = lambda name=name: getattr(ldg, name)().fit(X, y)
    for name in ("PCAFisher", "DirectLDA", "GSVDDiscriminant", "MaximumMarginCriterion"):
        calls[name] = lambda name=name: getattr(ldg, name)().fit(X, y)
    calls["LocalFisher"] = lambda: ldg.LocalFisher().fit(X, y)
    calls["ITML"] = lambda: ldg.ITML().fit(X, y)
    calls["NCA"] = lambda: ldg.NCA(max_iter=50 if size in ("large", "wide") else 3).fit(X, y)
    for name in ("TransferITML", "TransferLDG", "PooledPCA", "PooledFisher"):
        calls[name] = lambda name=name: getattr(ldg, name)().fit(X, y, sample_domain=domains)
    return calls


def _early(size: str, X: np.ndarray, y: np.ndarray) -> Calls:
    n, d = X.shape
    few, columns = n // 10 if size == "large" else n, min(d, 40)
    whole, X, y = X, X[:few], y[:few]
    long = size in ("large", "wide")
    if size == "middle":
        X, y = X[:400], y[:400] % 3
    narrow = X[:, :columns]
    holes = np.where(np.random.default_rng(3).random((len(X), columns)) < 0.2, np.nan, narrow)
    return {
        "LocalQDA": lambda: incomplete.LocalQDA().fit(X, y).predict(whole),
        "GaussianCompletion": lambda: incomplete.GaussianCompletion().fit(X, y).transform(X),
        "MixtureCompletion": lambda: incomplete.MixtureCompletion().fit(holes, y),
        "ClassNearest": lambda: incomplete.ClassNearest().fit(X, y).predict(X),
        "ECTS": lambda: incomplete.ECTS().fit(X, y),
        "FixedTime": lambda: incomplete.FixedTime(ef.FisherLDA()).fit(narrow, y),
        "MinimumCostClassifier": lambda: incomplete.MinimumCostClassifier(
            n_times=20 if long else 3
        ).fit(narrow, y),
        "SPRT": lambda: incomplete.SPRT().fit(narrow, y % 2).predict_early(narrow),
        "ReliableClassifier": lambda: (
            incomplete.ReliableClassifier(incomplete.LocalQDA(), reliability=0.9)
            .fit(narrow, y)
            .predict_early(narrow[:20])
        ),
        "ReliableClassifier, sampled": lambda: (
            incomplete.ReliableClassifier(LinearDiscriminantAnalysis(), set="sampled")
            .fit(narrow, y)
            .predict_early(narrow[:20])
        ),
        "ReliableClassifierCV": lambda: incomplete.ReliableClassifierCV().fit(narrow, y),
    }


def _pencil(d: int) -> tuple[np.ndarray, np.ndarray]:
    A, B = np.random.default_rng(1).standard_normal((2, d, d)) / np.sqrt(d)
    return A @ A.T, np.eye(d) + B @ B.T


def _quadratics(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(2)
    A = rng.standard_normal((n, d, d))
    return A + A.swapaxes(1, 2), rng.standard_normal((n, d)), rng.standard_normal(n), 1.0

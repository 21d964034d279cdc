"""Every public estimator, small, and rows that it can be fitted to."""

import numpy as np
from flat_gem import gem_classifier, joint_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils import get_tags

import eigenfeat as ef
from eigenfeat import early, ldg, signals

N, D, K = 60, 4, 3
RNG = np.random.default_rng(8)
Y = np.arange(N) % K
X = RNG.standard_normal((N, D)) * np.array([1, 2, 3, 1.0]) + Y[:, None]
DOMAINS = np.where(np.arange(N) % 2, 1, -1)

LDG = {"n_components": 2, "gamma": 1.0, "n_neighbors": 5}
SMALL_GEM = {"n_directions": 1, "threshold": 0}
ESTIMATORS = {
    "GEM": lambda: ef.GEM(**SMALL_GEM),
    "RandomizedGEM": lambda: ef.gem.RandomizedGEM(**SMALL_GEM),
    "GEM, scaled": lambda: ef.GEM(**SMALL_GEM, scale="columns"),
    "GEMClassifier": lambda: gem_classifier(**SMALL_GEM),
    "TableClassifier": lambda: ef.TableClassifier(["columns", "gem"]),
    # Without a forest, which "TableRegressor, all" has.
    "TableClassifier, all": lambda: ef.TableClassifier(
        ["columns", "splines", "gem", "gem_ranks", "kernel", "interactions"]
    ),
    "TableClassifier, gem": lambda: ef.TableClassifier("gem"),
    "GEMClassifier, deep": lambda: gem_classifier(**SMALL_GEM, depth=2),
    "JointGEMClassifier": lambda: joint_classifier(**SMALL_GEM, epochs=3),
    "GEMClassifierCV": lambda: ef.GEMClassifierCV(grid={"logit__penalty": [0.1, 1.0]}),
    "GEMEnsemble": lambda: ef.GEMEnsemble(gem_classifier(**SMALL_GEM), n_members=2),
    "GEMPatches": lambda: ef.gem.GEMPatches(ef.GEM(**SMALL_GEM), patch_size=2),
    "TableRegressor": lambda: ef.TableRegressor(["columns", "gem_ranks"]),
    "TableRegressor, all": ef.TableRegressor,
    "ClassComponents": lambda: ef.gem.ClassComponents(n_directions=1),
    "MultinomialLogit": ef.MultinomialLogit,
    "CalibratedLeastSquares": lambda: ef.CalibratedLeastSquares(n_iterations=3),
    "FisherLDA": ef.FisherLDA,
    "QuadraticDiscriminant": ef.rayleigh.QuadraticDiscriminant,
    "SlicedInverseRegression": lambda: ef.rayleigh.SlicedInverseRegression(n_slices=3),
    "RayleighPCA": ef.rayleigh.RayleighPCA,
    "VanishingComponents": ef.rayleigh.VanishingComponents,
    "OrientedPCA": ef.rayleigh.OrientedPCA,
    "LDG": lambda: ldg.LDG(**LDG),
    "LDG, chosen": ldg.LDG,
    "SparseLDG": lambda: ldg.SparseLDG(**LDG),
    "DiscriminativeGaussian": lambda: ldg.DiscriminativeGaussian(**LDG, max_iter=5),
    "KernelLDG": lambda: ldg.KernelLDG(kernel="rbf", **LDG),
    "KernelLDG, chi2": lambda: ldg.KernelLDG(kernel="chi2", **LDG),
    "TransferLDG": ldg.TransferLDG,
    "RegularizedFisher": ldg.RegularizedFisher,
    "PCAFisher": ldg.PCAFisher,
    "DirectLDA": ldg.DirectLDA,
    "GSVDDiscriminant": ldg.GSVDDiscriminant,
    "MaximumMarginCriterion": ldg.MaximumMarginCriterion,
    "LocalFisher": ldg.LocalFisher,
    "ITML": lambda: ldg.ITML(n_pairs=20, max_iter=50, tol=0.5),
    "MulticlassSVM": ef.MulticlassSVM,
    "MaxMarginShift": lambda: ef.MaxMarginShift(PCA(2), sigma2=0.5),
    "MaxMarginShift, chosen": lambda: ef.MaxMarginShift(PCA(2), scales=[0.5, 1.0]),
    "MaxMarginShift, joint": lambda: ef.MaxMarginShift(PCA(2), sigma2=0.5, moves="joint"),
    "MaxMarginShift, corrupted": lambda: ef.MaxMarginShift(
        PCA(2), sigma2=0.5, moves="corrupted", n_copies=2
    ),
    "MaxMarginPCA": lambda: ef.maxmargin.MaxMarginPCA(2, sigma2=0.5, max_iter=5),
    "LabelEmbedding": lambda: ef.embedding.LabelEmbedding(2),
    "RandomizedCCA": lambda: ef.embedding.RandomizedCCA(1),
    "SpatialFilters": signals.SpatialFilters,
    "TangentSpace": signals.TangentSpace,
    "EpochClassifier": lambda: signals.EpochClassifier(50.0, views=["tangent", "means"]),
    "EpochClassifier, all": lambda: signals.EpochClassifier(50.0, frequencies=[10.0]),
    "ConvolutionFeatures": lambda: signals.ConvolutionFeatures(
        252, differences=True, contests=True
    ),
    "ConvolutionClassifier": lambda: signals.ConvolutionClassifier(84),
    "GaussianCompletion": early.GaussianCompletion,
    "MixtureCompletion": early.MixtureCompletion,
    "LocalQDA": early.LocalQDA,
    "ReliableClassifierCV": lambda: early.ReliableClassifierCV(n_folds=2),
    "MinimumCostClassifier": lambda: early.MinimumCostClassifier(
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), n_times=2, n_folds=2
    ),
    "ReliableClassifier": lambda: early.ReliableClassifier(
        LinearDiscriminantAnalysis(), reliability=0.8
    ),
    "ReliableClassifier, local": lambda: early.ReliableClassifier(
        early.LocalQDA(), early.MixtureCompletion()
    ),
}
OF_EPOCHS = {"SpatialFilters", "TangentSpace", "EpochClassifier"}
OF_SERIES = OF_EPOCHS | {"ConvolutionFeatures", "ConvolutionClassifier"}
# Estimators that accept sparse samples, except those with kernels of counts.
TAKE_SPARSE = [
    name
    for name, make in ESTIMATORS.items()
    if get_tags(make()).input_tags.sparse and "chi2" not in name
]

# Reasons why a weight of 2 differs from two copies of a sample.
FOLDS = "copies of a sample fall into several folds"
RATIOS = "only ratios of weights matter; copies, unlike weights, are more samples"
COPIES_DIFFER = {
    **dict.fromkeys(("GEMClassifier", "GEMClassifierCV", "GEMEnsemble"), FOLDS),
    **dict.fromkeys(("TableClassifier", "TableRegressor", "EpochClassifier"), RATIOS),
    "JointGEMClassifier": "steps take samples in a random order",
    **dict.fromkeys(
        ("MaxMarginShift", "MaxMarginPCA"), "extractors such as `PCA` do not take weights"
    ),
}


def new(name):
    """An estimator, and further arguments of its `fit`."""
    estimator = ESTIMATORS[name]()
    domains = name == "TransferLDG"
    return estimator, {"sample_domain": DOMAINS} if domains else {}


def seeded(name):
    """Return `new(name)` with all seeds set to 0."""
    estimator, more = new(name)
    seeds = [key for key in estimator.get_params() if key.endswith("random_state")]
    return estimator.set_params(**dict.fromkeys(seeds, 0)), more


def outputs(model, rows):
    """Outputs of a fitted estimator for rows, by method."""
    methods = ("predict_proba", "decision_function", "transform", "predict")
    return {m: np.asarray(getattr(model, m)(rows)) for m in methods if hasattr(model, m)}


def epochs(X):
    """An epoch for each row; entries of a row are the amplitudes of the channels.

    All epochs also have a weak oscillation, so that a channel with the amplitude 0 is not constant.
    """
    X = X.astype(np.float32 if X.dtype == np.float32 else np.float64)
    sizes = np.abs(X).sum(axis=1, dtype=np.float64)
    phase = 1 + (sizes / max(sizes.max(), 1e-300))[:, None, None]
    clock = np.arange(12)
    weak = 0.01 * np.abs(X).max(axis=0)[:, None] * np.cos(clock)
    return X[:, :, None] * np.sin(0.3 * phase * clock) + weak.astype(X.dtype)


def rows_for(name, X):
    """Rows that the estimator takes: epochs, series longer than kernels, or numbers >= 0."""
    kind = name.partition(",")[0]
    if kind in OF_SERIES:
        return epochs(X) if kind in OF_EPOCHS else np.tile(X, 8)
    return np.abs(X) if "chi2" in name else X


def good_rows(name):
    return rows_for(name, X)

"""Data of the paper on max-margin data shifting with its splits, extractors, and moved samples."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.ndimage import map_coordinates
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, PCA, FactorAnalysis, FastICA, MiniBatchSparsePCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from bench.papers.baselines.autoencoder import Autoencoder
from bench.papers.protocol import Rows, read_arrays, read_rows, some_of_each, subsample
from eigenfeat.maxmargin import MulticlassSVM

SEED = 0
QUICK_TEST_ROWS, QUICK_TRAIN_ROWS = 2_000, 1_000
MNIST_ROWS = 500
FILES = {"MNIST": "mnist.npz", "Digits": "opencv_digits.npz", "Letters": "ocr_letters.npz"}
LETTER_FOLD = 1  # 5,375 samples, the number in the paper
KERNEL_FEATURES = {"MNIST": 1_000, "Digits": 500, "Letters": 1_000}
QUICK_KERNEL_FEATURES = 200
AUTOENCODER_ITERATIONS, QUICK_ITERATIONS = 150, 30
FEATURE_SVM_C = 1.0  # C of the SVM that classifies the features
TOLERANCE, EPOCHS = 1e-2, 60  # of all SVMs; the paper's also stop after a fixed number of epochs
HELD_OUT = 0.2
# With fewer than FEW_ROWS samples, SPLITS_OF_FEW held-out parts are drawn instead of one.
FEW_ROWS, SPLITS_OF_FEW = 1_000, 6


class Split(NamedTuple):
    """Rows to train on and to test on."""

    train: Rows
    test: Rows


class AboveZero(TransformerMixin, BaseEstimator):
    """Nonnegative columns for NMF: each column minus its minimum, and at least 0."""

    def fit(self, X, y=None):
        """Find the minimum of every column."""
        self.minimum_ = np.asarray(X).min(axis=0)
        return self

    def transform(self, X):
        """Return ``max(X - minimum_, 0)``."""
        return np.maximum(np.asarray(X) - self.minimum_, 0)


def load(data, folder, *, quick, seed=SEED):
    """Load MNIST, Digits or Letters with its split; a quick run has fewer samples.

    The seed draws the training samples of MNIST and the halves of Digits, and chooses the fold of
    Letters that is trained on.
    """
    split = {"MNIST": mnist, "Digits": _digits, "Letters": letters}[data](folder, seed)
    return fewer(split) if quick else split


def fewer(split):
    """Return the samples of a quick run, stratified, so that folds have all classes."""
    train, test = split
    if len(train) > QUICK_TRAIN_ROWS:
        draw = StratifiedShuffleSplit(1, train_size=QUICK_TRAIN_ROWS, random_state=SEED)
        train = train[next(draw.split(train.X, train.y))[0]]
    return Split(train, subsample(test, QUICK_TEST_ROWS, SEED))


def mnist(folder, seed=SEED):
    """Load pixels in 0..1, with a subsample of the official training samples."""
    train, test = (read_rows(folder / "mnist.npz", f"X_{p}", f"y_{p}") for p in ("train", "test"))
    train = subsample(train, MNIST_ROWS, seed)
    return Split(*(Rows(rows.X / np.float32(255), rows.y) for rows in (train, test)))


def _digits(folder, seed):
    X, y = read_arrays(folder / "opencv_digits.npz", "X", "y")
    return halves(Rows(gradients(X.reshape(-1, 20, 20)), y.astype(np.int64)), seed)


def halves(rows, seed):
    """Split samples into random halves."""
    order = np.random.RandomState(seed).permutation(len(rows))
    return Split(*(rows[half] for half in np.split(order, [len(rows) // 2])))


def letters(folder, seed):
    """Load one of ten folds for training, all other folds for testing."""
    rows = read_rows(folder / "ocr_letters.npz", "X", "y")
    folds = read_arrays(folder / "ocr_letters.npz", "fold")[0]
    known = np.unique(folds)
    training = folds == known[(LETTER_FOLD + seed) % len(known)]
    return Split(rows[training], rows[~training])


def gradients(images, bins=16):
    """Return histograms of gradient directions in the four quarters of square images: 64 numbers.

    As in OpenCV's example for these digits, slants are removed first, and histograms of gradient
    magnitudes are normalised by Hellinger's measure.
    """
    images = _upright(images.astype(np.float64))
    rows, columns = np.gradient(images, axis=(1, 2))
    magnitude = np.hypot(rows, columns)
    angle = np.arctan2(rows, columns) % (2 * np.pi)
    which = np.minimum((angle * bins / (2 * np.pi)).astype(int), bins - 1)
    half = images.shape[1] // 2
    parts = []
    for below, beside in product((slice(0, half), slice(half, None)), repeat=2):
        m, w = magnitude[:, below, beside], which[:, below, beside]
        parts += [np.where(w == b, m, 0.0).sum(axis=(1, 2)) for b in range(bins)]
    out = np.stack(parts, axis=1)
    out = np.sqrt(out / (out.sum(axis=1, keepdims=True) + 1e-7))
    return (out / (np.linalg.norm(out, axis=1, keepdims=True) + 1e-7)).astype(np.float32)


def _upright(images):
    """Shear images until their second moments show no slant."""
    height, width = images.shape[1:]
    y, x = np.mgrid[:height, :width].astype(np.float64)
    out = np.empty_like(images)
    for image, upright in zip(images, out, strict=True):
        mass = max(image.sum(), 1e-9)
        middle_y, middle_x = (image * y).sum() / mass, (image * x).sum() / mass
        dy, dx = y - middle_y, x - middle_x
        slant = (image * dy * dx).sum() / max((image * dy**2).sum(), 1e-9 * mass)
        moved = x + slant * (y - height / 2) + middle_x - width / 2
        map_coordinates(image, [y, moved], output=upright, order=1)
    return out


def few_of_each(rows, count, seed):
    """Train on `count` random samples of each class, at most half of it; test on the others."""
    train = np.sort(some_of_each(rows.y, count, seed, most=0.5))
    return Split(rows[train], rows[np.setdiff1d(np.arange(len(rows)), train)])


def kernel(data, X, width, *, quick):
    """Fit random Fourier features; `width` is relative to the median squared distance."""
    first = X[:500].astype(np.float64)
    squares = (first**2).sum(axis=1)
    distance = np.median(squares[:, None] + squares - 2 * first @ first.T)
    count = QUICK_KERNEL_FEATURES if quick else KERNEL_FEATURES[data]
    gamma = width / float(distance)
    return RBFSampler(gamma=gamma, n_components=count, random_state=SEED).fit(X)


def extractor(name, n_components, *, quick):
    """Make an extractor by its name in the paper."""
    k, given = n_components, {"random_state": SEED}
    iterations = QUICK_ITERATIONS if quick else AUTOENCODER_ITERATIONS
    makers = {
        "PCA": lambda: PCA(k, **given),
        "KPCA": lambda: PCA(k, **given),
        "AE": lambda: Autoencoder(k, max_iter=iterations, **given),
        "ICA": lambda: FastICA(k, max_iter=300, tol=1e-2, **given),
        "SPCA": lambda: MiniBatchSparsePCA(
            k, alpha=0.1, max_iter=20, batch_size=50, method="cd", **given
        ),
        "KM": lambda: KMeans(k, n_init=10, **given),
        "FA": lambda: FactorAnalysis(k, max_iter=100, tol=0.1, **given),
        "NMF": lambda: make_pipeline(
            AboveZero(), NMF(k, init="nndsvda", max_iter=100, tol=1e-3, **given)
        ),
    }
    return makers[name]()


def centred(split):
    """Subtract the mean of the training samples from both parts of a split."""
    mean = split.train.X.mean(axis=0)
    return Split(*(Rows(rows.X - mean, rows.y) for rows in split))


# ---- moved rows ----------------------------------------------------------------------------------


class Shifter:
    """Samples and their moves by an SVM, which is fitted once for all extractors and scales."""

    def __init__(self, rows, C, threads):
        self.rows, self.threads = rows, threads
        self.svm = _svm(rows.X, rows.y, C, threads)
        self.moves = (self.svm.dual_coef_ @ self.svm.class_coef_).astype(rows.X.dtype)
        spread = np.linalg.norm(rows.X - rows.X.mean(axis=0))
        self.unit = float(np.linalg.norm(self.moves) / spread)

    def moved(self, scale):
        """Return the samples moved by this scale, relative to their spread."""
        if scale == 0.0 or self.unit == 0.0:
            return self.rows.X
        return self.rows.X + self.rows.X.dtype.type(scale / self.unit) * self.moves

    def accuracy(self, extractor, scale, test):
        """Return the accuracy in percent of a linear SVM on features of the original samples."""
        extractor.fit(self.moved(scale))
        return feature_accuracy(extractor.transform, self.rows, test, self.threads)


def feature_accuracy(features, train, test, threads):
    """Return the accuracy in percent of a linear SVM on standardised features."""
    known, new = features(train.X), features(test.X)
    mean, deviation = known.mean(axis=0), known.std(axis=0)
    deviation[deviation == 0] = 1
    model = _svm((known - mean) / deviation, train.y, FEATURE_SVM_C, threads)
    return 100.0 * float(model.score((new - mean) / deviation, test.y))


def _svm(X, y, C, threads):
    return MulticlassSVM(C=C, tol=TOLERANCE, max_iter=EPOCHS, n_threads=threads).fit(X, y)


def held_out(rows, C, threads):
    """Return shifters of parts of the training samples, each with its held-out samples."""
    n = SPLITS_OF_FEW if len(rows) < FEW_ROWS else 1
    splitter = StratifiedShuffleSplit(n, test_size=HELD_OUT, random_state=SEED)
    splits = splitter.split(rows.y[:, None], rows.y)
    return [(Shifter(rows[train], C, threads), rows[held]) for train, held in splits]


def scores_of(parts, make, scale):
    """Return the accuracy on the held-out samples of each split."""
    return np.array([shifter.accuracy(make(), scale, held) for shifter, held in parts])


def chosen_move(parts_of, make, scales):
    """Return the SVM's C and the scale that are best on held-out samples.

    The scale is 0 unless the mean gain of a move exceeds twice its standard error.
    """
    still = scores_of(next(iter(parts_of.values())), make, 0.0)
    tried = {
        (C, scale): scores_of(parts, make, scale)
        for C, parts in parts_of.items()
        for scale in scales
    }
    (C, scale), best = max(tried.items(), key=lambda item: float(item[1].mean()))
    gains = best - still
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return (C, scale) if gains.mean() > 2 * error else (C, 0.0)

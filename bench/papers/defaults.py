"""Defaults beside defaults: data sets that the paper does not use, and nothing chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.papers import builders, settings
from bench.papers.covertype import N_REPEATED
from bench.papers.protocol import (
    Context,
    Data,
    Method,
    Problem,
    Protocol,
    Rows,
    read_arrays,
    subsample,
)

__all__ = ["PROTOCOL", "load_cover", "load_half", "load_ocr", "load_official", "load_opencv"]


def load_official(path: Path, context: Context) -> Data:
    """Return an official split: X and y for training, X_test and y_test for testing."""
    return _data(_rows(path, "X", "y"), _rows(path, "X_test", "y_test"), context)


def load_opencv(path: Path, context: Context) -> Data:
    """Return a stratified random half for training, pixels in 0..1."""
    rows = _rows(path, "X", "y")
    return _halves(Rows(rows.X / np.float32(255), rows.y), context)


def load_half(path: Path, context: Context) -> Data:
    """Return a stratified random half for training."""
    return _halves(_rows(path, "X", "y"), context)


def load_cover(path: Path, context: Context) -> Data:
    """Return a stratified random half of a random sample for training."""
    rows = _rows(path, "X_random50k", "y_random50k")
    return _halves(rows[np.arange(N_REPEATED, len(rows.y))], context)


def load_ocr(path: Path, context: Context) -> Data:
    """Return the official folds, some for training and all others for testing."""
    rows = _rows(path, "X", "y")
    (fold,) = read_arrays(path, "fold")
    training = np.isin(fold, settings.OCR_TRAINING_FOLDS)
    return _data(rows[training], rows[~training], context)


def _halves(rows: Rows, context: Context) -> Data:
    from sklearn.model_selection import StratifiedShuffleSplit

    share = settings.OPENCV_TEST_SHARE
    splitter = StratifiedShuffleSplit(1, test_size=share, random_state=context.seed)
    train, test = next(splitter.split(rows.y[:, None], rows.y))
    return _data(rows[train], rows[test], context)


def _rows(path: Path, X: str, y: str) -> Rows:
    columns, labels = read_arrays(path, X, y)
    return Rows(columns.astype(np.float32), labels.astype(np.int64))


def _data(train: Rows, test: Rows, context: Context) -> Data:
    """Return the two parts, in a quick run at most so many rows of each."""
    limit = settings.DEFAULTS_QUICK_ROWS if context.quick else None
    kept = subsample(test, limit, context.seed)
    return Data(subsample(train, limit, context.seed), lambda: kept)


METHODS = (
    Method("GEM", builders.gem),
    Method("logistic regression", builders.standardised_logistic),
    Method("SVM, Gaussian kernel", builders.standardised_svc),
    Method("extra trees", builders.extra_trees),
    Method("boosted trees", builders.boosting, peer=True),
)
TWO_PARTS = {
    "X": "(n, d) rows for training",
    "y": "(n,) labels",
    "X_test": "(m, d) rows for testing",
    "y_test": "(m,) labels",
}
WHOLE = {"X": "(n, d) pixels", "y": "(n,) labels"}

PROTOCOL = Protocol(
    "defaults",
    "six further data sets, all methods with their defaults",
    (
        Problem(
            name="isolet",
            title="Isolet, spoken letters",
            split="official split, the fifth group of speakers for testing",
            file="uci_isolet.npz",
            arrays=TWO_PARTS,
            load=load_official,
            methods=METHODS,
        ),
        Problem(
            name="satimage",
            title="Satimage, multispectral pixels",
            split="official split",
            file="uci_satimage.npz",
            arrays=TWO_PARTS,
            load=load_official,
            methods=METHODS,
        ),
        Problem(
            name="opencv digits",
            title="OpenCV's handwritten digits",
            split="random halves, stratified",
            file="opencv_digits.npz",
            arrays=WHOLE,
            load=load_opencv,
            methods=METHODS,
        ),
        Problem(
            name="ocr letters",
            title="OCR letters",
            split=f"official folds: {settings.OCR_TRAINING_FOLDS} to train on, all others to test",
            file="ocr_letters.npz",
            arrays={**WHOLE, "fold": "(n,) numbers 0..9"},
            load=load_ocr,
            methods=METHODS,
        ),
        Problem(
            name="ringnorm",
            title="Ringnorm, two Gaussians about one centre",
            split="random halves, stratified",
            file="uci_ringnorm_standardized.npz",
            arrays={"X": "(n, d) rows", "y": "(n,) labels"},
            load=load_half,
            methods=METHODS,
        ),
        Problem(
            name="covertype",
            title="Covertype, 24,140 rows",
            split="random halves of 48,280 rows, stratified",
            file="covtype_subset.npz",
            arrays={"X_random50k": "(50000, d) rows", "y_random50k": "(50000,) labels"},
            load=load_cover,
            methods=METHODS,
        ),
    ),
)

"""Defaults beside defaults: data sets that the paper does not use, and nothing chosen."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from bench.papers import estimators
from bench.papers.gem import N_REPEATED
from bench.papers.gem_report import REPORT
from bench.papers.protocol import (
    Context,
    Data,
    Method,
    Problem,
    Protocol,
    Rows,
    read_arrays,
    read_rows,
    subsample,
)

DEFAULTS_QUICK_ROWS = 1_500
TEST_SHARE = 0.5
OCR_TRAINING_FOLDS = (0,)  # the other folds are for testing


def load_official(path: Path, context: Context) -> Data:
    """Return an official split: X and y for training, X_test and y_test for testing."""
    return _data(read_rows(path, "X", "y"), read_rows(path, "X_test", "y_test"), context)


def load_half(path: Path, context: Context, *, end: str = "", skip: int = 0, unit: int = 1) -> Data:
    """Return a stratified random half for training, of some arrays' rows in some unit."""
    rows = read_rows(path, f"X{end}", f"y{end}")
    rows = Rows(rows.X / np.float32(unit), rows.y)[np.arange(skip, len(rows.y))]
    splitter = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=context.seed)
    train, test = next(splitter.split(rows.y[:, None], rows.y))
    return _data(rows[train], rows[test], context)


def load_ocr(path: Path, context: Context) -> Data:
    """Return the official folds, some for training and all others for testing."""
    rows = read_rows(path, "X", "y")
    training = np.isin(read_arrays(path, "fold")[0], OCR_TRAINING_FOLDS)
    return _data(rows[training], rows[~training], context)


load_opencv = partial(load_half, unit=255)
load_cover = partial(load_half, end="_random50k", skip=N_REPEATED)


def _data(train: Rows, test: Rows, context: Context) -> Data:
    """Return the two parts, in a quick run at most so many rows of each."""
    limit = DEFAULTS_QUICK_ROWS if context.quick else None
    kept = subsample(test, limit, context.seed)
    return Data(subsample(train, limit, context.seed), lambda: kept)


METHODS = (
    Method("GEM", estimators.gem),
    Method("logistic regression", estimators.standardised_logistic),
    Method("SVM, Gaussian kernel", estimators.standardised_svc),
    Method("extra trees", estimators.extra_trees),
    Method("boosted trees", estimators.boosting, peer=True),
    Method("LightGBM", estimators.lightgbm, peer=True),
)
WHOLE = {"X": "(n, d) rows", "y": "(n,) labels"}
PARTS = {**WHOLE, "X_test": "(m, d) rows for testing", "y_test": "(m,) labels"}
COVER = {"X_random50k": "(50000, d) rows", "y_random50k": "(50000,) labels"}
FOLDS = {**WHOLE, "fold": "(n,) numbers 0..9"}
HALVES = "random halves, stratified"
SETS = (
    ("isolet", "Isolet, spoken letters", "official split, the fifth group of speakers for testing",
     "uci_isolet.npz", PARTS, load_official),
    ("satimage", "Satimage, multispectral pixels", "official split",
     "uci_satimage.npz", PARTS, load_official),
    ("opencv digits", "OpenCV's handwritten digits", HALVES,
     "opencv_digits.npz", WHOLE, load_opencv),
    ("ocr letters", "OCR letters",
     f"official folds: {OCR_TRAINING_FOLDS} to train on, all others to test",
     "ocr_letters.npz", FOLDS, load_ocr),
    ("ringnorm", "Ringnorm, two Gaussians about one centre", HALVES,
     "uci_ringnorm_standardized.npz", WHOLE, load_half),
    ("covertype", "Covertype, 24,140 rows", "random halves of 48,280 rows, stratified",
     "covtype_subset.npz", COVER, load_cover),
)  # fmt: skip

PROTOCOLS = {
    "defaults": Protocol("defaults", tuple(Problem(*one, methods=METHODS) for one in SETS), REPORT)
}

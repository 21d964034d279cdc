"""The experiments of max-margin shifting on small files of the same kinds."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from bench.papers import mmds, mmds_data, mmds_joint
from bench.papers.__main__ import main
from bench.papers.protocol import subsample
from eigenfeat.maxmargin import MulticlassSVM


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every file that the experiments read, small."""
    path = tmp_path_factory.mktemp("data")
    X, y = load_digits(return_X_y=True)
    X = (X * 15).astype(np.uint8)
    large = np.zeros((len(X), 20, 20), dtype=np.uint8)
    large[:, 2:18, 2:18] = X.reshape(-1, 8, 8).repeat(2, axis=1).repeat(2, axis=2)
    parts = {"X_train": X[:900], "y_train": y[:900], "X_test": X[900:], "y_test": y[900:]}
    np.savez(path / "mnist.npz", **parts)
    np.savez(path / "opencv_digits.npz", X=large[:600].reshape(600, 400), y=y[:600])
    np.savez(path / "ocr_letters.npz", X=X[:800] > 100, y=y[:800], fold=np.arange(800) % 2)
    for name in ("yale", "yaleb", "orl"):
        np.savez(path / f"faces_{name}.npz", X=X[:200], y=y[:200])
    names = ("srbct", "tox171", "glioma")
    standins = {f"X_{n}": X[:80].astype(np.float32) for n in names}
    np.savez(path / "microarray_standins.npz", **standins, **{f"y_{n}": y[:80] for n in names})
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(mmds_data, "MNIST_ROWS", 150)
    monkeypatch.setattr(mmds_data, "QUICK_TRAIN_ROWS", 150)
    monkeypatch.setattr(mmds_data, "QUICK_TEST_ROWS", 200)
    monkeypatch.setattr(mmds_data, "QUICK_KERNEL_FEATURES", 60)
    monkeypatch.setattr(mmds, "KERNEL_WIDTHS", (0.5, 1.0))
    monkeypatch.setattr(mmds_data, "SPLITS_OF_FEW", 1)
    monkeypatch.setattr(mmds, "CURVE_SCALES", (0.0, 1.0))


def test_joint_moves_beside_the_single_one(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(mmds_data, "QUICK_TRAIN_ROWS", 80)
    arguments = ["mmds-joint", "--data", str(folder), "--quick", "--output", str(tmp_path)]
    assert main([*arguments, "--only", "MNIST 5:", "--only", "Letters 10: once"]) == 0
    printed = capsys.readouterr().out
    for text in ("over PCA", "MNIST 5", "joint", "MaxMarginPCA", "corrupted", "Letters 10"):
        assert text in printed
    with (tmp_path / "mmds-joint-quick.csv").open() as file:
        lines = {(line["data"], line["method"]): line for line in csv.DictReader(file)}
    assert [*lines] == [("MNIST 5", kind) for kind in mmds_joint.KINDS] + [("Letters 10", "once")]
    for line in lines.values():
        found = json.loads(line["accuracies"])
        assert len(found) == 2
        assert 20 < float(line["accuracy"]) <= 100
        assert_allclose(float(line["accuracy"]), np.mean(found), atol=1e-6)
    # A split's PCA is scikit-learn's of the same rows, centred, before the same linear SVM.
    split = mmds_data.mnist(folder, 1)
    train = subsample(split.train, 80, 0)
    test = subsample(split.test, mmds_data.QUICK_TEST_ROWS, 0)
    mean = train.X.mean(axis=0)
    pca = PCA(5, random_state=0).fit(train.X - mean)
    known, new = pca.transform(train.X - mean), pca.transform(test.X - mean)
    scaler = StandardScaler().fit(known)
    svm = MulticlassSVM(tol=1e-2, max_iter=60).fit(scaler.transform(known), train.y)
    expected = 100 * svm.score(scaler.transform(new), test.y)
    assert_allclose(json.loads(lines["MNIST 5", "PCA"]["accuracies"])[1], expected, atol=1.5)

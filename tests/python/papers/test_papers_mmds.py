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
from bench.papers.mmds_supervised import KINDS
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


@pytest.mark.long
def test_all_of_it(folder, tmp_path, capsys):
    arguments = ["mmds", "--data", str(folder), "--quick", "--output", str(tmp_path)]
    wanted = [
        "MNIST, PCA",
        "Digits, NMF",
        "Letters, KPCA 5",
        "Yale B",
        "glioma",
        "Figure 3, MNIST, P",
    ]
    assert main(arguments + [a for text in wanted for a in ("--only", text)]) == 0
    printed = capsys.readouterr().out
    for text in ("Table 1", "Table 3", "Table 4", "Figure 3", "69.7", "glioma (stand-in)"):
        assert text in printed
    with (tmp_path / "mmds-quick.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["table"] for line in lines].count("Table 4") == 4
    for line in lines:
        assert 0 < float(line["original"]) <= 100
        assert 0 < float(line["shifted"]) <= 100
    for name in ("mmds_embeddings.png", "mmds_scales.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


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


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_supervised_reductions_go_from_pca_to_the_classes(kind, rng):
    codes = np.repeat(np.arange(3), 20)
    X = rng.standard_normal((60, 30)) * np.append([6.0, 5.0, 4.0, 3.0], np.full(26, 0.2))
    X[:, 10:12] += 1.5 * np.array([[1, 0], [-0.5, 0.9], [-0.5, -0.9]])[codes]
    X -= X.mean(axis=0)
    top = PCA(4).fit(X).components_
    little = np.linalg.qr(KINDS[kind](4, 1e-9).fit(X, codes).directions_)[0]
    assert_allclose(np.linalg.svd(top @ little)[1], 1, atol=1e-2)

    def right(model):
        Z = model.fit(X, codes).transform(X)
        Z = Z / np.maximum(Z.std(axis=0), 1e-12)
        return MulticlassSVM().fit(Z[::2], codes[::2]).score(Z[1::2], codes[1::2])

    # The classes are in two columns of little variance.
    best = max(right(KINDS[kind](4, weight)) for weight in (1.0, 10.0, 100.0, 1000.0))
    assert right(PCA(4)) < 0.7 < 0.9 < best


def test_gradients_tell_directions_and_take_slants_out(monkeypatch):
    images = np.zeros((2, 20, 20))
    images[0, :, 10:] = 255.0  # brightness rises to the right
    images[1, 10:, :] = 255.0  # and downwards
    found = mmds_data.gradients(images).reshape(2, 4, 16)
    assert found.shape == (2, 4, 16)
    assert_allclose((found**2).sum(axis=(1, 2)), 1, rtol=1e-4)
    assert found[0].sum(axis=0).argmax() == 0
    assert found[1].sum(axis=0).argmax() == 4
    row, column = np.mgrid[:20, :20]
    bar = (np.abs(column - 10) < 2).astype(float)
    slanted = (np.abs(column - 10 - 0.4 * (10 - row)) < 2).astype(float)
    straight = mmds_data.gradients(np.stack([bar, slanted]))
    monkeypatch.setattr(mmds_data, "_upright", lambda images: images)
    as_it_was = mmds_data.gradients(np.stack([bar, slanted]))
    gaps = [np.linalg.norm(pair[0] - pair[1]) for pair in (straight, as_it_was)]
    assert gaps[0] < 0.6 * gaps[1]

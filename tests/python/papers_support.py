"""Tiny data files for the tests of `bench.papers`."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from bench.papers import figures
from bench.papers.__main__ import TASKS

PROTOCOLS = {
    task: import_module(f"bench.papers.{file}").PROTOCOLS[task] for task, file in TASKS.items()
}
N_REPEATED = 1720  # rows of the Covertype file that are left out


def write_all(folder):
    """Write a tiny file of every data set, and return the folder."""
    rng = np.random.default_rng(5)
    np.savez(folder / "mnist.npz", **two_parts(rng, 300, 100, 16, 5, "_train", np.uint8))
    np.savez(folder / "uci_isolet.npz", **two_parts(rng, 200, 60, 12, 4, "", np.float32))
    np.savez(folder / "uci_satimage.npz", **two_parts(rng, 200, 60, 8, 3, "", np.float32))
    images = {**two_parts(rng, 240, 1, 16, 4, "", np.uint8)}
    np.savez(folder / "opencv_digits.npz", X=images["X"], y=images["y"])
    fold = (np.arange(240) % 10 // 5).astype(np.uint8)
    np.savez(folder / "ocr_letters.npz", X=images["X"], y=images["y"], fold=fold)
    np.savez(folder / "covtype_subset.npz", **covertype(rng))
    np.savez(folder / "fsdd.npz", **spoken(rng))
    write_ldg(folder, rng)
    return folder


def write_ldg(folder, rng):
    """Write the further data sets of LDG's experiments."""
    names = ("pima", "wine", "german_numeric", "ionosphere", "dermatology")
    for name in (*names, "ringnorm_standardized", "twonorm_standardized"):
        X, y = blobs(rng, 160 if name == "ringnorm_standardized" else 60, 6, 3, np.float32)
        X[::20, -1] = np.nan if name == "dermatology" else X[::20, -1]
        np.savez(folder / f"uci_{name}.npz", X=X, y=y)
    X, y = blobs(rng, 40, 70, 2, np.uint16)
    np.savez(folder / "uci_arcene.npz", X=X, y=y)
    arrays = {"csr_indptr": np.arange(0, 2801, 70), "csr_indices": np.tile(np.arange(70), 40)}
    np.savez(folder / "uci_dexter_train.npz", **arrays, csr_data=X.ravel(), csr_shape=X.shape, y=y)
    (folder / "ucr").mkdir()
    for name in (*figures.TABLE_3_4, "ItalyPowerDemand"):
        X, y = blobs(rng, 60, 30, 3, np.float32)
        parts = {"X_train": X[:18], "y_train": y[:18], "X_test": X[18:], "y_test": y[18:]}
        np.savez(folder / "ucr" / f"{name}.npz", **parts)
    arrays = {}
    for shift, domain in enumerate(("amazon", "webcam", "dslr")):
        X, y = blobs(rng, 40, 48, 4, np.uint8)
        arrays |= {f"X_{domain}": X + np.uint8(shift), f"y_{domain}": y + 1}
    np.savez(folder / "office_surf.npz", **arrays)
    np.savez(folder / "usps.npz", **two_parts(rng, 300, 100, 16, 5, "_train", np.uint8))


def blobs(rng, n, d, k, dtype):
    """Classes that differ in means and in variances; every class has rows."""
    y = np.arange(n) % k
    spread = 1 + np.abs(np.add.outer(-np.arange(k), np.arange(d)) % k == 0) * 2.0
    X = (rng.standard_normal((n, d)) * spread[y] + 2 * (spread[y] - 2)) * 8 + 100
    return X.astype(dtype), y.astype(np.uint8)


def two_parts(rng, n_train, n_test, d, k, suffix, dtype):
    (X, y), (X_test, y_test) = (blobs(rng, n, d, k, dtype) for n in (n_train, n_test))
    return {f"X{suffix}": X, f"y{suffix}": y, "X_test": X_test, "y_test": y_test}


def covertype(rng):
    arrays = {}
    for part, n in (("extra", 150), ("random50k", N_REPEATED + 150), ("first20k", 150)):
        X, y = blobs(rng, n, 10, 3, np.int16)
        arrays[f"X_{part}"] = np.hstack([X, np.eye(44, dtype=np.int16)[rng.integers(0, 44, n)]])
        arrays[f"y_{part}"] = y + 1
    arrays["X_random50k"][:N_REPEATED] = -1
    return arrays


def spoken(rng):
    """Three rising tones by six speakers, six takes each, of a tenth of a second."""
    combinations = [(s, d) for s in range(6) for d in range(3) for _ in range(6)]
    t = np.arange(800) / 8000
    sound = [
        np.sin(2 * np.pi * (300 + 500 * d + 10 * s) * t * (1 + 5 * t)) for s, d in combinations
    ]
    audio = np.concatenate(sound) + 0.1 * rng.standard_normal(800 * len(sound))
    speakers, digits = np.array(combinations, dtype=np.uint8).T
    return {
        "audio": (audio * 8000).astype(np.int16),
        "offsets": np.arange(len(sound) + 1) * 800,
        "digit": digits,
        "speaker": speakers,
        "speaker_names": np.array(["ann", "bob", "eve", "joe", "theo", "yweweler"]),
        "sample_rate": np.array(8000),
    }

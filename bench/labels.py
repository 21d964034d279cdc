"""Precision at 1, 3 and 5 and seconds of `LabelEmbedding`, beside logistic regression.

``python bench/labels.py [--data DIR]``: generated documents and rows with power-law labels; with
the directory, also the public letters and Isolet. One-against-rest logits run on the tasks with at
most 200 labels; on the first two tasks they would take 1.6 hours and 20 minutes.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from eigenfeat.embedding import LabelEmbedding

Task = tuple[Any, Any, Any, Any]  # training samples and targets, test samples and targets


def frequencies(n_labels: int) -> np.ndarray:
    """Power-law frequencies."""
    p = 1.0 / (np.arange(n_labels) + 10.0)
    return p / p.sum()


def documents(n: int, n_labels: int, n_words: int, length: int = 60) -> Task:
    """Bags of words, with 12 frequent words for each label and 40 for each group of 20 labels."""
    rng = np.random.default_rng(0)
    own = rng.integers(n_words, size=(n_labels, 12))
    shared = rng.integers(n_words, size=(n_labels // 20, 40))
    y = rng.choice(n_labels, n + 10_000, p=frequencies(n_labels))
    source = rng.random((len(y), length))
    words = rng.choice(n_words, source.shape, p=frequencies(n_words))
    row = np.arange(len(y))[:, None]
    of_group = shared[y % len(shared)][row, rng.integers(40, size=source.shape)]
    of_label = own[y][row, rng.integers(12, size=source.shape)]
    words = np.select([source < 0.15, source < 0.3], [of_label, of_group], words)
    ends = np.arange(0, words.size + 1, length)
    parts = np.ones(words.size, dtype=np.float32), words.ravel(), ends
    X = sparse.csr_array(parts, shape=(len(y), n_words))
    X.sum_duplicates()
    X.data = np.sqrt(X.data / length)
    return X[:n], y[:n], X[n:], y[n:]


def gaussians(n: int, n_labels: int, several: bool) -> Task:
    """Noisy samples about the mean of a label, or about the sum of the means of 1 to 5 labels."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((n_labels, 20)) @ rng.standard_normal((20, 128)) / np.sqrt(20)
    means += 0.3 * rng.standard_normal(means.shape)
    count = rng.integers(1, 6, n + 5000) if several else np.ones(n + 5000, dtype=int)
    labels = rng.choice(n_labels, count.sum(), p=frequencies(n_labels))
    parts = np.ones(len(labels)), labels, np.concatenate([[0], count.cumsum()])
    Y = sparse.csr_array(parts, shape=(len(count), n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    X = (Y @ means + 0.7 * rng.standard_normal((len(count), 128))).astype(np.float32)
    return (X[:n], Y[:n], X[n:], Y[n:]) if several else (X[:n], labels[:n], X[n:], labels[n:])


def public(path: Path, n: int) -> Task:
    """Letters or Isolet, in random order."""
    with np.load(path) as archive:
        X, y = archive["X"].astype(np.float32), archive["y"]
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], np.unique(y[order], return_inverse=True)[1]
    return X[:n], y[:n], X[n:], y[n:]


def precision(top: np.ndarray, y: Any) -> str:
    """Share of right labels among the first 1, 3 and 5, in percent."""
    Y = y if sparse.issparse(y) else sparse.csr_array((np.ones(len(y)), y, np.arange(len(y) + 1)))
    last = min(top.max() + 1, Y.shape[1])
    rows = np.arange(len(top))
    right = np.stack([Y[rows, np.minimum(column, last - 1)] for column in top.T], axis=1)
    return ", ".join(f"{100 * right[:, :k].mean():.1f}" for k in (1, 3, 5))


def main() -> None:
    """Print a line for each task and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    tasks = {
        "documents, 200,000 x 20,000 words, 20,000 classes": partial(
            documents, 200_000, 20_000, 20_000
        ),
        "rows, 100,000 x 128, 20,000 classes": partial(gaussians, 100_000, 20_000, False),
        "rows, 20,000 x 128, 2,000 labels, several each": partial(gaussians, 20_000, 2_000, True),
        "rows, 20,000 x 128, 200 labels, several each": partial(gaussians, 20_000, 200, True),
        "documents, 10,000 x 2,000 words, 200 classes": partial(documents, 10_000, 200, 2_000),
    }
    if data is not None:
        tasks["letters, 26 classes"] = partial(public, data / "ocr_letters.npz", 40_000)
        tasks["Isolet, 26 classes"] = partial(public, data / "uci_isolet.npz", 5_000)
    for name, make in tasks.items():
        X, y, X_test, y_test = make()
        n_labels = y.shape[1] if sparse.issparse(y) else int(y.max()) + 1
        models: dict[str, Any] = {f"LabelEmbedding({m})": LabelEmbedding(m) for m in (30, 100, 300)}
        if n_labels <= 200:
            logit = LogisticRegression(C=10, max_iter=200)
            models["logit, one against rest"] = OneVsRestClassifier(logit)
        for method, model in models.items():
            start = time.process_time()
            model.fit(X, y)
            middle = time.process_time()
            if isinstance(model, LabelEmbedding):
                top = model.predict_top(X_test, 5)
            else:
                top = np.argsort(-model.decision_function(X_test), axis=1)[:, :5]
            end = time.process_time()
            seconds = f"{middle - start:.1f} s, {end - middle:.1f} s"
            print(f"{name} | {method} | {precision(top, y_test)} | {seconds}", flush=True)


if __name__ == "__main__":
    main()

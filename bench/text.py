"""GEM on a bag of words of a million terms, beside linear classifiers on the raw words.

    python bench/text.py --rows 200000 --terms 1000000 --classes 10 --ridge default 20

Makes documents as text is: term frequencies by Zipf's law, each document's terms partly from the
language at large and partly from a few topics, which classes prefer to different degrees; counts
become tf-idf weights of unit length, float32. Then it fits `GEM` by ``solver="randomized"``, and
`GEMClassifier` if asked for, and prints seconds, peak memory, residuals, and accuracy
on held-out documents beside that of scikit-learn's classifiers on the same words.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier

from eigenfeat import GEM, GEMClassifier

TOPICS_A_CLASS = 6


def documents(
    n: int, d: int, k: int, length: int, seed: int, topical: float
) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """Tf-idf rows (n, d) of unit length and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    n_topics = TOPICS_A_CLASS * k // 2
    preference = rng.dirichlet(np.full(n_topics, 0.15), k)
    start, step = rng.integers(0, d, n_topics), 2 * rng.integers(0, d // 2, n_topics) + 1
    lengths = rng.poisson(length * rng.gamma(4.0, 0.25, n)) + 5
    parts = []
    for first in range(0, n, 20_000):
        rows = slice(first, first + 20_000)
        parts.append(_counts(rng, y[rows], lengths[rows], preference, start, step, d, topical))
    X = sparse.vstack(parts, format="csr")
    frequency = np.bincount(X.indices, minlength=d)
    X.data = np.sqrt(X.data) * np.log(n / np.maximum(frequency[X.indices], 1) + 1).astype("f4")
    owner = np.repeat(np.arange(n), np.diff(X.indptr))
    X.data /= np.sqrt(np.bincount(owner, X.data**2, minlength=n))[owner].astype(np.float32)
    return X, y


def _counts(rng, y, lengths, preference, start, step, d, topical):
    m = len(y)
    owner = np.repeat(np.arange(m), lengths)
    # Zipf's law by the inverse of its distribution function, nearly log-uniform.
    rank = (np.exp(rng.random(len(owner)) * np.log(d)) - 1).astype(np.int64)
    cumulative = preference.cumsum(axis=1)
    topics = [(rng.random((m, 1)) > cumulative[y]).sum(axis=1) for _ in range(2)]
    which = np.where(rng.random(len(owner)) < 0.5, topics[0][owner], topics[1][owner])
    which = np.minimum(which, len(start) - 1)
    of_topic = rng.random(len(owner)) < topical
    # A topic's terms: a permutation of its own of the first tenth of the ranks.
    narrow = (rank**0.8).astype(np.int64)
    term = np.where(of_topic, (start[which] + narrow * step[which]) % d, rank)
    ones = np.ones(len(owner), dtype=np.float32)
    return sparse.coo_matrix((ones, (owner, term)), shape=(m, d)).tocsr()


def peak() -> float:
    """Largest resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def rivals(n: int) -> dict[str, Any]:
    """Linear classifiers that scikit-learn would be asked for."""
    found: dict[str, Any] = {"SGDClassifier (log)": SGDClassifier("log_loss", alpha=1e-6, n_jobs=2)}
    if n <= 30_000:
        found["LogisticRegression"] = LogisticRegression(C=10.0, max_iter=200)
    return found


def _ridge(text: str) -> float | None:
    """A number, or None for the default, which follows the numbers of rows and terms."""
    return None if text == "default" else float(text)


def main() -> None:
    """Make documents, fit, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--terms", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--length", type=int, default=130, help="mean tokens of a document")
    parser.add_argument("--topical", type=float, default=0.1, help="share of a topic's terms")
    parser.add_argument("--directions", type=int, default=10)
    parser.add_argument("--ridge", type=_ridge, nargs="+", default=[None], help="or default")
    parser.add_argument("--threshold", type=float, default=1.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--classifier", action="store_true", help="also fit GEMClassifier")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    held_out = min(10_000, options.rows // 4)
    X, y = documents(
        options.rows + held_out, options.terms, options.classes,
        options.length, options.seed, options.topical,
    )  # fmt: skip
    Z, z = X[options.rows :], y[options.rows :]
    X, y = X[: options.rows], y[: options.rows]
    print(
        f"{X.shape[0]:,} rows, {X.shape[1]:,} terms ({len(np.unique(X.indices)):,} occur), "
        f"{X.nnz / X.shape[0]:.0f} a row; made in {time.perf_counter() - started:.0f} s, "
        f"{peak():.2f} GB",
        flush=True,
    )
    for ridge in options.ridge:
        fit(options, ridge, X, y, Z, z)
    if not options.no_rivals:
        for name, model in rivals(len(y)).items():
            started = time.perf_counter()
            score = model.fit(X, y).score(Z, z)
            took = time.perf_counter() - started
            print(f"{name}: {took:.1f} s, held-out accuracy {score:.4f}", flush=True)


def fit(options: argparse.Namespace, ridge: float | None, X: Any, y: Any, Z: Any, z: Any) -> None:
    """One ridge: the extractor, or the classifier on top."""
    shared = {
        "ridge": ridge,
        "n_directions": options.directions,
        "threshold": options.threshold,
    }
    speaking = {"n_threads": options.threads, "verbose": 1}
    started, busy = time.perf_counter(), time.process_time()
    if options.classifier:
        model = GEMClassifier(views="gem", gem=GEM(**shared), **speaking).fit(X, y)
        took = time.perf_counter() - started
        values = model.layers_[0].eigenvalues
        result = f"{len(values)} directions, held-out accuracy {model.score(Z, z):.4f}"
    else:
        gem = GEM(solver="randomized", expansion="none", **shared, **speaking).fit(X, y)
        took = time.perf_counter() - started
        values = gem.eigenvalues_
        result = f"{len(values)} directions, largest residual {gem.residuals_.max():.1e}"
    used = time.process_time() - busy
    print(
        f"ridge {'default' if ridge is None else ridge}: {took:.1f} s ({used:.0f} s of processor), "
        f"peak {peak():.2f} GB, "
        f"{result}, "
        f"eigenvalues {values.min(initial=np.inf):.3g} to {values.max(initial=0):.3g}",
        flush=True,
    )


if __name__ == "__main__":
    main()

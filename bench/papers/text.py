"""GEM on documents with a million terms, beside linear classifiers on the words.

    python -m bench.papers.text --samples 6000 --terms 1000000

Simulates documents: term frequencies follow Zipf's law, and each document takes a part of its terms
from topics, which classes prefer to different degrees. Counts become tf-idf weights of unit length,
float32. `RandomizedGEM` with a logit and scikit-learn's classifiers are fitted to them; prints
seconds, peak memory, residuals, and accuracy on held-out documents (GEM paper, section 5).
"""

import argparse
import resource
import time

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline

from eigenfeat import MultinomialLogit
from eigenfeat.gem import RandomizedGEM

TOPICS_PER_CLASS = 3
LENGTH = 130  # mean tokens of a document
TOPICAL = 0.1  # share of a document's tokens that are drawn from the terms of its topics


def documents(n, d, k, seed):
    """Tf-idf rows (n, d) of unit length and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    n_topics = TOPICS_PER_CLASS * k
    preference = rng.dirichlet(np.full(n_topics, 0.15), k)  # small: classes prefer few topics
    start, step = rng.integers(0, d, n_topics), 2 * rng.integers(0, d // 2, n_topics) + 1
    lengths = rng.poisson(LENGTH * rng.gamma(4.0, 0.25, n)) + 5  # the gamma has mean 1
    parts = []
    for first in range(0, n, 20_000):
        rows = slice(first, first + 20_000)
        parts.append(_counts(rng, y[rows], lengths[rows], preference, start, step, d))
    X = sparse.vstack(parts, format="csr")
    frequency = np.bincount(X.indices, minlength=d)
    X.data = np.sqrt(X.data) * np.log(n / np.maximum(frequency[X.indices], 1) + 1).astype("f4")
    owner = np.repeat(np.arange(n), np.diff(X.indptr))
    X.data /= np.sqrt(np.bincount(owner, X.data**2, minlength=n))[owner].astype(np.float32)
    return X, y


def _counts(rng, y, lengths, preference, start, step, d):
    m = len(y)
    owner = np.repeat(np.arange(m), lengths)
    # Zipf's law by the inverse of its distribution function, nearly log-uniform.
    rank = (np.exp(rng.random(len(owner)) * np.log(d)) - 1).astype(np.int64)
    cumulative = preference.cumsum(axis=1)
    topics = [(rng.random((m, 1)) > cumulative[y]).sum(axis=1) for _ in range(2)]
    which = np.where(rng.random(len(owner)) < 0.5, topics[0][owner], topics[1][owner])
    which = np.minimum(which, len(start) - 1)
    of_topic = rng.random(len(owner)) < TOPICAL
    # A topic has its own permutation of the terms, and its ranks are more concentrated.
    narrow = (rank**0.8).astype(np.int64)
    term = np.where(of_topic, (start[which] + narrow * step[which]) % d, rank)
    ones = np.ones(len(owner), dtype=np.float32)
    return sparse.coo_matrix((ones, (owner, term)), shape=(m, d)).tocsr()


def main():
    """Make documents, fit, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--terms", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--directions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n = options.samples
    X, y = documents(n + min(10_000, n // 4), options.terms, options.classes, options.seed)
    models = {
        "RandomizedGEM, MultinomialLogit": make_pipeline(
            RandomizedGEM(n_directions=options.directions),
            MultinomialLogit(tol=1e-3, temperature="auto", ridge_scale="common"),
        ),
        "LogisticRegression": LogisticRegression(C=10.0, max_iter=200),
        "SGDClassifier": SGDClassifier("log_loss", alpha=1e-6),
    }
    for name, model in models.items():
        started = time.process_time()
        model.fit(X[:n], y[:n])
        took = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        score = model.score(X[n:], y[n:])
        print(f"{name}: {took:.1f} s, peak {peak:.2f} GB, held-out accuracy {score:.3f}")
        if name.startswith("Randomized"):
            print(f"largest residual {model[0].residuals_.max():.1e}", flush=True)


if __name__ == "__main__":
    main()

"""CALIMERA as its article describes it, on aeon's MiniRocket (Bilski and Jastrzebska 2023).

At each of 20 times, a ridge classifier is fitted to MiniRocket's features. Its regularisation and
its scores are by leave-one-out. Logistic regression turns the scores into probabilities (in the
article, one sigmoid per class does). A decision costs 1 minus the largest probability, plus a price
in proportion to the time. From the last time to the first, a kernel ridge predicts how much more
it costs to wait, from the scores, the largest score, and its lead over the second. A series is
decided once this prediction is positive. The article leaves the price to the user: here it is the
price with the largest harmonic mean of accuracy and 1 - earliness by the leave-one-out scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

ALPHAS = np.logspace(-3, 3, 10)  # candidates for the ridge
PRICES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # candidates: cost of a whole series
SHORTEST = 9  # length from which MiniRocket can be fitted


class Stage:
    """A ridge classifier of prefixes (n, 1, t), with leave-one-out scores and probabilities."""

    def __init__(self, X: Any, codes: Any, count: int, seed: int) -> None:
        from aeon.transformations.collection.convolution_based import MiniRocket

        self.extract = None
        if X.shape[2] >= SHORTEST:
            self.extract = MiniRocket(n_jobs=1, random_state=seed).fit(X)
        F = self._features(X)
        self.mean, norm = F.mean(axis=0), np.linalg.norm(F - F.mean(axis=0), axis=0)
        self.norm = np.where(norm > 0, norm, 1.0)
        F = (F - self.mean) / self.norm
        target = 2.0 * np.eye(count)[codes] - 1.0
        self.offset = target.mean(axis=0)
        # Leave-one-out scores of ridge regression, by the eigenvalues of the Gram matrix.
        values, vectors = np.linalg.eigh(F @ F.T)
        best = -1.0
        for alpha in ALPHAS:
            inverse = (vectors / (np.maximum(values, 0) + alpha)) @ vectors.T
            dual = inverse @ (target - self.offset)
            scores = target - dual / np.maximum(np.diag(inverse), 1e-12)[:, None]
            right = float(np.mean(scores.argmax(axis=1) == codes))
            if right > best:
                best, self.loo, self.weights = right, scores, F.T @ dual
        likely = LogisticRegression(C=10.0, max_iter=500).fit(self.loo, codes)
        self.probability = likely.predict_proba(self.loo).max(axis=1)

    def _features(self, X: Any) -> Any:
        flat = X[:, 0] if self.extract is None else self.extract.transform(X)
        return np.asarray(flat, dtype=float)

    def scores(self, X: Any) -> Any:
        """Return the scores (n, classes) of new prefixes."""
        return (self._features(X) - self.mean) / self.norm @ self.weights + self.offset


def views(scores: Any) -> Any:
    """Return the inputs of the regressions: scores, lead of the largest, and largest score."""
    top = np.sort(scores, axis=1)
    return np.column_stack([scores, top[:, -1] - top[:, -2], top[:, -1]])


def halters(stages: list[Stage], times: Any, price: float) -> list[Any]:
    """Fit a regression of the additional cost of waiting for each time but the last."""
    costs = np.stack([1 - s.probability for s in stages]) + price * (times / times[-1])[:, None]
    out: list[Any] = [None] * (len(stages) - 1)
    for t in range(len(out) - 1, -1, -1):
        seen = views(stages[t].loo)
        out[t] = KernelRidge(kernel="rbf").fit(seen, costs[t + 1] - costs[t])
        costs[t] = np.where(out[t].predict(seen) < 0, costs[t + 1], costs[t])
    return out


def decided(scores: list[Any], times: Any, rules: list[Any]) -> tuple[Any, Any]:
    """Return the predicted class codes and the times of the decisions."""
    n = len(scores[0])
    code, time, waiting = np.zeros(n, int), np.zeros(n, int), np.ones(n, bool)
    for t, seen in enumerate(scores):
        stop = waiting.copy()
        if t < len(rules):
            stop &= rules[t].predict(views(seen)) > 0
        code[stop], time[stop] = seen[stop].argmax(axis=1), times[t]
        waiting &= ~stop
    return code, time


class Calimera:
    """Classifier with an interface like that of aeon's early classifiers."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Calimera:
        """Fit the stages, and choose the price with the largest harmonic mean."""
        self.classes, codes = np.unique(y, return_inverse=True)
        d = X.shape[2]
        step = max(1, d // min(19, d))
        self.times = np.append(np.arange(max(2, step), d, step), d)
        self.stages = [Stage(X[:, :, :t], codes, len(self.classes), self.seed) for t in self.times]
        scores = [stage.loo for stage in self.stages]
        best = -1.0
        for price in PRICES:
            rules = halters(self.stages, self.times, price)
            code, time = decided(scores, self.times, rules)
            mean = harmonic(float(np.mean(code == codes)), float(time.mean()) / d)
            if mean > best:
                best, self.rules = mean, rules
        return self

    def score(self, X: Any, y: Any) -> tuple[float, float, float]:
        """Return harmonic mean, accuracy and earliness."""
        scores = [s.scores(X[:, :, :t]) for s, t in zip(self.stages, self.times, strict=True)]
        code, time = decided(scores, self.times, self.rules)
        accuracy = float(np.mean(self.classes[code] == y))
        earliness = float(time.mean()) / X.shape[2]
        return harmonic(accuracy, earliness), accuracy, earliness


def harmonic(accuracy: float, earliness: float) -> float:
    """Return the harmonic mean of accuracy and 1 - earliness."""
    total = accuracy + 1 - earliness
    return 2 * accuracy * (1 - earliness) / total if total > 0 else 0.0

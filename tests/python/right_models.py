"""Cases in which a completion's model is the truth, and how often decisions agree there."""

import numpy as np

from eigenfeat.early import GaussianCompletion, MixtureCompletion


def agreement(model, completed, seen, tau):
    """Share of decided rows that agree, and how many are decided."""
    rows = completed.copy()
    rows[:, ~seen] = np.nan
    found = model.decide(rows, tau)
    same = found.label[found.decided] == model.predict(completed)[found.decided]
    return same.mean() if len(same) else 1.0, len(same)


def right_model(random, correlation, mixture, d=8, k=3, n=1500):
    """A completion whose model is the truth, labelled rows, and a function that draws rows."""
    y = random.integers(0, k, n)
    scale = np.linspace(0.6, 1.6, k)[:, None] if mixture else np.ones((k, 1))
    means = random.standard_normal((k, d)) * 0.7
    rows = np.sqrt(correlation) * random.standard_normal((n, 1))
    rows = rows + np.sqrt(1 - correlation) * random.standard_normal((n, d))
    X = means[y] + scale[y] * rows
    kind = MixtureCompletion if mixture else GaussianCompletion
    completion = kind(shrinkage=0).fit(X, y)

    def draw(m):
        part = random.choice(len(completion.mixture_.weights), m, p=completion.mixture_.weights)
        roots = np.linalg.cholesky(completion.mixture_.covariances)
        normal = random.standard_normal((m, d))
        return completion.mixture_.means[part] + np.einsum("nij,nj->ni", roots[part], normal)

    return completion, X, y, draw

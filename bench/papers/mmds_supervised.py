"""The supervised reductions of Table 1 of the paper on max-margin data shifting.

Each method but LDA has a weight of the labels relative to the samples. All methods reduce new
samples without labels. Samples (n, d) have mean 0, codes (n,) are integers; Y (n, k) are one-hot
labels.
"""

import numpy as np
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis


class Supervised:
    """Base class: `directions_` (d, m) maps new samples to features."""

    ITERATIONS = 50

    def __init__(self, n_components, weight):
        self.n_components = n_components
        self.weight = weight

    def fit(self, X, codes):
        """Find the directions."""
        X = np.asarray(X, dtype=np.float64)
        Y = np.eye(int(codes.max()) + 1)[codes]
        # Directions outside of the span of the samples do not change the objectives.
        _, sizes, basis = np.linalg.svd(X, full_matrices=False)
        basis = basis[sizes > 1e-9 * sizes[0]].T
        m = min(self.n_components, basis.shape[1])
        self.directions_ = basis @ self._directions(X @ basis, Y, m)
        return self

    def transform(self, X):
        """Return the features (n, m)."""
        return np.asarray(X, dtype=np.float64) @ self.directions_


class SPPCA(Supervised):
    """Supervised probabilistic PCA (Yu et al. 2006), by expectation-maximisation.

    ``x = A z + noise``, ``y = B z + noise``, z and both noises Gaussian and isotropic; features are
    E[z | x]. The likelihood counts each label `weight` times.
    """

    def _directions(self, X, Y, m):
        n, d = X.shape
        Y = Y - Y.mean(axis=0)
        A = np.linalg.svd(X, full_matrices=False)[2][:m].T
        B = Y.T @ (X @ A) / n
        a, b = (max(float(np.mean(part**2)), 1e-12) for part in (X, Y))
        for _ in range(self.ITERATIONS):
            share = self.weight / b
            inverse = np.linalg.inv(np.eye(m) + A.T @ A / a + share * B.T @ B)
            Z = (X @ A / a + share * Y @ B) @ inverse
            second = n * inverse + Z.T @ Z
            A, B = X.T @ Z @ np.linalg.inv(second), Y.T @ Z @ np.linalg.inv(second)
            a = max((np.sum(X**2) - np.sum((X @ A) * Z)) / (n * d), 1e-12)
            b = max((np.sum(Y**2) - np.sum((Y @ B) * Z)) / (n * Y.shape[1]), 1e-12)
        return A @ np.linalg.inv(a * np.eye(m) + A.T @ A)


class SDRGLM(Supervised):
    """Supervised dimension reduction with generalized linear models (Rish et al. 2008).

    ``X = U V + noise`` with Gaussian noise, and a multinomial logit predicts Y from U. U, V and the
    logit's weights W are updated in turn, each in closed form, as a quadratic bounds the logit's
    loss (Boehning 1992). Features of new samples minimise the error of their reconstruction by V.
    """

    def _directions(self, X, Y, m):
        left, sizes, right = np.linalg.svd(X, full_matrices=False)
        U, V = left[:, :m] * sizes[:m], right[:m]
        W, offset = np.zeros((m, Y.shape[1])), np.log(Y.mean(axis=0))
        unit = np.sum(X**2) / len(X)  # so that the weight has no unit
        for _ in range(self.ITERATIONS):
            scores = U @ W + offset
            wanted = scores + 2 * (Y - softmax(scores, axis=1)) - offset  # the quadratic's minimum
            ridge = 1e-6 * np.eye(m)
            W = np.linalg.solve(U.T @ U / len(U) + ridge * unit, U.T @ wanted / len(U))
            share = 0.5 * self.weight
            gram = V @ V.T / unit + share * W @ W.T + ridge
            U = np.linalg.solve(gram, (X @ V.T / unit + share * wanted @ W.T).T).T
            V = np.linalg.solve(U.T @ U + ridge * unit, U.T @ X)
        return np.linalg.pinv(V)


class SEPCA(Supervised):
    """Supervised exponential family PCA by convex optimisation (Guo 2009), Gaussian samples.

    With M the projector on the features of the samples, relaxed to ``0 <= M <= I`` of trace m, the
    reconstruction error is linear in M, and the logit's loss, written by its dual, is convex in M:

    ``min_M max_L  -tr(X^T M X) - weight / 2 tr((Y - L)^T M (Y - L)) - entropy terms``,

    minimised by Frank and Wolfe's steps, each the leading eigenvectors of the gradient.
    """

    STEPS = 30  # damped fixed-point steps towards the dual's solution L for each M

    def _directions(self, X, Y, m):
        n = len(X)
        gram = X @ X.T * (n / np.sum(X**2))
        M = self._projector(gram, m)
        labels = Y.mean(axis=0) + np.zeros_like(Y)
        for step in range(self.ITERATIONS):
            # Probabilities of a logit with kernel M: L = softmax(weight M (Y - L) + offset).
            for _ in range(self.STEPS):
                given = softmax(self.weight * M @ (Y - labels) + np.log(Y.mean(axis=0)), axis=1)
                labels += (given - labels) / (1 + self.weight)
            gradient = gram + 0.5 * self.weight * (Y - labels) @ (Y - labels).T
            M += 2 / (step + 2) * (self._projector(gradient, m) - M)
        vectors = np.linalg.eigh(M)[1]
        Z = vectors[:, -m:]
        return np.linalg.pinv(Z.T @ X)

    @staticmethod
    def _projector(matrix, m):
        top = np.linalg.eigh(matrix)[1][:, -m:]
        return top @ top.T


def lda(n_components, weight):
    """Linear discriminants, which have no weight."""
    return LinearDiscriminantAnalysis(n_components=n_components)


KINDS = {"LDA": lda, "SPPCA": SPPCA, "SDR-GLM": SDRGLM, "SEPCA": SEPCA}
WEIGHTS = (0.1, 1.0, 10.0, 100.0)  # candidates, of which folds choose one

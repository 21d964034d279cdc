"""A shallow autoencoder of sigmoids, an extractor of the max-margin paper (equation 18)."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin


class Autoencoder(TransformerMixin, BaseEstimator):
    r"""Features ``h = sigmoid(W x + b)`` from which the samples can be reconstructed.

    Minimises, over W, b and c, on samples with each column scaled to (0.1, 0.9),

    .. math:: \frac{1}{n} \sum_n |x_n - \phi(W^T \phi(W x_n + b) + c)|^2 + 2 \alpha |W|^2

    with :math:`\phi` the sigmoid, by L-BFGS from random weights.
    """

    def __init__(self, n_components=10, alpha=1e-4, max_iter=200, tol=1e-6, random_state=0):
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit the weights."""
        X = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = d = X.shape[1]
        self.minimum_, span = X.min(axis=0), np.ptp(X, axis=0)
        self.span_ = np.where(span > 0, span, 1.0)
        scaled, h = self._scaled(X), self.n_components
        bound = np.sqrt(6.0 / (h + d))  # Glorot and Bengio 2010
        W = np.random.RandomState(self.random_state).uniform(-bound, bound, (h, d))
        options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-12}
        found = minimize(
            lambda flat: _objective(scaled, *_parts(flat, h, d), self.alpha),
            np.r_[W.ravel(), np.zeros(h + d)],
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
        self.encoder_, self.encoder_bias_, self.decoder_bias_ = _parts(found.x, h, d)
        return self

    def transform(self, X):
        """Return the hidden units (n, n_components)."""
        X = np.asarray(X)
        hidden = expit(self._scaled(X) @ self.encoder_.T + self.encoder_bias_)
        return hidden.astype(X.dtype if X.dtype == np.float32 else np.float64)

    def inverse_transform(self, H):
        """Reconstruct samples (n, d) from hidden units."""
        scaled = expit(np.asarray(H) @ self.encoder_ + self.decoder_bias_)
        return self.minimum_ + (scaled - 0.1) / 0.8 * self.span_

    def _scaled(self, X):
        return 0.1 + 0.8 * (X - self.minimum_) / self.span_


def _parts(flat, h, d):
    """Return W (h, d), b (h,) and c (d,) as views of a flat vector."""
    return flat[: h * d].reshape(h, d), flat[h * d : h * d + h], flat[h * d + h :]


def _objective(X, W, b, c, alpha):
    """Return value and gradient of equation 18 with a penalty."""
    hidden = expit(X @ W.T + b)
    out = expit(hidden @ W + c)
    error = out - X
    at_out = 2.0 / len(X) * error * out * (1.0 - out)
    at_hidden = (at_out @ W.T) * hidden * (1.0 - hidden)
    value = (error**2).sum() / len(X) + 2.0 * alpha * (W**2).sum()
    for_W = at_hidden.T @ X + hidden.T @ at_out + 4.0 * alpha * W
    return value, np.r_[for_W.ravel(), at_hidden.sum(axis=0), at_out.sum(axis=0)]

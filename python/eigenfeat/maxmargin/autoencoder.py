"""A shallow autoencoder of sigmoids, whose features max-margin shifting improves."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.types import Floats, RandomState, Rows
from eigenfeat._base.validation import FLOATS, MOST
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Iterative,
    StoppedError,
    unchanged_on_error,
    validate_data,
    with_steps,
)

__all__ = ["Autoencoder"]

_Parts = tuple[NDArray[np.float64], ...]
_Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]


class Autoencoder(Iterative, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Features ``h = sigmoid(W x + b)`` from which the samples can be reconstructed.

    Use it as an extractor of `MaxMarginShift`, as in the paper. Set `n_components` first. User
    guide: :doc:`/guide/reduction`.

    Minimises, over W, b, V and c, on samples with each column scaled to (0.1, 0.9),

    .. math:: \frac{1}{n} \sum_n |x_n - \phi(V \phi(W x_n + b) + c)|^2 + \alpha (|W|^2 + |V|^2)

    with :math:`\phi` the sigmoid, by L-BFGS from random weights.

    Parameters
    ----------
    n_components : int >= 1, default=10
        Number of hidden units.
    tied : bool, default=True
        Whether ``V = W^T``, as in the paper.
    alpha : float >= 0, default=1e-4
        Penalty of the weights.
    max_iter : int >= 1, default=200
        Maximum number of L-BFGS iterations; there is no warning when it is reached.
    tol : float > 0, default=1e-6
        Stops when the largest entry of the gradient is smaller.
    random_state : int, RandomState or None, default=0
        For the initial weights.

    Attributes
    ----------
    encoder_ : (n_components, d) array
    encoder_bias_ : (n_components,) array
    decoder_ : (d, n_components) array
    decoder_bias_ : (d,) array
    minimum_, span_ : (d,) arrays
        Samples are scaled to ``0.1 + 0.8 (x - minimum_) / span_``.
    loss_ : float
        The objective.
    n_iter_ : int
    n_features_in_ : int

    See Also
    --------
    MaxMarginShift : Makes it discriminative.

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", AAAI 2016,
    equation 18.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.maxmargin import Autoencoder
    >>> X, _ = load_iris(return_X_y=True)
    >>> Autoencoder(2).fit_transform(X).shape
    (150, 2)
    """

    _saved: ClassVar[dict[str, str]] = {
        "minimum_": "numbers d",
        "span_": "numbers d",
        "encoder_": "numbers h d",
        "encoder_bias_": "numbers h",
        "decoder_": "numbers d h",
        "decoder_bias_": "numbers d",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, MOST, closed="both")],
        "tied": ["boolean"],
        "alpha": [Interval(Real, 0, np.inf, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 10,
        tied: bool = True,
        alpha: float = 1e-4,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: RandomState = 0,
    ) -> None:
        self.n_components = n_components
        self.tied = tied
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @with_steps
    def fit(self, X: ArrayLike, y: object = None) -> Autoencoder:
        """Fit the weights.

        Parameters
        ----------
        X : (n, d) array-like
            Finite samples.
        y : ignored

        Returns
        -------
        Autoencoder
            The estimator itself. If an error is raised, it is unchanged.
        """
        with unchanged_on_error(self):
            self._fit(X)
        return self

    def _fit(self, X: Any) -> None:
        self._validate_params()
        X = validate_data(self, X, dtype=FLOATS).astype(np.float64)
        self.minimum_ = X.min(axis=0)
        span = X.max(axis=0) - self.minimum_
        self.span_ = np.where(span > 0, span, 1.0)
        rows, d, h = self._scaled(X), X.shape[1], int(self.n_components)
        shapes = [(h, d), (h,), (d,)] + ([] if self.tied else [(d, h)])
        random = check_random_state(self.random_state)
        reach = np.sqrt(6.0 / (h + d))  # Glorot and Bengio 2010
        start = [random.uniform(-reach, reach, s) if len(s) == 2 else np.zeros(s) for s in shapes]
        point, self.loss_, self.n_iter_ = self._minimum(
            lambda flat: _objective(rows, _parts(flat, shapes), float(self.alpha)),
            np.concatenate([part.ravel() for part in start]),
        )
        parts = _parts(point, shapes)
        self.encoder_, self.encoder_bias_, self.decoder_bias_ = (part.copy() for part in parts[:3])
        self.decoder_ = self.encoder_.T.copy() if self.tied else parts[3].copy()

    @one_blas_thread()
    def _minimum(
        self, objective: _Objective, start: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float, int]:
        """Where the objective is least, how large it is there, and after how many steps."""
        seen: list[NDArray[np.float64]] = []

        def follow(point: NDArray[np.float64]) -> None:
            seen.append(point.copy())
            del seen[:-1]
            self.n_iter_ += 1
            if self._step_done():
                raise StoppedError

        self.n_iter_ = 0
        options = {"maxiter": int(self.max_iter), "gtol": float(self.tol), "ftol": 1e-12}
        try:
            result = minimize(
                objective, start, jac=True, method="L-BFGS-B", callback=follow, options=options
            )
        except StoppedError:
            return seen[0], objective(seen[0])[0], self.n_iter_
        return result.x, float(result.fun), int(result.nit)

    def transform(self, X: Rows) -> Floats:
        """Return the hidden units, (n, n_components)."""
        check_is_fitted(self, "encoder_")
        rows = validate_data(self, X, dtype=FLOATS, reset=False)
        hidden = expit(self._scaled(rows) @ self.encoder_.T + self.encoder_bias_)
        return np.asarray(hidden, dtype=rows.dtype)

    def inverse_transform(self, H: ArrayLike) -> Floats:
        """Reconstruct samples (n, d) from hidden units."""
        check_is_fitted(self, "encoder_")
        rows = expit(np.asarray(H) @ self.decoder_.T + self.decoder_bias_)
        return np.asarray(self.minimum_ + (rows - 0.1) / 0.8 * self.span_)

    @property
    def _n_features_out(self) -> int:
        return len(self.encoder_)

    def _scaled(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(0.1 + 0.8 * (X - self.minimum_) / self.span_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _parts(flat: NDArray[np.float64], shapes: list[tuple[int, ...]]) -> _Parts:
    """Views of a flat vector, by shape."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return tuple(p.reshape(s) for p, s in zip(np.split(flat, ends), shapes, strict=True))


def _objective(
    X: NDArray[np.float64], parts: _Parts, alpha: float
) -> tuple[float, NDArray[np.float64]]:
    """Value and gradient of equation 18, with penalties."""
    W, b, c = parts[:3]
    V = W.T if len(parts) == 3 else parts[3]
    hidden = expit(X @ W.T + b)
    out = expit(hidden @ V.T + c)
    error = out - X
    at_out = 2.0 / len(X) * error * out * (1.0 - out)
    at_hidden = (at_out @ V) * hidden * (1.0 - hidden)
    value = float((error**2).sum()) / len(X) + alpha * float((W**2).sum() + (V**2).sum())
    for_W = at_hidden.T @ X + 2.0 * alpha * W
    for_V = at_out.T @ hidden + 2.0 * alpha * V
    gradients = [for_W, at_hidden.sum(axis=0), at_out.sum(axis=0)]
    if len(parts) == 3:
        gradients[0] = for_W + for_V.T
    else:
        gradients.append(for_V)
    return value, np.concatenate([gradient.ravel() for gradient in gradients])

"""Joint training of the layers and the logit of a GEM classifier.

Training starts from layers that were solved for one after the other. Gradient steps then change all
directions, offsets and weights together. They lower the log loss of the samples, and of the samples
shifted by a fixed length in the direction that increases their loss most. See `layer_training.hpp`.
"""

from __future__ import annotations

import copy
import operator
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.labels import by_class
from eigenfeat._base.validation import MOST, warn_caller
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.gem import solve_layers
from eigenfeat.linear.logit_problem import temperature
from eigenfeat.moments.class_moments import column_deviations, pooled_mean, shares_and_means
from eigenfeat.samples.blocks import ArrayBlocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from eigenfeat._base.types import ClassWeight, Codes, Floats, RandomState
    from eigenfeat.expansion.features import Layer
    from eigenfeat.gem.gem import GEM
    from eigenfeat.linear.logistic import MultinomialLogit
    from eigenfeat.linear.logit_problem import Logits
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.samples.block_samples import LabelledSamples
    from eigenfeat.samples.labelled import Block

__all__ = ["JointGEMClassifier"]

_Array = NDArray[np.float64]

_MAX_BATCH, _MIN_BATCH = 250, 16  # samples per step
_MIN_STEPS = 40  # per epoch, unless batches would be smaller than `_MIN_BATCH`
_WARM_UP_STEPS = 200  # or a tenth of all steps, if that is less
_OFFSET_RATE = 5.0  # learning rate of offsets, as a multiple of the rate of directions
_STATISTICS_SAMPLES = 4000  # samples that give the means and deviations of the features
_COMPARED_SAMPLES = 1000  # samples whose losses before and after training are compared
_MAX_SAMPLES_WITHOUT_HELD_OUT = 1_500  # of more, a part is held out for the temperature
_HELD_OUT_SHARE, _MIN_HELD_OUT, _MAX_HELD_OUT = 0.1, 300, 5_000  # samples for the temperature


class JointGEMClassifier(GEMClassifier):
    """GEM classifier whose layers and logit are trained together, by gradient steps.

    Use it with many samples of images and signals, where errors matter more than time: on MNIST it
    makes a fifth fewer errors than layers that are fitted one after the other. Tune `perturbation`
    first, then `depth`. User guide: :doc:`/guide/classifier`.

    Training starts from a fitted `GEMClassifier`. Steps then lower the loss of each sample, and of
    the sample shifted by `perturbation` in the direction that increases its loss most.

    Parameters
    ----------
    gem : GEM or None, default=None
        Parameters of the directions; the expansion is "shifted" or "with_input".
    logit : MultinomialLogit or None, default=None
        Parameters of the logit. For the temperature "auto", a tenth of more than 1,500 samples is
        held out from training (300 to 5,000); with fewer, the temperature is 1.
    depth : int >= 1, default=1
        Number of layers.
    hidden_directions : int >= 1 or "auto", default="auto"
        Directions per pair in the layers before the last. "auto": at most 20.
    epochs : int >= 0, default=24
        Passes over the samples during joint training.
    perturbation : float >= 0, default=0.15
        Length of the adversarial shifts, relative to the root of the total variance; 0.2 suits
        images of centred objects, .004 suited Covertype.
    learning_rate : float > 0, default=0.02
        Typical relative change of directions and weights in a step.
    categorical_features : "from_dtype" or None, default="from_dtype"
        As in :class:`GEMClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied into `sample_weight`.
    n_threads : int or None, default=None
        Number of threads; None means all.
    verbose : int, default=0
        1 prints a line for each step on stderr.
    random_state : int, RandomState or None, default=0
        Seed of the layers, the logit and the order of the samples in each epoch.

    Attributes
    ----------
    layers_ : list of Layer
        Directions and offsets after the training; eigenvalues and pairs from before the training.
    logit_ : MultinomialLogit
        The classifier on the last layer's features. Other attributes are as in
        :class:`GEMClassifier`; `penalty_` is the penalty of the logit before the training.

    Raises
    ------
    ValueError
        If blocks cannot be read in any order, or loss or weights do not stay finite.

    Warns
    -----
    ConvergenceWarning
        If the loss more than doubles during training.

    See Also
    --------
    GEMClassifier : Layers fitted one after the other.
    sklearn.neural_network.MLPClassifier : Layers that are trained from random weights.

    References
    ----------
    N. Karampatziakis and P. Mineiro, ICML 2014, section 4.1 (depth). I. Goodfellow, J. Shlens and
    C. Szegedy, ICLR 2015 (shifts).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat.gem import JointGEMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = JointGEMClassifier(epochs=10).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GEMClassifier._parameter_constraints,
        "epochs": [Interval(Integral, 0, MOST, closed="both")],
        "perturbation": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        gem: GEM | None = None,
        logit: MultinomialLogit | None = None,
        depth: int = 1,
        hidden_directions: int | str = "auto",
        epochs: int = 24,
        perturbation: float = 0.15,
        learning_rate: float = 0.02,
        categorical_features: str | None = "from_dtype",
        class_weight: ClassWeight = None,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            gem=gem,
            logit=logit,
            depth=depth,
            hidden_directions=hidden_directions,
            categorical_features=categorical_features,
            class_weight=class_weight,
            random_state=random_state,
            n_threads=n_threads,
            verbose=verbose,
        )
        self.epochs = epochs
        self.perturbation = perturbation
        self.learning_rate = learning_rate

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid, also those of `gem` and `logit`."""
        super().check_parameters()
        gem = self.nested("gem")
        if gem.expansion not in ("auto", "shifted", "with_input"):
            raise ValueError(
                "expansion: expected 'auto', 'shifted' or 'with_input' for joint training, whose "
                f"steps need smooth features, got {gem.expansion!r}"
            )

    def prepare(
        self, X: Any, y: Any, sample_weight: Any, *, moments: bool = True
    ) -> LabelledSamples:
        """Check samples, labels and weights; set the attributes that describe the input.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, as in `fit`.
        y : (n,) array-like or None
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like or None
            Nonnegative weights of the samples.
        moments : bool, default=True
            Whether the first pass over blocks also accumulates the moments.

        Returns
        -------
        LabelledSamples
            Complete samples with their labels and weights.

        Raises
        ------
        ValueError
            If the samples cannot be read in any order.
        """
        samples = super().prepare(X, y, sample_weight, moments=moments)
        blocks = getattr(samples, "blocks", None)
        if blocks is not None and not isinstance(blocks, ArrayBlocks):
            raise ValueError(
                "X: expected samples that can be read in any order (arrays and memory-mapped files "
                f"can) for joint training, got {type(blocks).__name__}"
            )
        return samples

    def fit_samples(
        self, samples: LabelledSamples, moments: ClassMoments | None = None
    ) -> JointGEMClassifier:
        """Fit to prepared samples, and hold out a part for the temperature.

        Parameters
        ----------
        samples : LabelledSamples
            Samples as `prepare` returns them.
        moments : ClassMoments, optional
            Not used: training computes the moments of its part of the samples.

        Returns
        -------
        JointGEMClassifier
            The estimator itself.
        """
        given, train, held_out = self.nested("logit").temperature, samples, None
        if given == "auto" and samples.n_samples > _MAX_SAMPLES_WITHOUT_HELD_OUT:
            train, held_out = (samples.subset(part) for part in self._split(samples))
        layers, first = solve_layers(train, self.depth_options(), self._log)
        logit = self.fit_logit(train, layers)
        layers, logit = self._train(train, first, layers, logit)
        T = 1.0 if given == "auto" else float(given)
        if held_out is not None:
            features = held_out.mapped(layers)
            T = temperature(features.reduce(_logits_of, operator.add, logit))
        logit.temperature_ = T
        logit.coef_, logit.intercept_ = logit.coef_ / T, logit.intercept_ / T
        self._log(f"temperature: {T:.3g}")
        self.keep(samples, layers, logit)
        return self

    def logit_options(self) -> MultinomialLogit:
        """Return the logit before the training, with temperature 1.

        Returns
        -------
        MultinomialLogit
        """
        return super().logit_options().set_params(temperature=1.0)

    def _is_smooth(self) -> bool:
        return True

    def _most_steps(self) -> int:
        return super()._most_steps() + self.epochs

    def _split(self, samples: LabelledSamples) -> tuple[Codes, Codes]:
        """Draw indices of training and held-out samples, stratified by class."""
        codes, n = samples.codes, samples.n_samples
        order = by_class(check_random_state(self.random_state).permutation(n), codes)
        count = int(np.clip(_HELD_OUT_SHARE * n, _MIN_HELD_OUT, _MAX_HELD_OUT))
        mask = np.zeros(n, dtype=bool)
        mask[order[((np.arange(count) + 0.5) * n / count).astype(np.intp)]] = True
        for code in np.flatnonzero(np.bincount(codes[~mask], minlength=len(samples.classes)) == 0):
            mask[codes == code] = False  # training needs samples of every class
        return np.flatnonzero(~mask), np.flatnonzero(mask)

    def _train(
        self, samples: LabelledSamples, first: GEM, layers: list[Layer], logit: MultinomialLogit
    ) -> tuple[list[Layer], MultinomialLogit]:
        """Trained copies of the layers and the logit; `first` is the fitted GEM of the first layer.

        The core trains on centred and scaled samples ``(x - m) / s``, so that steps do not depend
        on the origins and units of the columns.
        """
        if not all(len(layer.offset) for layer in layers):
            self._log("joint training: there are no directions")
            return layers, copy.copy(logit)
        n, draw = samples.n_samples, check_random_state(self.random_state)
        steps = _Steps.of(samples, first, self.perturbation, self.n_threads)
        order = draw.permutation(n)
        known, compared = np.sort(order[:_STATISTICS_SAMPLES]), order[:_COMPARED_SAMPLES]
        rows = steps.units.rows(samples.take(known).X, steps.n_threads)
        start = steps.units, layers, logit, rows, self.n_threads
        before = sum(steps.step(_to_core(*start), compared, 0.0))
        training = _to_core(*start)
        n_steps = -(-n // int(np.clip(n // _MIN_STEPS, _MIN_BATCH, _MAX_BATCH)))  # per epoch
        rates = _learning_rates(self.learning_rate, self.epochs * n_steps)
        for epoch in range(self.epochs):
            started, losses = time.perf_counter(), np.zeros(2)
            for batch in np.array_split(draw.permutation(n), n_steps):
                losses += np.multiply(steps.step(training, batch, next(rates)), len(batch) / n)
            if not np.isfinite(losses).all():
                raise self._not_finite()
            plain, shifted = losses
            self._log(
                f"epoch {epoch + 1}: loss {plain:.3g}, {shifted:.3g} of shifted samples", started
            )
            if self._step_done():
                break
        with np.errstate(all="ignore"):  # values that are not finite raise an error below
            trained = _from_core(training, steps.units, layers, logit)
        # After `_from_core` has read the weights: a step of rate 0 may change them by rounding.
        after = sum(steps.step(training, compared, 0.0))
        if not (np.isfinite(after) and _is_finite(*trained)):
            raise self._not_finite()
        if after > 2.0 * before + 1e-3:
            warn_caller(
                f"epochs: the loss has grown from {before:.3g} to {after:.3g}; try a smaller "
                "learning_rate or perturbation, or more epochs",
                ConvergenceWarning,
            )
        return trained

    def _not_finite(self) -> ValueError:
        return ValueError(
            "perturbation, learning_rate: expected values with which loss and weights stay finite, "
            f"got {self.perturbation:g} and {self.learning_rate:g}"
        )


def _logits_of(block: Block, logit: MultinomialLogit) -> Logits:
    """A list of one tuple: logits (n, k), label codes and weights of a block of features."""
    z = np.asarray(logit.decision_function(block.X))
    if z.ndim == 1:
        z = np.column_stack([np.zeros_like(z), z])
    return [(z, np.asarray(block.y), block.weight)]


def _learning_rates(rate: float, n_steps: int) -> Iterator[float]:
    """Learning rates of the steps: they increase at first, then decrease linearly to zero."""
    warm_up = max(1, min(_WARM_UP_STEPS, n_steps // 10))
    for step in range(n_steps):
        yield rate * min(1.0, (step + 1) / warm_up) * (1.0 - step / n_steps)


@dataclass(frozen=True)
class _Steps:
    """Training steps on batches of samples."""

    samples: LabelledSamples
    units: _Units
    unit_weight: float  # mean weight of a sample
    shift: float  # length of the shifts
    n_threads: int

    @classmethod
    def of(
        cls, samples: LabelledSamples, first: GEM, perturbation: float, n_threads: int | None
    ) -> _Steps:
        moments, column_scale = first.moments_, first.column_scale_
        labels, shares, means = shares_and_means(moments)
        deviations = column_deviations(moments)
        scale = column_scale * _magnitude(deviations / column_scale)
        return cls(
            samples,
            _Units(pooled_mean(shares, means), scale, np.where(deviations == 0.0, np.inf, scale)),
            sum(moments.weight(c) for c in labels) / samples.n_samples,
            _shift(perturbation, deviations / scale),
            threads.resolve(n_threads),
        )

    def step(self, training: core.LayerTraining, batch: Codes, rate: float) -> tuple[float, float]:
        """Take a step; return the losses before it of the samples and of the shifted samples."""
        part = self.samples.take(np.sort(batch))
        weight = None
        if part.weight is not None:
            weight = (part.weight / self.unit_weight).astype(np.float32)
        labels = np.asarray(part.y, dtype=np.int32)
        X = self.units.rows(part.X, self.n_threads)
        losses = training.step(X, labels, weight, self.shift, rate, self.n_threads)
        return losses.loss, losses.shifted


def _is_finite(layers: list[Layer], logit: MultinomialLogit) -> bool:
    parts = [logit.coef_, logit.intercept_]
    for layer in layers:
        parts += [layer.directions, layer.offset]
    return all(bool(np.isfinite(part).all()) for part in parts)


def _magnitude(deviations: _Array) -> float:
    """The power of 1024 nearest to the root mean square; float32 holds squares of the quotients."""
    size = _root_mean_square(deviations)
    return float(1024.0 ** np.round(np.log(size) / np.log(1024.0))) if size > 0.0 else 1.0


def _shift(perturbation: float, deviations: _Array) -> float:
    """Length of the shifts; ValueError if float32 cannot hold it."""
    length = perturbation * float(np.linalg.norm(deviations))
    if not length < float(np.finfo(np.float32).max):
        raise ValueError(
            "perturbation: expected a number whose product with the columns' deviation, "
            f"{float(np.linalg.norm(deviations)):.3g}, float32 can hold, got {perturbation:g}"
        )
    return length


@dataclass(frozen=True)
class _Units:
    """Centres and scales of the columns."""

    mean: _Array
    scale: _Array
    divisors: _Array  # scales, infinite for constant columns, which have rounding errors only

    def rows(self, X: Floats | csr_array, n_threads: int) -> NDArray[np.float32]:
        """Dense samples, centred in their own precision and scaled; constant columns are 0."""
        part = X if isinstance(X, np.ndarray) else X.toarray()
        part = np.ascontiguousarray(part)
        return core.standardised_rows(part, self.mean, self.divisors, n_threads)

    def inward(self, V: _Array, offset: _Array) -> tuple[_Array, _Array]:
        """Weights V (d, m) and offsets (m,) for the result of `rows`, from those for samples."""
        return V * self.scale[:, None], offset + self.mean @ V

    def outward(self, V: _Array, offset: _Array) -> tuple[_Array, _Array]:
        """The inverse of `inward`."""
        V = V / self.scale[:, None]
        return V, offset - self.mean @ V


# ---- between fitted layers and the training in the core ------------------------------------------


def _to_core(
    units: _Units,
    layers: Sequence[Layer],
    logit: MultinomialLogit,
    rows: NDArray[np.float32],
    n_threads: int | None,
) -> core.LayerTraining:
    """Start a training; `rows` give the means and deviations of the features."""
    directions, offset = units.inward(layers[0].directions, layers[0].offset)
    directions[np.isinf(units.divisors)] = 0.0  # normalised steps would enlarge rounding errors
    own = [replace(layers[0], directions=directions, offset=offset), *layers[1:]]
    features = rows
    for layer in own:
        features = layer.transform(features.astype(np.float64), n_threads).astype(np.float32)
    centre = features.mean(axis=0, dtype=np.float64)
    deviations = features.std(axis=0, dtype=np.float64)
    weights, intercept = logit.coef_.T.copy(), logit.intercept_
    if weights.shape[1] == 1:
        weights = np.hstack([-weights, weights]) / 2
        intercept = np.array([-0.5, 0.5]) * intercept
    columns = slice(_n_columns(layers, logit))
    if columns.stop:
        weights[columns], intercept = units.inward(weights[columns], intercept)
    # Steps are relative to weights of standardised features, and zero for constant features. An
    # input column is compared with its own size, other features with the largest deviation.
    compared = np.abs(centre) + deviations
    compared[columns.stop :] = deviations[columns.stop :].max(initial=0.0)
    varies = deviations > 1e-6 * compared
    size = _root_mean_square(weights[varies] * deviations[varies, None])
    rates = np.zeros(len(weights))
    rates[varies] = size / deviations[varies]
    sizes = [_root_mean_square(layer.directions) for layer in own]
    return core.LayerTraining(
        directions=[_single(layer.directions) for layer in own],
        offsets=[_single(layer.offset) for layer in own],
        powers=[list(layer.powers) for layer in own],
        rates=[(size, _OFFSET_RATE * size) for size in sizes],
        weights=_single(weights),
        intercept=_single(intercept),
        centre=_single(centre),
        weight_rates=_single(rates),
        intercept_rate=size,
        includes_input=layers[-1].include_input,
    )


def _from_core(
    training: core.LayerTraining,
    units: _Units,
    layers: Sequence[Layer],
    logit: MultinomialLogit,
) -> tuple[list[Layer], MultinomialLogit]:
    """Layers and logit after a training, in the units of the samples."""
    result = []
    for number, layer in enumerate(layers):
        found = training.layer(number, *layer.directions.shape)
        directions, offset = found.matrix.astype(np.float64), found.offset.astype(np.float64)
        if number == 0:
            directions, offset = units.outward(directions, offset)
        result.append(replace(layer, directions=directions, offset=offset))
    k, p = logit.coef_.shape
    last = training.logit(p, max(k, 2))
    weights, intercept = last.matrix.astype(np.float64), last.offset.astype(np.float64)
    columns = slice(_n_columns(layers, logit))
    if columns.stop:
        weights[columns], intercept = units.outward(weights[columns], intercept)
    if k == 1:
        weights, intercept = weights[:, 1:] - weights[:, :1], intercept[1:] - intercept[:1]
    trained = copy.copy(logit)
    trained.coef_, trained.intercept_ = np.ascontiguousarray(weights.T), intercept
    return result, trained


def _n_columns(layers: Sequence[Layer], logit: MultinomialLogit) -> int:
    """Number of the logit's features that are columns of the samples."""
    return int(logit.coef_.shape[1]) - layers[0].width if len(layers) == 1 else 0


def _single(values: _Array) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)


def _root_mean_square(values: _Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0

"""Layers of a GEM classifier and its logit, improved together after each has been fitted.

Each layer's directions are solved for without regard to what comes after them. From there, gradient
steps lower the log loss in all directions, offsets and weights at once, of samples and of samples
that are shifted by a fixed length to where their loss is larger. See `layer_training.hpp`.
"""

from __future__ import annotations

import copy
import operator
import time
from collections.abc import Callable, Sequence
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
from eigenfeat._base.validation import MOST, warn_caller
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.layers import solve_layers
from eigenfeat.linear.held_out import temperature
from eigenfeat.moments.class_moments import column_deviations, pooled_mean, shares_and_means
from eigenfeat.samples.blocks import ArrayBlocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from eigenfeat._base.types import ClassWeight, Codes, Floats, RandomState
    from eigenfeat.expansion.features import Layer
    from eigenfeat.gem.gem import GEM
    from eigenfeat.linear.held_out import Logits
    from eigenfeat.linear.logistic import MultinomialLogit
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.samples.blocks import Block
    from eigenfeat.samples.labelled import LabelledSamples

__all__ = ["JointGEMClassifier"]

_Array = NDArray[np.float64]

_BATCH = 250  # samples of a step, fewer of small sets
_LEAST_BATCH, _LEAST_STEPS = 16, 40  # of an epoch
_WARM_UP = 200  # steps, at most a tenth of all
_OFFSET_RATE = 5.0  # times that of directions: offsets add up what many columns do
_SAMPLE = 4000  # samples whose features' means and deviations are taken
_CHECKED = 1000  # of them whose losses before and after are compared
_MAX_SAMPLES_WITHOUT_HELD_OUT = 1_500  # for the temperature
_SHARE_HELD_OUT, _LEAST_HELD_OUT, _MOST_HELD_OUT = 0.1, 300, 5_000


class JointGEMClassifier(GEMClassifier):
    """GEM classifier whose layers and logit are trained together, by gradient steps.

    Use it with many samples of images and signals, where errors matter more than time: on MNIST it
    makes a fifth fewer errors than the same layers fitted one after the other. Tune `perturbation`
    first, then `depth`. User guide: :doc:`/guide/classifier`.

    `GEMClassifier` gives the start. Steps then lower the loss of each sample
    and of the sample shifted by `perturbation` in the direction that increases its loss most.

    Parameters
    ----------
    gem : GEM or None, default=None
        As in :class:`GEMClassifier`. The expansion is "shifted".
    logit : MultinomialLogit or None, default=None
        As in :class:`GEMClassifier`. With the default temperature "auto", a tenth of the samples
        (300 to 5,000) has no part in the training; it decides the temperature, which is 1 with at
        most 1,500 samples.
    depth : int >= 1, default=1
        Number of layers.
    hidden_directions : int >= 1 or "auto", default="auto"
        As in :class:`GEMClassifier`.
    hidden_ridge : float >= 0, "auto" or None, default=None
        As in :class:`GEMClassifier`.
    epochs : int >= 0, default=24
        Passes over the samples in which all layers are improved together.
    perturbation : float >= 0, default=0.15
        Length of the adversarial shifts, relative to the root of the total variance. 0.2 is right
        for images of centred objects, and .004 was for Covertype.
    learning_rate : float > 0, default=0.02
        Typical relative change of directions and weights in a step.
    categorical_features : "from_dtype" or None, default="from_dtype"
        As in :class:`GEMClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied into `sample_weight`.
    random_state : int, RandomState or None, default=0
        Seed, also of the order of samples.
    n_threads : int or None, default=None
        Number of threads; None means all.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    layers_ : list of Layer
        Directions, offsets, eigenvalues and pairs of each layer; eigenvalues are those before the
        training.
    logit_ : MultinomialLogit
        The classifier on the last layer's features.
    penalty_ : float
        Penalty of the logit that the training starts from.
    temperature_ : float
        Temperature by which the logits are divided.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : (d,) array of str
        Names of the input features, if they have names.

    Raises
    ------
    ValueError
        As `GEMClassifier`; with sparse samples of very many columns or with blocks that cannot be
        read in any order; and if loss or weights do not stay finite.

    Warns
    -----
    ConvergenceWarning
        If the loss has more than doubled in the training.

    See Also
    --------
    GEMClassifier : The start, without training.
    sklearn.neural_network.MLPClassifier : Layers that are trained from random weights.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014, section 4.1 (depth). I. Goodfellow, J. Shlens and C. Szegedy, "Explaining and
    harnessing adversarial examples", ICLR 2015 (shifts).

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
        hidden_ridge: float | str | None = None,
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
            hidden_ridge=hidden_ridge,
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
        if gem.expansion not in ("auto", "shifted"):
            raise ValueError(
                "expansion: expected 'auto' or 'shifted' for joint training, whose steps need "
                f"smooth features, got {gem.expansion!r}"
            )

    def prepare(
        self, X: Any, y: Any, sample_weight: Any, *, moments: bool = True
    ) -> LabelledSamples:
        """As `GEMClassifier.prepare`, for samples that can be read in any order."""
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
        """Fit to prepared samples, some of which decide the temperature.

        Parameters
        ----------
        samples : LabelledSamples
            Samples as `prepare` returns them.
        moments : ClassMoments, optional
            Not used: the moments are those of the samples to train on.

        Returns
        -------
        JointGEMClassifier
            The estimator itself.
        """
        asked, train, held_out = self.nested("logit").temperature, samples, None
        if asked == "auto" and samples.n_samples > _MAX_SAMPLES_WITHOUT_HELD_OUT:
            train_rows, held_rows = self._split(samples)
            train, held_out = samples.subset(train_rows), samples.subset(held_rows)
        layers, first = solve_layers(train, self.depth_options(), self._log)
        logit = self.fit_logit(train, layers)
        layers, logit = self._trained(train, first, layers, logit)
        T = 1.0 if asked == "auto" else float(asked)
        if held_out is not None:
            include_input = self.nested("gem").include_input
            features = held_out.mapped(layers, include_input=include_input)
            T = temperature(features.reduce(_logits_of, operator.add, logit))
        logit.temperature_ = T
        logit.coef_, logit.intercept_ = logit.coef_ / T, logit.intercept_ / T
        self._log(f"temperature: {T:.3g}")
        self.keep(samples, layers, logit)
        return self

    def logit_options(self) -> MultinomialLogit:
        """The logit at the start, whose weights are not divided by a temperature."""
        return super().logit_options().set_params(temperature=1.0)

    def _is_smooth(self) -> bool:
        return True

    def _most_steps(self) -> int:
        return super()._most_steps() + self.epochs

    def _split(self, rows: LabelledSamples) -> tuple[Codes, Codes]:
        """Numbers of the samples to train on and of those held out, drawn class by class."""
        codes, n = rows.codes, rows.n_samples
        drawn = check_random_state(self.random_state).permutation(n)
        order = drawn[np.argsort(codes[drawn], kind="stable")]
        count = int(np.clip(_SHARE_HELD_OUT * n, _LEAST_HELD_OUT, _MOST_HELD_OUT))
        mask = np.zeros(n, dtype=bool)
        mask[order[((np.arange(count) + 0.5) * n / count).astype(np.intp)]] = True
        for code in np.flatnonzero(np.bincount(codes[~mask], minlength=len(rows.classes)) == 0):
            mask[codes == code] = False  # every class is trained on
        return np.flatnonzero(~mask), np.flatnonzero(mask)

    def _trained(
        self, samples: LabelledSamples, first: GEM, layers: list[Layer], logit: MultinomialLogit
    ) -> tuple[list[Layer], MultinomialLogit]:
        """Layers and logit after the epochs."""
        if not all(len(layer.offset) for layer in layers):
            self._log("joint training: there are no directions")
            return layers, copy.copy(logit)
        settings = Joint(
            self.epochs, self.perturbation, self.learning_rate, self.random_state, self.n_threads
        )

        def done(text: str, begun: float) -> bool:
            self._log(text, begun)
            return self._step_done()

        return train_jointly(
            settings, samples, first.moments_, first.column_scale_, layers, logit, done
        )


def _logits_of(block: Block, logit: MultinomialLogit) -> Logits:
    """Logits (n, k), labels' indices and weights of one block of features; lists add up."""
    z = np.asarray(logit.decision_function(block.X))
    if z.ndim == 1:
        z = np.column_stack([np.zeros_like(z), z])
    return [(z, np.asarray(block.y), block.weight)]


@dataclass(frozen=True)
class Joint:
    """How layers are trained.

    Attributes
    ----------
    epochs : int
        Passes over the rows.
    perturbation : float
        Length of the shifts, relative to the root of the scaled columns' total variance.
    learning_rate : float
        Typical change of an array's entries in a step, relative to their root mean square.
    random_state : int, RandomState or None
        Seed of the order of rows.
    n_threads : int or None
    """

    epochs: int
    perturbation: float
    learning_rate: float
    random_state: RandomState
    n_threads: int | None


def train_jointly(
    settings: Joint,
    rows: LabelledSamples,
    moments: ClassMoments,
    column_scale: _Array,
    layers: Sequence[Layer],
    logit: MultinomialLogit,
    done: Callable[[str, float], bool],
) -> tuple[list[Layer], MultinomialLogit]:
    """Layers and logit after so many epochs, from those given, which stay as they are.

    The moments are those of the rows, whatever they are conditioned on. `done` is told of each
    epoch, and when it began; it returns whether to stop. In the core rows are centred and scaled,
    ``(x - m) / s``, so that steps do not depend on the columns' origins and units.

    Raises
    ------
    ValueError
        If the loss or the weights are no longer finite, or shifts are beyond float32.
    """
    steps = _Steps.of(settings, rows, moments, column_scale)
    draw = check_random_state(settings.random_state)
    first = draw.permutation(rows.n_samples)
    sample = steps.units.rows(rows.take(np.sort(first[:_SAMPLE])).X, steps.n_threads)
    started = _Start.of(steps.units, layers, logit, sample, settings.n_threads)
    before = sum(steps.take(started.training(), first[:_CHECKED], 0.0))
    training = started.training()
    _train(settings, steps, training, draw, done)
    with np.errstate(all="ignore"):  # what is not finite is refused below
        trained = started.finished(training, layers, logit)
    after = sum(steps.take(training, first[:_CHECKED], 0.0))  # moves rounding errors: comes last
    if not (np.isfinite(after) and _is_finite(*trained)):
        raise _no_numbers(settings)
    if after > 2.0 * before + 1e-3:
        message = f"epochs: the loss has grown from {before:.3g} to {after:.3g}"
        advice = "try a smaller learning_rate or perturbation, or more epochs"
        warn_caller(f"{message}; {advice}", ConvergenceWarning)
    return trained


def _train(
    settings: Joint,
    steps: _Steps,
    training: core.LayerTraining32,
    draw: np.random.RandomState,
    done: Callable[[str, float], bool],
) -> None:
    """All epochs, or those before `done` says stop."""
    n = steps.rows.n_samples
    n_steps = -(-n // int(np.clip(n // _LEAST_STEPS, _LEAST_BATCH, _BATCH)))  # of an epoch
    schedule = _Schedule(settings.learning_rate, settings.epochs * n_steps)
    for epoch in range(settings.epochs):
        begun, losses = time.perf_counter(), np.zeros(2)
        for some in np.array_split(draw.permutation(n), n_steps):
            of_step = steps.take(training, some, schedule.next())
            losses += np.multiply(of_step, len(some) / n)
        if not np.all(np.isfinite(losses)):
            raise _no_numbers(settings)
        text = f"epoch {epoch + 1}: loss {losses[0]:.3g}, {losses[1]:.3g} of shifted rows"
        if done(text, begun):
            return


@dataclass(frozen=True)
class _Steps:
    """Steps of some rows each."""

    rows: LabelledSamples
    units: _Units
    unit_weight: float  # mean of the rows' weights
    shift: float
    n_threads: int

    @classmethod
    def of(
        cls, settings: Joint, rows: LabelledSamples, moments: ClassMoments, column_scale: _Array
    ) -> _Steps:
        labels, shares, means = shares_and_means(moments)
        deviations = column_deviations(moments)
        scale = column_scale * _magnitude(deviations / column_scale)
        return cls(
            rows,
            _Units(pooled_mean(shares, means), scale, np.where(deviations == 0.0, np.inf, scale)),
            sum(moments.weight(c) for c in labels) / rows.n_samples,
            _shift(settings.perturbation, deviations / scale),
            threads.resolve(settings.n_threads),
        )

    def take(self, training: core.LayerTraining32, some: Codes, rate: float) -> tuple[float, float]:
        """Take a step; the losses of its rows, as they are and shifted, before it."""
        part = self.rows.take(np.sort(some))
        weight = None
        if part.weight is not None:
            weight = (part.weight / self.unit_weight).astype(np.float32)
        labels = np.asarray(part.y, dtype=np.int32)
        X = self.units.rows(part.X, self.n_threads)
        return training.step(X, labels, weight, self.shift, rate, self.n_threads)


def _no_numbers(settings: Joint) -> ValueError:
    return ValueError(
        "perturbation, learning_rate: expected values with which loss and weights stay finite, got "
        f"{settings.perturbation:g} and {settings.learning_rate:g}"
    )


def _is_finite(layers: list[Layer], logit: MultinomialLogit) -> bool:
    parts = [logit.coef_, logit.intercept_]
    for layer in layers:
        parts += [layer.directions, layer.offset]
    return all(bool(np.isfinite(part).all()) for part in parts)


def _magnitude(deviations: _Array) -> float:
    """The power of 1024 next to the root mean square: float32 holds squares of what remains."""
    size = _root_mean_square(deviations)
    return float(1024.0 ** np.round(np.log(size) / np.log(1024.0))) if size > 0.0 else 1.0


def _shift(perturbation: float, deviations: _Array) -> float:
    """Length of the shifts; an error where it is no float32."""
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
    divisors: _Array  # scales, infinite in constant columns: rounding errors are nothing to learn

    def rows(self, X: Floats | csr_array, n_threads: int) -> NDArray[np.float32]:
        """Rows, dense, centred in their own precision, and scaled; constant columns are 0."""
        part = X if isinstance(X, np.ndarray) else X.toarray()
        part = np.ascontiguousarray(part)
        return core.standardised_rows(part, self.mean, self.divisors, n_threads)


class _Schedule:
    """Rates of the steps: up during the first ones, then down to zero in a line."""

    def __init__(self, rate: float, n_steps: int) -> None:
        self._rate = rate
        self._all, self._done = n_steps, 0
        self._warm_up = max(1, min(_WARM_UP, n_steps // 10))

    def next(self) -> float:
        self._done += 1
        up = min(1.0, self._done / self._warm_up)
        return self._rate * up * (1.0 - (self._done - 1) / self._all)


@dataclass(frozen=True)
class _Start:
    """What training begins with, in the units of centred and scaled rows."""

    units: _Units
    directions: list[_Array]
    offsets: list[_Array]
    powers: list[list[int]]
    weights: _Array  # (p, k)
    intercept: _Array  # (k,)
    centre: _Array  # (p,)
    deviations: _Array  # (p,)
    includes_input: bool
    n_input: int  # features of f that are columns of the rows

    @classmethod
    def of(
        cls,
        units: _Units,
        layers: Sequence[Layer],
        logit: MultinomialLogit,
        sample: NDArray[np.float32],
        n_threads: int | None,
    ) -> _Start:
        """From fitted layers; features' means and deviations are those of a sample of rows."""
        first = layers[0]
        directions = [first.directions * units.scale[:, None]]
        offsets = [first.offset + units.mean @ first.directions]
        directions += [layer.directions for layer in layers[1:]]
        offsets += [layer.offset for layer in layers[1:]]
        includes_input = logit.coef_.shape[1] > layers[-1].width
        n_input = units.mean.size if includes_input and len(layers) == 1 else 0
        weights, intercept = logit.coef_.T, logit.intercept_
        if weights.shape[1] == 1:
            weights, intercept = (
                np.hstack([-weights, weights]) / 2,
                np.array([-0.5, 0.5]) * intercept,
            )
        intercept = intercept + units.mean[:n_input] @ weights[:n_input]
        weights = weights.copy()
        weights[:n_input] *= units.scale[:n_input, None]
        features = before = sample
        for layer, own, offset in zip(layers, directions, offsets, strict=True):
            before = features
            moved = replace(layer, directions=own, offset=offset)
            features = moved.transform(before.astype(np.float64), n_threads).astype(np.float32)
        if includes_input:
            features = np.hstack([before, features])
        return cls(
            units,
            directions,
            offsets,
            [list(layer.powers) for layer in layers],
            weights,
            intercept,
            features.mean(axis=0, dtype=np.float64),
            features.std(axis=0, dtype=np.float64),
            includes_input,
            n_input,
        )

    def training(self) -> core.LayerTraining32:
        """The core's training, from the start."""
        sizes = [_root_mean_square(own) for own in self.directions]
        # Steps relative to weights of standardised features; constant ones have none.
        # Columns have units of their own; other features that hardly vary may come to vary much.
        compared = np.abs(self.centre) + self.deviations
        compared[self.n_input :] = self.deviations[self.n_input :].max(initial=0.0)
        moves = self.deviations > 1e-6 * compared
        size = _root_mean_square(self.weights[moves] * self.deviations[moves, None])
        rates = np.zeros(len(self.weights))
        rates[moves] = size / self.deviations[moves]
        return core.LayerTraining32(
            directions=[_single(own) for own in self.directions],
            offsets=[_single(offset) for offset in self.offsets],
            powers=self.powers,
            rates=[(size, _OFFSET_RATE * size) for size in sizes],
            weights=_single(self.weights),
            intercept=_single(self.intercept),
            centre=_single(self.centre),
            weight_rates=_single(rates),
            intercept_rate=size,
            includes_input=self.includes_input,
        )

    def finished(
        self, training: core.LayerTraining32, layers: Sequence[Layer], logit: MultinomialLogit
    ) -> tuple[list[Layer], MultinomialLogit]:
        """Layers and logit in the rows' own units."""
        result = []
        for number, layer in enumerate(layers):
            directions, offset = (
                part.astype(np.float64) for part in training.layer(number, *layer.directions.shape)
            )
            if number == 0:
                directions /= self.units.scale[:, None]
                offset -= self.units.mean @ directions
            result.append(replace(layer, directions=directions, offset=offset))
        weights, intercept = (
            part.astype(np.float64) for part in training.logit(*self.weights.shape)
        )
        weights[: self.n_input] /= self.units.scale[: self.n_input, None]
        intercept -= self.units.mean[: self.n_input] @ weights[: self.n_input]
        if len(logit.coef_) == 1:
            weights, intercept = weights[:, 1:] - weights[:, :1], intercept[1:] - intercept[:1]
        trained = copy.copy(logit)
        trained.coef_, trained.intercept_ = np.ascontiguousarray(weights.T), intercept
        return result, trained


def _single(values: _Array) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)


def _root_mean_square(values: _Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0

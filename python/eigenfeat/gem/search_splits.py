"""What `GEMClassifierCV` does on one pair of training and held-out rows, wherever the rows are."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from eigenfeat.expansion.features import ExpandedRows
from eigenfeat.expansion.layers import Layer, as_layer, layer_features
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.gem import GEM
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.rows import reductions
from eigenfeat.rows.blocks import Block
from eigenfeat.rows.out_of_core import block_moments
from eigenfeat.rows.surveyed import SurveyedBlocks

__all__ = ["ArraySplit", "BlockSplit", "Split", "Trial", "candidate", "held_out_losses"]

Trial = dict[str, Any]
Fits = list[tuple[MultinomialLogit, float]]  # with the seconds that each took

# What selects among directions that are there, or comes after them; all else makes others.
_SELECTS = ("threshold", "n_directions")
_EXPANDS = ("expansion", "powers", "include_input")


class Split(ABC):
    """The candidates on one pair of training and held-out rows, from what they share outward.

    Kinds of rows differ in how layers are fitted to those to train on, how both parts are seen
    through layers, and which logits are scored together.

    Parameters
    ----------
    base : GEMClassifier
        Gives the parameters that a candidate leaves open.
    y, weight : (n,) arrays, or None
        Of the rows to train on, where those do not bring them.
    """

    def __init__(self, base: GEMClassifier, y: Any = None, weight: Any = None) -> None:
        self.base, self.y, self.weight = base, y, weight
        self.scales: dict[str, str] = {}

    def run(self, trials: list[Trial], advance: Callable[[Trial], None]) -> None:
        """Append to every trial's `splits` how it did, group by group."""
        solves = ("penalty", *_SELECTS, *_EXPANDS)
        for same_solution in self._same_solution(trials, solves):
            layers = self._solve(same_solution)
            asked = [
                t["params"].get("include_input", self.base.include_input) for t in same_solution
            ]
            self._project(layers, any(asked))
            for model, mask, same_features in self._same_features(same_solution, layers[-1]):
                train, held = self._features(model, layers, mask)
                for trial, result in self._path(same_features, model, train, held):
                    trial["splits"].append(result | {"n_directions_kept": int(mask.sum())})
                    advance(trial)

    def _same_features(
        self, trials: list[Trial], layer: Layer
    ) -> Iterator[tuple[GEMClassifier, NDArray[np.bool_], list[Trial]]]:
        """Groups of candidates that keep the same directions and expand them alike."""
        groups: dict[Any, tuple[GEMClassifier, NDArray[np.bool_], list[Trial]]] = {}
        for trial in trials:
            model = candidate(self.base, trial["params"])
            mask = _selected(layer, model)
            key = (mask.tobytes(), model._waves(), model.include_input)
            groups.setdefault(key, (model, mask, []))[2].append(trial)
        return iter(groups.values())

    @abstractmethod
    def _extractor(self, model: GEMClassifier) -> GEM:
        """The first layer's extractor, fitted to the training rows."""

    def _same_solution(self, trials: list[Trial], solves: tuple[str, ...]) -> Iterator[list[Trial]]:
        """Candidates that select among the same directions."""
        own = self.base.threshold
        for auto in (False, True):
            some = [t for t in trials if (t["params"].get("threshold", own) == "auto") == auto]
            yield from _groups(some, lambda name: name not in solves)

    @abstractmethod
    def _layer(self, model: GEMClassifier, layers: list[Layer], level: int) -> Layer:
        """A later layer, likewise."""

    @abstractmethod
    def _project(self, layers: list[Layer], include_input: bool) -> None:
        """Prepare for features of these layers."""

    @abstractmethod
    def _features(
        self, model: GEMClassifier, layers: list[Layer], mask: NDArray[np.bool_]
    ) -> tuple[Any, Any]:
        """Both parts' features, as the logit reads them, of the last layer's directions in a mask.

        The layers are those of the last call of `_project`.
        """

    @abstractmethod
    def _batches(self, fits: Iterable[tuple[MultinomialLogit, float]]) -> Iterator[Fits]:
        """Those of a path that are scored together."""

    @abstractmethod
    def _losses(self, held: Any, logits: list[MultinomialLogit]) -> tuple[NDArray[Any], float]:
        """See `held_out_losses`."""

    def _solve(self, trials: list[Trial]) -> list[Layer]:
        """Layers with the most directions and the lowest threshold of these candidates."""
        models = [candidate(self.base, trial["params"]) for trial in trials]
        model = models[0]
        thresholds = [other.threshold for other in models]  # "auto" is never beside a number
        model.threshold = None if None in thresholds else min(thresholds)  # type: ignore[type-var]
        model.n_directions = max(other.n_directions for other in models)
        asked = model.scale
        model.scale = self.scales.get(asked, asked)
        gem = self._extractor(model)
        self.scales[asked] = gem.scale_
        layers = [as_layer(gem)]
        for level in range(1, model.depth):
            layers.append(self._layer(model, layers, level))
        return layers

    def _path(
        self, trials: list[Trial], model: GEMClassifier, train: Any, held: Any
    ) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """All penalties on the same features, from large to small."""

        def penalty(trial: Trial) -> float:
            return float(trial["params"].get("penalty", model.penalty))

        penalties = sorted(set(map(penalty, trials)), reverse=True)
        logit = model._logit(model.penalty)
        fits = _timed(logit.iterate_path(train, self.y, penalties, self.weight))
        for batch in self._batches(fits):
            losses, total = self._losses(held, [fitted for fitted, _ in batch])
            for (fitted, seconds), (error, loss) in zip(batch, losses / total, strict=True):
                result = {
                    "error": float(error),
                    "log_loss": float(loss),
                    "n_iter": int(fitted.n_iter_[0]),
                    "seconds": seconds,
                }
                yield from ((one, result) for one in trials if penalty(one) == fitted.penalty)


class ArraySplit(Split):
    """Of rows in memory, whose projections are taken once for each solution.

    Parameters
    ----------
    base : GEMClassifier
    X, y, codes, weight : arrays, or None
        Rows, labels, their indices, and weights.
    train, held : arrays of int
        Numbers of rows.
    """

    def __init__(
        self, base: GEMClassifier, X: Any, y: Any, codes: Any, weight: Any, train: Any, held: Any
    ) -> None:
        super().__init__(base, y[train], None if weight is None else weight[train])
        self.X, self.held_X = X[train], X[held]
        self.held_codes = codes[held]
        self.held_weight = None if weight is None else weight[held]
        self.moments: dict[Any, ClassMoments] = {}

    def _extractor(self, model: GEMClassifier) -> GEM:
        gem, groups = model._first(self.X, self.y)
        # Clusters depend on whether columns are scaled.
        key = (model.n_clusters, model.n_clusters > 1 and model.scale)
        if key in self.moments and model.scale != "auto":
            return gem._adopt(self.moments[key])
        gem.fit(self.X, groups, self.weight)
        if hasattr(gem, "moments_"):  # rows of a huge dimension have none
            self.moments[key] = gem.moments_
        return gem

    def _layer(self, model: GEMClassifier, layers: list[Layer], level: int) -> Layer:
        return model._fit_layer(self.X, self.y, self.weight, layers, level)

    def _project(self, layers: list[Layer], include_input: bool) -> None:
        threads = self.base.n_threads
        both = (layer_features(X, layers, include_input, threads) for X in (self.X, self.held_X))
        self.rows: list[tuple[Any, Any]] = [(rows.X, rows.projections) for rows in both]

    def _features(
        self, model: GEMClassifier, layers: list[Layer], mask: NDArray[np.bool_]
    ) -> tuple[ExpandedRows, Block]:
        directions = layers[-1].kept(mask).directions
        wave, powers = model._waves()
        train, held = (
            ExpandedRows(
                inputs if model.include_input else None,
                directions,
                wave=wave,
                powers=powers,
                include_input=model.include_input,
                projections=projections if mask.all() else projections[:, mask],
            )
            for inputs, projections in self.rows
        )
        return train, Block(held, self.held_codes, self.held_weight)

    def _batches(self, fits: Iterable[tuple[MultinomialLogit, float]]) -> Iterator[Fits]:
        return ([fit] for fit in fits)

    def _losses(self, held: Block, logits: list[MultinomialLogit]) -> tuple[NDArray[Any], float]:
        return held_out_losses(held, logits)


class BlockSplit(Split):
    """Of rows in blocks, which every layer, every iteration and every path's scores go through.

    Parameters
    ----------
    base : GEMClassifier
    rows : SurveyedBlocks
    train, held : arrays of int
        Numbers of rows, ascending.
    """

    def __init__(self, base: GEMClassifier, rows: SurveyedBlocks, train: Any, held: Any) -> None:
        super().__init__(base)
        self.train, self.held = rows.subset(train), rows.subset(held)
        self.moments: ClassMoments | None = None

    def _extractor(self, model: GEMClassifier) -> GEM:
        if self.moments is None:
            self.moments = block_moments(self.train)
        return model._gem(0)._adopt(self.moments, self.train)

    def _layer(self, model: GEMClassifier, layers: list[Layer], level: int) -> Layer:
        return model._block_layer(self.train, layers, level)

    def _project(self, layers: list[Layer], include_input: bool) -> None:
        """Rows are projected in every pass, on those directions alone that it needs."""

    def _features(
        self, model: GEMClassifier, layers: list[Layer], mask: NDArray[np.bool_]
    ) -> tuple[SurveyedBlocks, SurveyedBlocks]:
        wave, powers = model._waves()
        last = replace(layers[-1].kept(mask), wave=wave, powers=powers)
        how = {"layers": (*layers[:-1], last), "include_input": model.include_input}
        return self.train.read_as(**how), self.held.read_as(**how)

    def _batches(self, fits: Iterable[tuple[MultinomialLogit, float]]) -> Iterator[Fits]:
        """A path together, for one pass; after Ctrl-C what is finished of it."""
        finished: Fits = []
        try:
            for fit in fits:
                finished.append(fit)  # which counts, though the next may end early
        except KeyboardInterrupt:
            if finished:
                yield finished
            raise
        yield finished

    def _losses(
        self, held: SurveyedBlocks, logits: list[MultinomialLogit]
    ) -> tuple[NDArray[Any], float]:
        found: tuple[NDArray[Any], float] = held.reduce(held_out_losses, reductions.add, logits)
        return found


def candidate(base: GEMClassifier, params: dict[str, Any]) -> GEMClassifier:
    """A classifier with some parameters changed, all of which are checked."""
    model: GEMClassifier = clone(base).set_params(**params)
    model._check_parameters()
    return model


def held_out_losses(block: Block, logits: list[MultinomialLogit]) -> tuple[NDArray[Any], float]:
    """Errors and log losses of several logits, summed over feature rows; merged by `add`.

    Parameters
    ----------
    block : Block
        Whose labels are indices of the logits' classes.
    logits : list of MultinomialLogit

    Returns
    -------
    (m, 2) array, float
        Weight of the wrong rows, and sum of the weighted losses, of each logit; the rows' weight.
        Probabilities are kept an epsilon of their type from 0 and 1, as scikit-learn does.
    """
    weight = np.ones(len(block)) if block.weight is None else np.asarray(block.weight)
    sums = []
    for logit in logits:
        logarithms = logit.predict_log_proba(block.X)
        eps = np.finfo(logarithms.dtype).eps
        right = logarithms[np.arange(len(block)), block.y].astype(np.float64)
        losses = -np.clip(right, np.log(eps), np.log1p(-eps))
        wrong = logarithms.argmax(axis=1) != block.y
        sums.append((weight @ wrong, weight @ losses))
    return np.array(sums), float(weight.sum())


def _groups(trials: list[Trial], counts: Callable[[str], bool]) -> Iterator[list[Trial]]:
    """Trials that agree in all parameters whose name counts, in order of first occurrence."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        key = repr(sorted((k, repr(v)) for k, v in trial["params"].items() if counts(k)))
        groups.setdefault(key, []).append(trial)
    return iter(groups.values())


def _selected(layer: Layer, model: GEMClassifier) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = layer.ranks < model.n_directions
    if not (model.threshold is None or isinstance(model.threshold, str)):
        mask &= layer.eigenvalues >= model.threshold
    return mask


def _timed(
    fits: Iterable[MultinomialLogit],
) -> Iterator[tuple[MultinomialLogit, float]]:
    started = time.perf_counter()
    for fitted in fits:
        yield fitted, time.perf_counter() - started
        started = time.perf_counter()

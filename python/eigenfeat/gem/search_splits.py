"""Fits and scores of `GEMClassifierCV` on one pair of training and held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from eigenfeat.expansion.features import Layer, as_layer
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.rows import reductions

if TYPE_CHECKING:
    from eigenfeat.gem.classifier import GEMClassifier
    from eigenfeat.gem.gem import GEM
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.rows.blocks import Block
    from eigenfeat.rows.labelled import LabelledRows

__all__ = ["Split", "Trial", "candidate", "held_out_losses"]

Trial = dict[str, Any]
Fits = list[tuple[MultinomialLogit, float]]  # with the seconds that each took

# What selects among directions that are there, or comes after them; all else makes others.
_SELECTS = ("gem__threshold", "gem__n_directions")
_EXPANDS = ("gem__expansion", "gem__powers", "gem__include_input")


class Split:
    """The candidates on one pair of training and held-out rows, from what they share outward.

    Parameters
    ----------
    base : GEMClassifier
        Gives the parameters that a candidate leaves open.
    train, held_out : LabelledRows
    """

    def __init__(self, base: GEMClassifier, train: LabelledRows, held_out: LabelledRows) -> None:
        self.base, self.train, self.held_out = base, train, held_out
        self.scales: dict[str, str] = {}
        self.moments: dict[Any, ClassMoments] = {}

    def run(self, trials: list[Trial], advance: Callable[[Trial], None]) -> None:
        """Append to every trial's `splits` how it did, group by group."""
        solves = ("logit__penalty", *_SELECTS, *_EXPANDS)
        for same_solution in self._same_solution(trials, solves):
            layers = self._solve(same_solution)
            own = self.base._base_gem().include_input
            asked = [trial["params"].get("gem__include_input", own) for trial in same_solution]
            projected = [
                part.read_as(replace(part.reading, layers=tuple(layers), include_input=any(asked)))
                for part in (self.train, self.held_out)
            ]
            for model, mask, same_features in self._same_features(same_solution, layers[-1]):
                expansion, powers = model._expansion()
                last = replace(layers[-1].subset(mask), expansion=expansion, powers=powers)
                include_input = model._base_gem().include_input
                train, held_out = (part.narrowed(last, mask, include_input) for part in projected)
                for trial, result in self._path(same_features, model, train, held_out):
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
            key = (mask.tobytes(), model._expansion(), model._base_gem().include_input)
            groups.setdefault(key, (model, mask, []))[2].append(trial)
        return iter(groups.values())

    def _extractor(self, model: GEMClassifier) -> GEM:
        """The first layer's extractor, fitted to the training rows."""
        gem, groups = model._first(self.train)
        # Clusters depend on whether columns are scaled.
        key = (model.n_clusters, model.n_clusters > 1 and model._base_gem().scale)
        gem._learn(groups, time.perf_counter(), self.moments.get(key))
        if hasattr(gem, "moments_"):  # rows of a huge dimension have none
            self.moments[key] = gem.moments_
        return gem

    def _same_solution(self, trials: list[Trial], solves: tuple[str, ...]) -> Iterator[list[Trial]]:
        """Candidates that select among the same directions."""
        apart: dict[tuple[bool, ...], list[Trial]] = {}
        base = self.base.get_params()
        for trial in trials:
            given = [trial["params"].get(name, base[name]) for name in _SELECTS]
            apart.setdefault(tuple(value == "auto" for value in given), []).append(trial)
        for some in apart.values():
            yield from _groups(some, lambda name: name not in solves)

    def _solve(self, trials: list[Trial]) -> list[Layer]:
        """Layers with the most directions and the lowest threshold of these candidates."""
        models = [candidate(self.base, trial["params"]) for trial in trials]
        model = models[0]
        given = [other._base_gem() for other in models]
        thresholds: list[Any] = [one.threshold for one in given]
        asked = given[0].scale
        model.gem = given[0].set_params(  # "auto" is never beside a number
            threshold=None if None in thresholds else min(thresholds),
            n_directions=max(one.n_directions for one in given),
            scale=self.scales.get(asked, asked),
        )
        gem = self._extractor(model)
        self.scales[asked] = gem.scale_
        layers = [as_layer(gem)]
        for level in range(1, model.depth):
            layers.append(model._layer(self.train, layers, level))
        return layers

    def _path(
        self, trials: list[Trial], model: GEMClassifier, train: Any, held_out: Any
    ) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """All penalties on the same features, from large to small."""

        def penalty(trial: Trial) -> float:
            return float(trial["params"].get("logit__penalty", model._base_logit().penalty))

        penalties = sorted(set(map(penalty, trials)), reverse=True)
        logit = model._logit().set_params(temperature=1.0)
        fits = _timed(logit.iterate_path(train, None, penalties))
        for batch in _batches(fits, held_out):
            logits = [fitted for fitted, _ in batch]
            losses, total = held_out.reduce(held_out_losses, reductions.add, logits)
            for (fitted, seconds), (error, loss) in zip(batch, losses / total, strict=True):
                result = {
                    "error": float(error),
                    "log_loss": float(loss),
                    "n_iter": int(fitted.n_iter_[0]),
                    "seconds": seconds,
                }
                yield from ((one, result) for one in trials if penalty(one) == fitted.penalty)


def _batches(
    fits: Iterable[tuple[MultinomialLogit, float]], held_out: LabelledRows
) -> Iterator[Fits]:
    """Those of a path that are scored together: all, where scores need another pass over blocks.

    After Ctrl-C what is finished of it.
    """
    if held_out.in_memory:
        yield from ([fit] for fit in fits)
        return
    finished: Fits = []
    try:
        for fit in fits:
            finished.append(fit)  # which counts, though the next may end early
    except KeyboardInterrupt:
        if finished:
            yield finished
        raise
    yield finished


def candidate(base: GEMClassifier, params: dict[str, Any]) -> GEMClassifier:
    """A classifier with some parameters changed, all of which are checked."""
    model: GEMClassifier = clone(base).set_params(**params)
    model._check_parameters()
    return model


def held_out_losses(
    block: Block, logits: list[MultinomialLogit]
) -> tuple[NDArray[np.float64], float]:
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
    mask: NDArray[np.bool_] = np.ones(len(layer.ranks), dtype=bool)
    gem = model._base_gem()
    most, least = gem.n_directions, gem.threshold
    if not isinstance(most, str):
        mask &= layer.ranks < most
    if not (least is None or isinstance(least, str)):
        mask &= layer.eigenvalues >= least
    return mask


def _timed(
    fits: Iterable[MultinomialLogit],
) -> Iterator[tuple[MultinomialLogit, float]]:
    started = time.perf_counter()
    for fitted in fits:
        yield fitted, time.perf_counter() - started
        started = time.perf_counter()

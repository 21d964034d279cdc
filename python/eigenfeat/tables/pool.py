"""The pool of views of a table: out-of-fold logits of each view, weights, and one logit of all.

Up to 5,000 samples every view is fitted to the samples outside each of two to ten folds, with all
penalties in the first fold (in every fold up to 1,000 samples). Beyond, a first look at 4,000
samples leaves out views that get no weight there, and the others have one fold. What a view learns
with labels (directions, pairs of columns) comes from the moments outside the fold: those of the
other folds, merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.threads import resolve
from eigenfeat.expansion.features import Layer, as_layer, layer_features
from eigenfeat.linear.held_out import (
    loss_at_best,
    pool_folds,
    pool_loss,
    pool_probabilities,
    pool_weights,
)
from eigenfeat.linear.logistic import (
    PENALTIES,
    MultinomialLogit,
    Start,
    damping,
    fit_near,
    held_out_logits_of,
)
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.blocks import Block
from eigenfeat.samples.labelled import MemoryRows
from eigenfeat.tables.views import (
    MOST_BINS,
    VIEWS,
    Interactions,
    Kernel,
    Table,
    bin_tables,
    interactions_fit_in,
)

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats
    from eigenfeat.gem.gem import GEM
    from eigenfeat.samples.labelled import LabelledRows

__all__ = [
    "MOST_CLASSES",
    "MOST_COLUMNS",
    "MOST_SMALL",
    "View",
    "ViewPool",
    "fit_pool",
    "pooled_scores",
]

_Array = NDArray[np.float64]
_Parts: TypeAlias = "Sequence[tuple[LabelledRows, LabelledRows]]"

_FOLDS = ((300, 10), (1_000, 5), (2_500, 3), (5_000, 2))  # samples, and folds up to so many
_LOOK = 4_000  # samples of the first look, half of which are held out
_GAIN = 0.02  # of the log loss, that a view must gain in the first look and in the fold
_LOOK_PENALTIES = (0.3, 0.03)  # of it
_GEM_PENALTIES = (0.03, 0.01)  # of GEM features of the columns beyond 5,000 samples
_ONE_OF = 4  # folds beyond 5,000 samples, of which one is used
_TRAINED, _HELD = 7_500, 5_000  # its samples
_MOST_PAIRS = 20  # of classes beyond 5,000 samples, for GEM features of ranks
_TRIED = 60  # samples held out, that all penalties are tried on; beyond, the best and those beside
_DECIDED = 300  # samples held out, that decide the penalty
_RISE = 0.02  # of the log loss, after which no smaller penalty is tried
_CELLS, _FEW_CELLS = 1_500, 600  # indicators of pairs of columns up to 5,000 samples and beyond
_PART = 2**23  # features of samples that a thread predicts at once
_WORKERS = 8  # threads that do so, each with a part's features in memory
MOST_SMALL = 5_000  # samples of folds that all views take part in
MOST_COLUMNS = 200  # beyond so many samples, for other views than GEM's
MOST_CLASSES = 100
_MOST_SPLINES = 1_500  # features
# Of views whose features are correlated, so that squares of weights are a better penalty than the
# energy of the logits.
_RIDGES = {"columns": 100.0, "splines": 100.0}


@dataclass(frozen=True, eq=False)
class View:
    """One view of a fitted pool.

    Attributes
    ----------
    name : str
    weight : float
        Weight in the pool; 0 for a view that is not used.
    log_loss : float
        Mean out-of-fold log loss at the view's own temperature; NaN where it was not computed.
    n_features : int
        Number of its features, 0 if it is not used.
    penalty : float
        Penalty of its logit; NaN if it is not used.
    note : str
        Why the view is not used; empty for others.
    learned : object
        Layers of GEM views, or what kernel and interactions learned.
    """

    name: str
    weight: float
    log_loss: float = np.nan
    n_features: int = 0
    penalty: float = np.nan
    note: str = ""
    learned: Any = field(default=None, repr=False)

    def features(self, table: Table, X: Any, n_threads: int | None) -> Any:
        """Features of samples; X is what the GEM features of the columns project."""
        if self.name == "gem":
            return layer_features(X, self.learned, False, n_threads)
        if self.name == "gem_ranks":
            return layer_features(table.ranks, self.learned, False, n_threads)
        if self.name == "kernel":
            return self.learned.features(table.ranks, n_threads)
        if self.name == "interactions":
            return self.learned.features(table.bins, table.fine, table.statistics.n_fine)
        return getattr(table, self.name)


@dataclass(frozen=True, eq=False)
class ViewPool:
    """Views, and the logit on the features of those with weight, side by side."""

    views: list[View]
    logit: MultinomialLogit
    out_of_fold: _Array | None = None  # probabilities (n, k)


def pooled_scores(
    views: Sequence[View],
    logit: MultinomialLogit,
    table: Table,
    X: Any,
    n_threads: int | None,
) -> Floats:
    """Logits (n, k), or (n,) with two classes, of a pool; threads take parts of many samples."""
    size = max(_PART // max(logit.n_features_in_, 1), 64)
    if len(table) <= size or not isinstance(X, np.ndarray):
        return _scores(views, logit, table, X, n_threads)

    def scores_of(some: slice) -> Floats:
        return _scores(views, logit, replace(table, X=table.X[some], n_threads=1), X[some], 1)

    parts = [slice(begin, begin + size) for begin in range(0, len(table), size)]
    workers = min(resolve(n_threads) or core.default_threads(), len(parts), _WORKERS)
    if workers == 1:
        return np.concatenate([scores_of(some) for some in parts])
    with ThreadPoolExecutor(workers) as executor:
        return np.concatenate(list(executor.map(scores_of, parts)))


def _scores(
    views: Sequence[View], logit: MultinomialLogit, table: Table, X: Any, n_threads: int | None
) -> Floats:
    """The same of all samples at once."""
    total: Any = logit.intercept_[None, :]
    at = 0
    for view in views:
        if view.weight > 0:
            W = logit.coef_[:, at : at + view.n_features].T
            features = view.features(table, X, n_threads)
            total = total + Block(features).scores(W, False, n_threads)
            at += view.n_features
    scores: Floats = np.broadcast_to(total, (len(table), total.shape[1])).copy()
    return scores[:, 0] if len(logit.classes_) == 2 else scores


class _Candidate:
    """A view while the pool is fitted."""

    name: str
    common = False  # whether its features have one unit
    bounded = False  # whether no sample's features are far larger than those of others
    ridge = 0.5  # of its logit

    def lasts(self, folds: _Folds) -> bool:
        """Whether its features of all samples are those of a fold."""
        return False

    def parts(self, folds: _Folds) -> _Parts:
        """Features of the samples to train on and of those held out, for each fold."""
        raise NotImplementedError

    def whole(self) -> tuple[Any, LabelledRows]:
        """What the view learns from all samples, and their features."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _Folds:
    """Numbers of the samples to train on and to hold out."""

    parts: list[tuple[Codes, Codes]]
    n: int

    def groups(self) -> list[Codes]:
        """The samples held out in each fold, and last those that never are."""
        held = [part[1] for part in self.parts]
        never = np.ones(self.n, dtype=bool)
        for some in held:
            never[some] = False
        return [*held, np.flatnonzero(never)]

    @property
    def complementary(self) -> bool:
        """Whether each fold trains on all samples but those that it holds out."""
        return all(len(train) + len(held) == self.n for train, held in self.parts)


class _Fixed(_Candidate):
    """A view that needs no labels."""

    def lasts(self, folds: _Folds) -> bool:
        return True

    def __init__(
        self,
        name: str,
        rows: MemoryRows,
        table: Table,
        features: Callable[[Table], Any],
        learned: Any = None,
    ) -> None:
        self.name, self.learned = name, learned
        self.common = self.bounded = name == "kernel"
        self.ridge = _RIDGES.get(name, 0.5)
        self._rows, self._table, self._features = rows, table, features

    def parts(self, folds: _Folds) -> _Parts:
        if folds.complementary:
            rows = self.whole()[1]
            return [(rows.subset(a), rows.subset(b)) for a, b in folds.parts]
        return [(self._read(a), self._read(b)) for a, b in folds.parts]

    def _read(self, some: Codes) -> MemoryRows:
        return _with(self._rows.subset(some), self._features(self._table.subset(some)))

    def whole(self) -> tuple[Any, MemoryRows]:
        return self.learned, self._whole

    @cached_property
    def _whole(self) -> MemoryRows:
        return _with(self._rows, self._features(self._table))


class _Pairs(_Candidate):
    """Interactions of columns, of the tables of counts outside each fold."""

    name = "interactions"
    common = True

    def __init__(self, rows: MemoryRows, table: Table, cells: int) -> None:
        self._rows, self._bins, self._fine, self._cells = rows, table.bins, table.fine, cells
        self._counts = [count for count, _ in table.statistics.bins]
        self._n_fine = table.statistics.n_fine

    def _tables(self, some: Codes | slice) -> _Array:
        weight = self._rows.block.weight
        weight = None if weight is None else weight[some]
        k = len(self._rows.classes)
        codes, threads = self._rows.codes[some], self._rows.n_threads
        return bin_tables(self._bins[some], self._counts, codes, k, weight, threads)

    def parts(self, folds: _Folds) -> _Parts:
        tables = [self._tables(group) for group in folds.groups()] if folds.complementary else []
        counted = self._rows.block.weight is None  # whole numbers, whose differences are exact
        total = reduce(np.add, tables) if tables and counted else None
        out: list[tuple[LabelledRows, LabelledRows]] = []
        for at, (train, held) in enumerate(folds.parts):
            if total is not None:
                outside = total - tables[at]
            elif tables:
                outside = reduce(np.add, [t for i, t in enumerate(tables) if i != at])
            else:
                outside = self._tables(train)
            learned = Interactions.fit(self._bins[train], self._counts, outside, self._cells)
            out.append((self._with_features(learned, train), self._with_features(learned, held)))
        return out

    def whole(self) -> tuple[Any, LabelledRows]:
        tables = self._tables(slice(None))
        learned = Interactions.fit(self._bins, self._counts, tables, self._cells)
        features = learned.features(self._bins, self._fine, self._n_fine)
        return learned, _with(self._rows, features)

    def _with_features(self, learned: Interactions, some: Codes) -> LabelledRows:
        features = learned.features(self._bins[some], self._fine[some], self._n_fine)
        return _with(self._rows.subset(some), features)


class _Gem(_Candidate):
    """GEM features, of directions from the moments outside each fold."""

    common = True

    def __init__(self, name: str, rows: MemoryRows, extractor: Callable[[], GEM]) -> None:
        self.name, self._rows, self._extractor = name, rows, extractor

    def _layer(self, moments: ClassMoments) -> Layer:
        return as_layer(self._extractor().fit_moments(moments))

    def parts(self, folds: _Folds) -> _Parts:
        rows = self._rows
        out: list[tuple[LabelledRows, LabelledRows]] = []
        groups = folds.groups() if folds.complementary else []
        moments = [rows.subset(group).moments() if len(group) else None for group in groups]
        for at, (train, held) in enumerate(folds.parts):
            if moments:
                others = [one for i, one in enumerate(moments) if i != at and one is not None]
                outside = reduce(ClassMoments.merge, others[1:], others[0].copy())
            else:
                outside = rows.subset(train).moments()
            layer = self._layer(outside)
            out.append((self._read(layer, train), self._read(layer, held)))
        return out

    def _read(self, layer: Layer, some: Codes) -> LabelledRows:
        rows = self._rows.subset(some)
        return _with(rows, layer_features(rows.block.X, [layer], False, rows.n_threads))

    def whole(self) -> tuple[Any, LabelledRows]:
        layers = [self._layer(self._rows.moments())]
        X = self._rows.block.X
        return layers, _with(self._rows, layer_features(X, layers, False, self._rows.n_threads))


class _FittedGem(_Gem):
    """GEM features of the columns, whose directions of all samples are known."""

    def lasts(self, folds: _Folds) -> bool:
        return folds.n > MOST_SMALL

    def __init__(self, rows: MemoryRows, extractor: Callable[[], GEM], layer: Layer) -> None:
        super().__init__("gem", rows, extractor)
        self._fitted = layer

    def parts(self, folds: _Folds) -> _Parts:
        if not self.lasts(folds):
            return super().parts(folds)
        return [(self._read(self._fitted, a), self._read(self._fitted, b)) for a, b in folds.parts]

    def whole(self) -> tuple[Any, LabelledRows]:
        return [self._fitted], self._whole

    @cached_property
    def _whole(self) -> LabelledRows:
        X = self._rows.block.X
        return _with(self._rows, layer_features(X, [self._fitted], False, self._rows.n_threads))


def _with(rows: MemoryRows, features: Any) -> MemoryRows:
    """The samples with other features."""
    return MemoryRows.of_features(rows, features)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Out-of-fold results of a view."""

    logits: _Array
    penalty: float
    log_loss: float
    start: Start | None  # of a fold whose features are those of all samples


def fit_pool(
    names: Sequence[str],
    rows: MemoryRows,
    table: Table,
    first: GEM,
    extractor: Callable[[str], GEM],
    logit: Callable[[bool, float], MultinomialLogit],
    seed: np.random.RandomState,
    say: Callable[[str], None],
    stop: Callable[[], bool],
) -> ViewPool | None:
    """Fit a pool of views; None where GEM features of the columns alone are best.

    Parameters
    ----------
    names : sequence of str
        Views to try.
    rows : MemoryRows
        Complete samples (n, d) that GEM's directions of the columns are for.
    table : Table
        The same samples, as the other views read them.
    first : GEM
        Extractor that has been fitted to `rows`.
    extractor : callable
        ``extractor(scale)``, an extractor that has not been fitted.
    logit : callable
        ``logit(common, ridge)``, a logit that has not been fitted, for features of one unit or
        not.
    seed : RandomState
    say : callable
        Where lines about the progress go.
    stop : callable
        Called after each view; True ends the search with the views so far.
    """
    n, left = rows.n_rows, {}
    cells = _CELLS if n <= MOST_SMALL else _FEW_CELLS
    names = [name for name in VIEWS if name in names]
    count = next((folds for most, folds in _FOLDS if n <= most), 1)
    paths: dict[str, Sequence[float]] = {}
    if count == 1:
        some = np.sort(seed.permutation(n)[:_LOOK])
        few = rows.subset(some)
        k = len(rows.classes)
        if "gem" in names and k * (k - 1) > _MOST_PAIRS:
            left["gem_ranks"] = f"more than {_MOST_PAIRS} pairs of classes beyond 5,000 samples"
            names = [name for name in names if name != "gem_ranks"]
        fast = [name for name in names if name != "gem"]  # which is better with more samples
        candidates, why = _candidates(fast, few, table.subset(some), first, extractor, seed, cells)
        left |= why
        look: dict[str, Sequence[float]] = dict.fromkeys(fast, _LOOK_PENALTIES)
        trials, codes, weight, _ = _tried(candidates, few, logit, 2, seed, look, _never, one=True)
        chosen = _forward(trials, codes, weight)
        paths = {
            one.name: _neighbours(trial.penalty)
            for one, trial in zip(candidates, trials, strict=True)
        }
        paths["gem"] = _GEM_PENALTIES
        best = {candidates[i].name for i in chosen} | {"gem"}
        left |= {one.name: "no gain in the first look" for one in candidates} | left
        left = {name: why for name, why in left.items() if name not in best}
        names = [name for name in names if name in best]
        say(f"views that stay: {', '.join(names)}")
        if names == ["gem"]:
            return None
    candidates, others = _candidates(names, rows, table, first, extractor, seed, cells)
    left |= others
    if not candidates:
        reasons = "; ".join(f"{name}: {why}" for name, why in left.items())
        raise ValueError(f"views: expected one that these samples allow, got {reasons}")
    trials, codes, weight, held = _tried(
        candidates, rows, logit, count if count > 1 else _ONE_OF, seed, paths, stop, one=count == 1
    )
    left |= {one.name: "a callback ended the search" for one in candidates[len(trials) :]}
    candidates = candidates[: len(trials)]
    if count == 1:
        chosen = _forward(trials, codes, weight)
        dropped = [one.name for i, one in enumerate(candidates) if i not in chosen]
        left |= dict.fromkeys(dropped, "no gain in the fold")
        candidates, trials = [candidates[i] for i in chosen], [trials[i] for i in chosen]
    logits = [trial.logits for trial in trials]
    weights = pool_weights(logits, codes, weight)
    pool = _assembled(candidates, trials, weights, left, rows, logit, say)
    return pool if count == 1 else replace(pool, out_of_fold=_out_of_fold(logits, held, rows))


def _out_of_fold(logits: Sequence[_Array], held: Sequence[Codes], rows: MemoryRows) -> _Array:
    """Probabilities (n, k) by weights of the other folds; NaN for samples that are in no fold."""
    out = np.full((rows.n_rows, len(rows.classes)), np.nan)
    samples = np.concatenate(held)
    fold = np.repeat(np.arange(len(held)), [len(some) for some in held])
    codes = np.asarray(rows.codes[samples], dtype=np.intp)
    weight = None if rows.block.weight is None else rows.block.weight[samples]
    for i, some in enumerate(held):
        inside, rest = fold == i, fold != i
        if not rest.any():
            return out
        w = pool_weights(
            [one[rest] for one in logits], codes[rest], None if weight is None else weight[rest]
        )
        out[some] = pool_probabilities([one[inside] for one in logits], w)
    return out


def _forward(trials: Sequence[_Trial], codes: Codes, weight: _Array | None) -> list[int]:
    """Numbers, ascending, of views taken one by one while each lowers the pool's loss enough."""
    if not trials:
        return []
    chosen = [int(np.argmin([trial.log_loss for trial in trials]))]
    loss = trials[chosen[0]].log_loss
    while True:
        rest = [i for i in range(len(trials)) if i not in chosen]
        losses = [pool_loss([trials[j].logits for j in [*chosen, i]], codes, weight) for i in rest]
        if not rest or min(losses) > (1.0 - _GAIN) * loss:
            return sorted(chosen)
        loss = min(losses)
        chosen.append(rest[int(np.argmin(losses))])


def _never() -> bool:
    return False


def _neighbours(penalty: float) -> list[float]:
    """A penalty and the next smaller one, for more samples."""
    at = PENALTIES.index(penalty)
    return list(PENALTIES[at : at + 2])


def _candidates(
    names: Sequence[str],
    rows: MemoryRows,
    table: Table,
    first: GEM,
    extractor: Callable[[str], GEM],
    seed: np.random.RandomState,
    cells: int,
) -> tuple[list[_Candidate], dict[str, str]]:
    """The views that can be had, and why others cannot."""
    stat, k = table.statistics, len(rows.classes)
    out: list[_Candidate] = []
    left: dict[str, str] = {}
    varying = int((stat.scale > 0).sum())
    for name in names:
        if name == "gem":
            out.append(_FittedGem(rows, lambda: extractor(first.scale_), as_layer(first)))
        elif varying == 0:
            left[name] = "no column with spread"
        elif name == "columns":
            out.append(_Fixed(name, rows, table, lambda part: part.columns))
        elif name == "splines":
            if len(stat.numeric) == 0:
                left[name] = "no numeric column"
            elif stat.has_more_splines_than(_MOST_SPLINES):
                left[name] = f"more than {_MOST_SPLINES} features"
            else:
                out.append(_Fixed(name, rows, table, lambda part: part.splines))
        elif name == "gem_ranks" and "gem" in names and stat.indicator[stat.scale > 0].all():
            left[name] = "ranks of indicators are the columns themselves"
        elif name == "gem_ranks":
            out.append(_Gem(name, _with(rows, table.ranks), lambda: extractor("none")))
        elif name == "kernel":
            kernel = Kernel.fit(table.ranks, seed)
            features = partial(_kernel_features, kernel, rows.n_threads)
            out.append(_Fixed(name, rows, table, features, kernel))
        elif varying > MOST_BINS or not interactions_fit_in([count for count, _ in stat.bins], k):
            left[name] = "too many columns, or only one"
        else:
            out.append(_Pairs(rows, table, cells))
    return out, left


def _kernel_features(kernel: Kernel, n_threads: int | None, table: Table) -> Any:
    return kernel.features(table.ranks, n_threads)


def _tried(
    candidates: Sequence[_Candidate],
    rows: MemoryRows,
    logit: Callable[[bool, float], MultinomialLogit],
    count: int,
    seed: np.random.RandomState,
    paths: dict[str, Sequence[float]],
    stop: Callable[[], bool],
    *,
    one: bool,
) -> tuple[list[_Trial], Codes, _Array | None, list[Codes]]:
    """Out-of-fold results of the views in so many folds, or in one of these.

    With the labels and weights of the samples held out, and their numbers in each fold.
    """
    parts = pool_folds(rows.codes, len(rows.classes), count, seed)
    if one:
        train, held_out = parts[0]
        parts = [
            (
                train[draw_subsample(len(train), _TRAINED, rows.codes[train])],
                held_out[draw_subsample(len(held_out), _HELD, rows.codes[held_out])],
            )
        ]
    folds = _Folds(parts, rows.n_rows)
    held = [part[1] for part in parts]
    samples = np.concatenate(held)
    codes = np.asarray(rows.codes[samples], dtype=np.intp)
    weight = None if rows.block.weight is None else rows.block.weight[samples]
    trials = []
    for view in candidates:
        penalties = paths.get(view.name, PENALTIES)
        one_logit = logit(view.common, view.ridge)
        trials.append(_trial(view, folds, one_logit, codes, weight, penalties))
        if stop():
            break
    return trials, codes, weight, held


def _trial(
    candidate: _Candidate,
    folds: _Folds,
    logit: MultinomialLogit,
    codes: Codes,
    weight: _Array | None,
    penalties: Sequence[float],
) -> _Trial:
    """Out-of-fold logits at the best penalty; later folds try its neighbours."""
    found: list[list[_Array]] = []
    starts: list[Start | None] = []
    lasts = candidate.lasts(folds)
    large = lasts and not candidate.bounded and folds.n > MOST_SMALL
    whole = candidate.whole()[1] if large else None
    for train, held in candidate.parts(folds):
        enough = _Rising(held) if not found and held.n_rows >= _TRIED else _none_is_enough
        logits_of, starts = held_out_logits_of(logit, train, held, penalties, enough, whole)
        penalties = penalties[: len(logits_of)]
        found.append(logits_of)
        n = sum(len(part[0]) for part in found)
        if len(found) < len(folds.parts) and len(penalties) > 1 and n >= _TRIED:
            first = [np.concatenate(parts) for parts in zip(*found, strict=True)]
            best, _ = _best(first, codes[:n], None if weight is None else weight[:n])
            reach = 1 if n < _DECIDED else 0
            near = slice(max(best - reach, 0), best + reach + 1)
            penalties, found = penalties[near], [part[near] for part in found]
    logits = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    best, loss = _best(logits, codes, weight)
    start = starts[best] if lasts else None
    return _Trial(logits[best], penalties[best], loss, start)


class _Rising:
    """Whether log losses of smaller and smaller penalties have begun to rise."""

    def __init__(self, held: LabelledRows) -> None:
        block = held.together()
        self._codes, self._weight = np.asarray(block.y, dtype=np.intp), block.weight
        self._least = np.inf

    def __call__(self, logits: _Array) -> bool:
        loss = loss_at_best(logits, self._codes, self._weight)[0]
        self._least = min(self._least, loss)
        return loss > (1.0 + _RISE) * self._least


def _none_is_enough(logits: _Array) -> bool:
    return False


def _best(logits: Sequence[_Array], codes: Codes, weight: _Array | None) -> tuple[int, float]:
    """The place of the least log loss, each at its own temperature, and that log loss."""
    losses = [loss_at_best(one, codes, weight)[0] for one in logits]
    best = int(np.argmin(losses))
    return best, losses[best]


def _assembled(
    candidates: Sequence[_Candidate],
    trials: Sequence[_Trial],
    weights: _Array,
    left: dict[str, str],
    rows: MemoryRows,
    logit: Callable[[bool, float], MultinomialLogit],
    say: Callable[[str], None],
) -> ViewPool:
    """Fit the views with weight to all samples, and put their logits side by side."""
    done: dict[str, View] = {}
    coefficients: list[_Array] = []
    intercept: Any = 0.0
    iterations = 0
    combined = logit(True, 0.5)
    for one, trial, w in zip(candidates, trials, weights, strict=True):
        if w == 0.0:
            done[one.name] = View(one.name, 0.0, trial.log_loss, note="weight 0")
            continue
        learned, features = one.whole()
        own = logit(one.common, one.ridge)
        fitted = fit_near(own, features, trial.penalty / damping(own), trial.start)
        coefficients.append(w * fitted.coef_)
        intercept = intercept + w * fitted.intercept_
        combined.classes_ = fitted.classes_
        iterations = max(iterations, int(fitted.n_iter_[0]))
        done[one.name] = View(
            one.name,
            float(w),
            trial.log_loss,
            fitted.coef_.shape[1],
            fitted.penalty_,
            learned=learned,
        )
        say(f"view {one.name}: weight {w:.2f}, out-of-fold log loss {trial.log_loss:.4g}")
    for name, why in left.items():
        done[name] = View(name, 0.0, note=why)
    combined.coef_ = np.hstack(coefficients)
    combined.intercept_ = np.asarray(intercept, dtype=np.float64)
    combined.n_features_in_ = combined.coef_.shape[1]
    combined.n_iter_ = np.array([iterations])
    combined.temperature_ = 1.0
    combined.penalty_ = max(done.values(), key=lambda view: view.weight).penalty
    return ViewPool([done[name] for name in VIEWS if name in done], combined)

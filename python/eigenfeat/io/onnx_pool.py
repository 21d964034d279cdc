"""Pools of views as operators of ONNX.

Splines, ranks and bins are piecewise polynomials of one column. A continuous piecewise polynomial
is linear in powers of the ramps ``min(max((x - b) / h, 0), 1)`` of its intervals [b, b + h]; a step
at b is the comparison ``x >= b``. Each view thus takes a few elementwise operators and one matrix
product.
"""

from __future__ import annotations

from functools import cached_property
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from eigenfeat.io.onnx_graph import LEARNING, Graph, layer_features
from eigenfeat.io.onnx_input import completed
from eigenfeat.linear.logistic import all_classes
from eigenfeat.linear.logit_problem import LOG_FLOOR
from eigenfeat.tables.classification_views import ForestClassifierView, LogitView
from eigenfeat.tables.classifier import TableClassifier
from eigenfeat.tables.regression_views import KernelView, LearnedKernelView, LogView, RidgeView
from eigenfeat.tables.regressor import TableRegressor
from eigenfeat.tables.representations import Interactions, Kernel, TableStatistics
from eigenfeat.tables.trees import Trees
from eigenfeat.tables.views import BoostingView, ForestView

__all__ = ["pool", "regression_pool"]

_Array = NDArray[np.float64]
_FLOAT, _INT64 = 1, 7  # type codes of ONNX


class _Table:
    """Representations of columns, as in `eigenfeat.tables.representations.Table`."""

    def __init__(self, graph: Graph, model: TableClassifier | TableRegressor, rows: str) -> None:
        self.graph, self.statistics = graph, model.statistics_
        filled = completed(graph, model, rows)
        self._n_filled = len(self.statistics.scale) - len(model.gaps_)
        if len(model.gaps_):
            gaps = graph.numbers(graph.node("IsNaN", graph.columns(rows, model.gaps_)))
            filled = graph.node("Concat", filled, gaps, axis=1)
        low, high = self.statistics.limits
        bounded = graph.node("Max", filled, graph.constant(low))
        self.X = graph.node("Min", bounded, graph.constant(high))

    @cached_property
    def without_gaps(self) -> str:
        """The columns without indicators of gaps."""
        if self._n_filled == len(self.statistics.scale):
            return self.X
        return self.graph.columns(self.X, np.arange(self._n_filled))

    @cached_property
    def columns(self) -> str:
        """Standardised columns with spread."""
        varying = np.flatnonzero(self.statistics.scale > 0)
        return _standardised(self.graph, self.statistics, varying, self.X)

    def for_trees(self, levels: _Array) -> str:
        """Standardised columns and levels of categories."""
        stat = self.statistics
        columns = _standardised(self.graph, stat, stat.without_levels, self.X)
        numbers = self.graph.affine(self.X, levels, None)
        return self.graph.node("Concat", columns, numbers, axis=1)

    def with_pairs(self, levels: _Array) -> str:
        """`for_trees`, and sums and differences of the ranks of pairs of numeric columns."""
        first, second = (
            self.graph.columns(self.ranks, places) for places in self.statistics.numeric_pairs
        )
        pairs = [self.graph.node(operator, first, second) for operator in ("Add", "Sub")]
        return self.graph.node("Concat", self.for_trees(levels), *pairs, axis=1)

    @cached_property
    def ranks(self) -> str:
        """Ranks of the columns with spread."""
        return _ranks(self.graph, self.statistics, self.X)

    def linear(self, features: str, W: _Array) -> list[str]:
        """Terms of the product of the columns or the splines with weights W."""
        if not len(W):
            zeros = np.zeros((len(self.statistics.scale), W.shape[1]))
            return [self.graph.affine(self.X, zeros, None)]
        if features == "columns":
            return [self.graph.affine(self.columns, W, None)]
        return _splines(self.graph, self.statistics, W, self.X)


def pool(graph: Graph, model: TableClassifier, rows: str) -> str:
    """Weighted sum of the views' log probabilities."""
    table = _Table(graph, model, rows)
    terms = []
    for view in model.views_:
        if view.model is None:
            continue
        logarithms = graph.node("LogSoftmax", _outputs(table, view.name, view.model), axis=1)
        floored = graph.node("Max", logarithms, graph.scalar(LOG_FLOOR))
        terms.append(graph.node("Mul", floored, graph.scalar(view.weight)))
    return graph.node("Sum", *terms)


def regression_pool(graph: Graph, model: TableRegressor, rows: str) -> str:
    """Predictions (n, q) of a pool of regressions."""
    table = _Table(graph, model, rows)
    low, high = (graph.constant(bound) for bound in model.target_range_)
    terms = []
    for view in model.views_:
        if view.model is None:
            continue
        bounded = graph.node("Max", _outputs(table, view.name, view.model), low)
        clipped = graph.node("Min", bounded, high)
        scale = graph.constant(view.weight * model.target_scale_)
        terms.append(graph.node("Mul", clipped, scale))
    return graph.node("Add", graph.node("Sum", *terms), graph.constant(model.target_mean_))


def _outputs(table: _Table, name: str, view: Any) -> str:
    """Logits of a view of a classifier, or standardised outputs of a view of a regressor."""
    graph = table.graph
    if isinstance(view, LogView):
        bounded = graph.node("Max", _outputs(table, name, view.view), graph.constant(view.low))
        clipped = graph.node("Min", bounded, graph.constant(view.high))
        scaled = graph.node("Mul", clipped, graph.constant(view.scale))
        values = graph.node("Exp", graph.node("Add", scaled, graph.constant(view.mean)))
        scaled = graph.node("Mul", values, graph.constant(view.factor))
        return graph.node("Add", scaled, graph.constant(view.zero))
    if isinstance(view, (ForestView, BoostingView)):
        sums = _trees(graph, view.trees, getattr(table, view.inputs)(view.levels))
        if isinstance(view, BoostingView):
            return graph.node("Add", sums, graph.constant(view.start))
        logits = isinstance(view, ForestClassifierView)
        return _forest_logits(graph, sums, view.trees) if logits else sums
    if isinstance(view, LogitView):
        coef, intercept = all_classes(view.logit)
        terms = _logit_terms(table, name, view, coef.T)
    else:
        terms, intercept = _ridge_terms(table, view), view.ridge.intercept
    return graph.node("Add", graph.node("Sum", *terms), graph.constant(intercept))


def _logit_terms(table: _Table, name: str, view: LogitView, W: _Array) -> list[str]:
    """Terms of the product of a view's features with the weights of a logit."""
    if name in ("columns", "splines"):
        return table.linear(name, W)
    if name in ("gem", "gem_ranks"):
        inputs = table.without_gaps if name == "gem" else table.ranks
        features = layer_features(table.graph, view.learned, inputs)
        return [table.graph.affine(features, W, None)]
    if name == "kernel":
        return [_kernel(table.graph, view.learned, W, table.ranks)]
    return _interactions(table.graph, view.learned, table.statistics, W, table.X)


def _ridge_terms(table: _Table, view: Any) -> list[str]:
    """Terms of the product of a view's features with the weights of a ridge regression."""
    graph, W = table.graph, view.ridge.coef
    if isinstance(view, RidgeView):
        return table.linear(view.inputs, W)
    if isinstance(view, LearnedKernelView):
        mapped = graph.node("MatMul", table.ranks, graph.constant(view.map))
        return [_kernel(graph, view.kernel, W, mapped)]
    if isinstance(view, KernelView):
        return [_kernel(graph, view.kernel, W, table.columns)]
    width = len(W) - sum(layer.width for layer in view.layers)
    terms = table.linear("splines", W[:width])
    for layer in view.layers:
        features = layer_features(graph, layer, table.ranks)
        terms.append(graph.affine(features, W[width : width + layer.width], None))
        width += layer.width
    return terms


def _trees(graph: Graph, trees: Trees, rows: str) -> str:
    """Sums of the outputs of trees."""
    count = len(trees.left)
    tree = np.searchsorted(trees.roots, np.arange(count), side="right") - 1
    node = np.arange(count) - trees.roots[tree]
    leaf = trees.left == np.arange(count)
    leaves, outputs = np.flatnonzero(leaf), trees.values.shape[1]
    owner = np.repeat(leaves, outputs)
    sums = graph.node(
        "TreeEnsembleRegressor",
        graph.node("Cast", rows, to=_FLOAT),
        domain=LEARNING,
        n_targets=outputs,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=trees.feature.tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values=np.where(leaf, 0.0, trees.threshold).tolist(),
        nodes_truenodeids=np.where(leaf, 0, node[trees.left]).tolist(),
        nodes_falsenodeids=np.where(leaf, 0, node[trees.right]).tolist(),
        target_treeids=tree[owner].tolist(),
        target_nodeids=node[owner].tolist(),
        target_ids=np.tile(np.arange(outputs), len(leaves)).tolist(),
        target_weights=trees.values[leaves].ravel().tolist(),
    )
    return graph.numbers(sums)


def _forest_logits(graph: Graph, share: str, trees: Trees) -> str:
    """Logarithms of smoothed shares."""
    n = float(len(trees.roots))
    weighted = graph.node("Mul", share, graph.scalar(n / (n + 1.0)))
    added = 1.0 / trees.values.shape[1] / (n + 1.0)
    return graph.node("Log", graph.node("Add", weighted, graph.scalar(added)))


def _standardised(graph: Graph, stat: TableStatistics, columns: Any, rows: str) -> str:
    values = graph.columns(rows, columns)
    shifted = graph.node("Sub", values, graph.constant(stat.mean[columns]))
    scaled = graph.node("Div", shifted, graph.constant(stat.scale[columns]))
    return _clip(graph, scaled, -1e6, 1e6)


def _clip(graph: Graph, values: str, low: float, high: float) -> str:
    bounds = (graph.constant(np.array(bound)) for bound in (low, high))
    return graph.node("Clip", values, *bounds)


def _ramps(graph: Graph, values: str, starts: _Array, widths: _Array) -> str:
    shifted = graph.node("Sub", values, graph.constant(starts))
    return _clip(graph, graph.node("Div", shifted, graph.constant(widths)), 0.0, 1.0)


def _at_least(graph: Graph, values: str, bounds: _Array) -> str:
    """1 where a value is at least its bound, otherwise 0."""
    return graph.numbers(graph.node("GreaterOrEqual", values, graph.constant(bounds)))


def _splines(graph: Graph, stat: TableStatistics, W: _Array, rows: str) -> list[str]:
    intervals: list[tuple[int, float, float]] = []  # column, start and width of each
    powers: list[list[_Array]] = [[], [], []]
    constant, offset = np.zeros(W.shape[1]), 0
    for j, basis in zip(stat.numeric, stat.splines, strict=True):
        width = basis.c.shape[1]
        spline = BSpline(basis.t, basis.c @ W[offset : offset + width], basis.k)
        offset += width
        knots = np.unique(basis.t[basis.k : -basis.k])
        constant += spline(knots[0])
        for b, h in zip(knots[:-1], np.diff(knots), strict=True):
            intervals.append((int(j), b, h))
            for power in range(1, 4):  # Taylor's expansion at the start of the interval
                powers[power - 1].append(spline(b, nu=power) * h**power / factorial(power))
    terms = []
    if intervals:
        columns, starts, widths = map(np.array, zip(*intervals, strict=True))
        ramp = power_of_ramp = _ramps(graph, graph.columns(rows, columns), starts, widths)
        for coefficients in powers:
            terms.append(graph.affine(power_of_ramp, np.array(coefficients), None))
            power_of_ramp = graph.node("Mul", power_of_ramp, ramp)
        terms.append(graph.constant(constant))
    if len(stat.others):
        others = _standardised(graph, stat, stat.others, rows)
        terms.append(graph.affine(others, W[offset:], None))
    return terms


def _ranks(graph: Graph, stat: TableStatistics, rows: str) -> str:
    """Ranks of the columns with spread; see `Table.ranks`."""
    varying = np.flatnonzero(stat.scale > 0)
    is_indicator = stat.indicator[varying]
    blocks = []
    if is_indicator.any():
        indicators = varying[is_indicator]
        low, width = stat.quantiles[0, indicators], stat.scale[indicators]
        shifted = graph.node("Sub", graph.columns(rows, indicators), graph.constant(low))
        blocks.append(graph.node("Div", shifted, graph.constant(width)))
    if not is_indicator.all():
        blocks.append(_distribution(graph, stat, rows))
    ranks = graph.node("Concat", *blocks, axis=1)
    order = np.concatenate([np.flatnonzero(is_indicator), np.flatnonzero(~is_indicator)])
    return graph.columns(ranks, np.argsort(order))


def _distribution(graph: Graph, stat: TableStatistics, rows: str) -> str:
    """Ranks of the columns other than indicators, by their distribution functions."""
    steps = []  # distinct quantiles of each column, and the shares of samples up to them
    for q, shares in zip(*stat.ranked_quantiles, strict=True):
        values, first = np.unique(q, return_index=True)
        steps.append((values, shares[first]))
    shape = len(steps), max(len(values) for values, _ in steps)
    starts, rises, widths = np.zeros(shape), np.zeros(shape), np.ones(shape)
    for j, (values, shares) in enumerate(steps):
        m = len(values) - 1
        starts[j, :m] = values[:-1]
        widths[j, :m] = np.diff(values)
        rises[j, :m] = np.diff(shares)
    x = graph.node("Unsqueeze", graph.columns(rows, stat.ranked), graph.indices([2]))
    terms = graph.node("Mul", _ramps(graph, x, starts, widths), graph.constant(rises))
    lowest = np.array([shares[0] for _, shares in steps])
    centred = graph.node("Add", graph.sums(terms, 2), graph.constant(lowest - 0.5))
    return graph.node("Mul", centred, graph.scalar(float(np.sqrt(12.0))))


def _kernel(graph: Graph, kernel: Kernel, W: _Array, ranks: str) -> str:
    landmarks = kernel.landmarks.astype(np.float64)
    squared_norms = graph.sums(graph.node("Mul", ranks, ranks), keepdims=1)
    cross = graph.affine(ranks, -2.0 * landmarks.T, (landmarks**2).sum(axis=1))
    distances = graph.node("Relu", graph.node("Add", cross, squared_norms))
    kernel_values = graph.node("Exp", graph.node("Mul", distances, graph.scalar(-kernel.gamma)))
    return graph.affine(kernel_values, kernel.whitening.astype(np.float64) @ W, None)


def _interactions(
    graph: Graph, learned: Interactions, stat: TableStatistics, W: _Array, rows: str
) -> list[str]:
    """Terms of the weights of finer bins, of bins and of cells; see `Interactions.features`."""
    terms, offset = [], stat.n_fine
    if offset:
        edges = stat.fine_edges
        columns = np.repeat(stat.numeric, list(map(len, edges)))
        steps = _at_least(graph, graph.columns(rows, columns), np.concatenate(edges))
        starts = stat.fine_starts[:-1]
        rises = np.delete(np.diff(W[:offset], axis=0), starts[1:] - 1, axis=0)
        terms.append(graph.affine(steps, rises, W[starts].sum(axis=0)))
    counts = np.asarray(learned.counts, dtype=np.intp)
    above, digits, first = _bin_digits(graph, stat, rows)
    codes, begin = [*digits.T], [*first]
    tables = np.split(W[offset : offset + counts.sum()], np.cumsum(counts)[:-1])
    offset += int(counts.sum())
    for (i, j), cells in zip(learned.pairs, learned.cells, strict=True):
        codes.append(digits[:, i] * counts[j] + digits[:, j])
        begin.append(first[i] * counts[j] + first[j])
        values = np.zeros((counts[i] * counts[j], W.shape[1]))
        values[cells] = W[offset : offset + len(cells)]
        offset += len(cells)
        tables.append(values)
    table_starts = np.cumsum([0, *map(len, tables)])[:-1]
    numbers = graph.affine(above, np.column_stack(codes), np.array(begin) + table_starts)
    entries = graph.node("Cast", graph.node("Round", numbers), to=_INT64)
    values_of = graph.node("Gather", graph.constant(np.vstack(tables)), entries, axis=0)
    return [*terms, graph.sums(values_of)]


def _bin_digits(graph: Graph, stat: TableStatistics, rows: str) -> tuple[str, _Array, _Array]:
    """Comparisons (n, E) with bounds, weights (E, G) and offsets (G,).

    The weighted sums of comparisons plus the offsets are the bins (n, G) of G groups of columns.
    """
    n_values = len(stat.groups) - stat.n_gaps
    first = np.zeros(len(stat.bins))
    entries: list[tuple[int, float, int, float]] = []  # column, bound, group, and digit of each
    gates: list[tuple[int, slice]] = []  # columns of gaps, and comparisons that they turn off
    for g, (count, members, edges) in enumerate(stat.bins):
        begin, last = len(entries), int(members[-1])
        gap = len(members) > 1 and last >= n_values
        if len(members) > 1 and not gap:  # indicators of categories
            first[g] = count - 1
            entries += [(int(j), 0.5, g, place - first[g]) for place, j in enumerate(members)]
        else:
            entries += [(int(members[0]), edge, g, 1.0) for edge in edges]
        if gap:
            gates.append((last, slice(begin, len(entries))))
            entries.append((last, 0.5, g, count - 1.0))
    inputs, bounds, owner, digit = map(np.array, zip(*entries, strict=True))
    above = _at_least(graph, graph.columns(rows, inputs), bounds)
    if gates:
        closed = np.zeros((len(gates), len(entries)))
        for place, (_, comparisons) in enumerate(gates):
            closed[place, comparisons] = -1.0
        missing = graph.columns(rows, [column for column, _ in gates])
        above = graph.node("Mul", above, graph.affine(missing, closed, np.ones(len(entries))))
    digits = np.zeros((len(entries), len(first)))
    digits[np.arange(len(entries)), owner] = digit
    return above, digits, first

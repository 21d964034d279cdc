"""The rule of pairs in ONNX: the first look at which each series is decided."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from eigenfeat.incomplete.streams import StreamTables
from eigenfeat.models.onnx_graph import Graph

__all__ = ["add_decisions"]

_Array = NDArray[np.float64]

_CERTAIN = 1e30  # reciprocal of the deviation of a difference that is not random


def add_decisions(graph: Graph, tables: StreamTables, rows: str) -> tuple[str, str]:
    """Add nodes that decide series; their prefixes are known up to the first NaN of a row.

    Parameters
    ----------
    graph : Graph
    tables : StreamTables
    rows : str
        Name of the rows (n, d).

    Returns
    -------
    code, time : str
        Names of the classes' indices (n,) and of the numbers of samples (n,), which are 0 where a
        series waits; the class is then the guess at the last look that was possible.
    """
    times = np.append(tables.times, tables.length)
    entries = times * tables.channels
    known, values = _known(graph, rows)
    scores = _scores(graph, tables, entries, values)
    guess = _guesses(graph, tables, entries, values, scores)
    possible = graph.node("GreaterOrEqual", known, graph.constant(entries[None]))
    decided = _decided(graph, tables, scores, guess)
    decided = graph.node("And", possible, decided)
    first = graph.node("ArgMax", _whole(graph, decided), axis=1, keepdims=1)
    some = _any(graph, decided)
    count = graph.node("ReduceSum", _whole(graph, possible), _axes(graph, 1), keepdims=1)
    last = graph.node("Max", graph.node("Sub", count, _int(graph, 1)), _int(graph, 0))
    at = graph.node("Where", some, first, last)
    code = graph.node("GatherElements", guess[0], at, axis=1)
    when = graph.node("Gather", graph.constant(times), first, axis=0)
    time = graph.node("Where", some, when, _int(graph, 0))
    flat = graph.constant(np.array([-1]))
    return graph.node("Reshape", code, flat), graph.node("Reshape", time, flat)


def _known(graph: Graph, rows: str) -> tuple[str, str]:
    """Numbers of known leading entries (n, 1), and rows with 0 for NaN."""
    missing = graph.node("IsNaN", rows)
    before = graph.node("CumSum", _whole(graph, missing), graph.constant(np.array(1)))
    leading = _whole(graph, graph.node("Equal", before, _int(graph, 0)))
    known = graph.node("ReduceSum", leading, _axes(graph, 1), keepdims=1)
    return known, graph.node("Where", missing, graph.scalar(0.0), rows)


def _scores(graph: Graph, tables: StreamTables, entries: NDArray[np.int64], values: str) -> str:
    """(n, p, parts, k): each part's expected scores after each look, affine in the prefix."""
    parts, d = tables.means.shape
    shape = len(entries), parts, len(tables.classes)
    slopes = np.zeros((d, *shape))
    offsets = np.empty(shape)
    for i, t in enumerate(entries):
        for g in range(parts):
            factor = tables.factors[g, :t, :t]
            solved = solve_triangular(factor, tables.gains[g, :t], lower=True, trans="T")
            slopes[:t, i, g] = solved
            offsets[i, g] = tables.scores[g] - tables.means[g, :t] @ solved
    wide = graph.affine(values, slopes.reshape(d, -1), offsets.reshape(-1))
    return str(graph.node("Reshape", wide, graph.constant(np.array([-1, *shape]))))


def _guesses(
    graph: Graph, tables: StreamTables, entries: NDArray[np.int64], values: str, scores: str
) -> tuple[str, str]:
    """Classes of the largest expected scores (n, p), and the weights (n, p, parts, 1)."""
    parts, d = tables.means.shape
    shares = graph.constant(np.ones((1, 1, 1, 1)))
    if parts > 1:
        densities = []
        until = (np.arange(d)[:, None] < entries).astype(np.float64)
        for g in range(parts):
            inverse = solve_triangular(tables.factors[g], np.eye(d), lower=True)
            innovations = graph.affine(values, inverse.T, -(inverse @ tables.means[g]))
            squares = graph.node("Mul", innovations, innovations)
            constant = np.log(tables.weights[g]) - np.log(np.diagonal(tables.factors[g])) @ until
            density = graph.affine(squares, -0.5 * until, constant)
            densities.append(graph.node("Unsqueeze", density, _axes(graph, 2)))
        shares = graph.node("Softmax", graph.node("Concat", *densities, axis=2), axis=2)
        shares = graph.node("Unsqueeze", shares, _axes(graph, 3))
    mixed = graph.node("ReduceSum", graph.node("Mul", shares, scores), _axes(graph, 2), keepdims=0)
    return graph.node("ArgMax", mixed, axis=2, keepdims=0), shares


def _decided(graph: Graph, tables: StreamTables, scores: str, guess: tuple[str, str]) -> str:
    """(n, p): whether all other classes together are unlikely to score higher at the end."""
    code, shares = guess
    looks, parts, k = tables.deviations.shape[:3]
    # The rule's table of each look and guess; at the end nothing is random.
    apart = tables.deviations.transpose(0, 2, 1, 3)
    with np.errstate(divide="ignore"):
        scales = np.where(apart > 0, 1 / (np.sqrt(2) * apart), _CERTAIN)
    ended = np.full((k, parts, k), _CERTAIN)
    table = np.concatenate([scales.reshape(looks * k, parts, k), ended])
    begins = graph.constant(np.arange(looks + 1)[None] * k)
    gathered = graph.node("Gather", graph.constant(table), graph.node("Add", code, begins), axis=0)
    column = graph.node("Unsqueeze", code, _axes(graph, 2, 3))
    of_guess = graph.node("Equal", column, graph.constant(np.arange(k)))
    own = graph.node("Where", of_guess, scores, graph.scalar(0.0))
    own = graph.node("ReduceSum", own, _axes(graph, 3), keepdims=1)
    ahead = graph.node("Mul", graph.node("Sub", own, scores), gathered)
    # In float32, as runtimes have no other.
    error = graph.node("Erf", graph.node("Cast", ahead, to=graph.onnx.TensorProto.FLOAT))
    error = graph.node("Cast", error, to=graph.number)
    tails = graph.node("Sub", graph.scalar(0.5), graph.node("Mul", error, graph.scalar(0.5)))
    tails = graph.node("Where", of_guess, graph.scalar(0.0), tails)
    doubt = graph.node("ReduceSum", tails, _axes(graph, 3), keepdims=1)
    doubt = graph.node(
        "ReduceSum", graph.node("Mul", shares, doubt), _axes(graph, 2, 3), keepdims=0
    )
    risk = np.full(looks + 1, 1 - tables.tau)
    risk[-1] = k  # complete series are always decided
    return str(graph.node("LessOrEqual", doubt, graph.constant(risk[None])))


def _any(graph: Graph, flags: str) -> str:
    """(n, 1): whether any is set."""
    count = graph.node("ReduceSum", _whole(graph, flags), _axes(graph, 1), keepdims=1)
    return str(graph.node("Greater", count, _int(graph, 0)))


def _whole(graph: Graph, flags: str) -> str:
    return str(graph.node("Cast", flags, to=graph.onnx.TensorProto.INT64))


def _axes(graph: Graph, *axes: int) -> str:
    return str(graph.constant(np.array(axes)))


def _int(graph: Graph, value: int) -> str:
    return str(graph.constant(np.array([value])))

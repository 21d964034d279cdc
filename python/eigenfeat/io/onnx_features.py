"""Features of GEM as operators of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat.expansion.features import check_powers
from eigenfeat.io.onnx_graph import Graph

if TYPE_CHECKING:
    from eigenfeat.expansion.features import Layer

__all__ = ["all_classes", "expanded", "layer_features"]


def layer_features(graph: Graph, layer: Layer, rows: str) -> str:
    """Features of a layer."""
    projections = graph.affine(rows, layer.directions, layer.offset)
    terms = expanded(graph, projections, layer.expansion, layer.powers)
    return graph.node("Concat", *terms, axis=1)


def all_classes(model: Any) -> tuple[Any, Any]:
    """Weights (k, p) and intercept (k,) of a logit."""
    coef, intercept = model.coef_, np.broadcast_to(model.intercept_, len(model.coef_))
    if len(coef) == 1:  # the first of two classes has the score 0
        coef = np.vstack([np.zeros_like(coef), coef])
        intercept = np.concatenate([np.zeros(1), intercept])
    return coef, intercept


def expanded(graph: Graph, rows: str, expansion: str, powers: Sequence[int]) -> list[str]:
    """Expansions of projections, in the order of `eigenfeat.expansion.features.expand`."""
    exponents = check_powers(powers)
    if expansion == "none":
        return [rows]
    if expansion == "polynomial":
        return [_power(graph, rows, a) for a in exponents]
    half_waves = [graph.node("Relu", rows), graph.node("Relu", graph.node("Neg", rows))]
    if expansion == "half_wave":
        return [_half_power(graph, half, a) for half in half_waves for a in exponents]
    shifted = [_shifted(graph, half) for half in half_waves]
    return [_power(graph, half, a) for half in shifted for a in exponents]


def _power(graph: Graph, rows: str, exponent: int) -> str:
    """``rows^exponent`` for 1, 2, 3."""
    power = rows
    for _ in range(exponent - 1):
        power = graph.node("Mul", power, rows)
    return power


def _half_power(graph: Graph, rows: str, exponent: int) -> str:
    """``rows^(exponent / 2)`` for 1, 2, 3."""
    if exponent == 2:
        return rows
    root = graph.node("Sqrt", rows)
    return root if exponent == 1 else graph.node("Mul", rows, root)


def _shifted(graph: Graph, rows: str) -> str:
    """``sqrt(1 + samples) - 1``, without its cancellation."""
    one = graph.scalar(1.0)
    root = graph.node("Sqrt", graph.node("Add", rows, one))
    return graph.node("Div", rows, graph.node("Add", root, one))

"""Inputs of an ONNX model: encoded categories, and completed gaps.

A gap is completed by its conditional mean under a Gaussian. With the precision P of the Gaussian
and the known deviations c of a sample, which are 0 where an entry is missing, the deviations u of
the missing entries M solve ``P[M, M] u = -(P c)[M]``. ONNX has no operator that solves equations.
Conjugate gradients, whose steps are masked products with P, solve these equations exactly in as
many steps as entries are missing; the graph has at most 50 steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenfeat._base.validation import show_items
from eigenfeat.io.onnx_graph import LEARNING, Graph
from eigenfeat.samples.categories import Categories

__all__ = ["completed", "input_rows"]

_OUTPUTS = ("label", "probabilities", "prediction", "features")
_MAX_STEPS = 50  # steps of conjugate gradients: bounds the size of the graph
_TINY = 1e-300  # smallest denominator, so that 0 / 0 is 0 after the last step
_DOUBLE, _STRING = 11, 8  # type codes of ONNX


def input_rows(graph: Graph, model: Any) -> str:
    """Declare the inputs of a model, and encode its categories; missing numbers stay NaN."""
    encoder = getattr(model, "columns_", None)
    if encoder is None:
        return graph.input("X", graph.type_code, ["n", int(model.n_features_in_)])
    parts = []
    dates = [encoder.names_[j] for j in encoder.used if encoder.kinds_[j] == "date"]
    if dates:
        raise ValueError(
            "model: expected columns of numbers and categories, got dates in "
            f"{show_items(dates)}; fit to X.drop(columns={dates}), with eigenfeat "
            f"fit --drop {','.join(map(str, dates))}, or put numbers in the columns, such as "
            f"(pandas.to_datetime(X[{dates[0]!r}]) - pandas.Timestamp(0)).dt.days"
        )
    for j in encoder.used:
        name, kind = encoder.names_[j], encoder.kinds_[j]
        if str(name) in ("", *_OUTPUTS):
            what = "the name of an output" if name else "an empty name"
            raise ValueError(
                f"model: expected columns with other names than {', '.join(_OUTPUTS)}, got {what}, "
                f"{name!r}; fit to a table in which this column has another name"
            )
        if kind == "category":
            column = graph.input(str(name), _STRING, ["n", 1])
            parts.append(_encoded(graph, encoder.categories_[name], column))
        else:
            parts.append(graph.input(str(name), graph.type_code, ["n", 1]))
    return graph.node("Concat", *parts, axis=1)


def _encoded(graph: Graph, categories: Categories, column: str) -> str:
    """Encoded columns (n, width) of a column of text (n, 1)."""
    texts = categories.texts
    keys = {"" if text is None else text: code for code, text in enumerate(texts)}
    for code, text in enumerate(texts):
        for other in _other_texts(text):
            if categories.codes_of([other])[0] == code:
                keys.setdefault(other, code)
    codes = graph.node(
        "LabelEncoder",
        column,
        domain=LEARNING,
        keys_strings=list(keys),
        values_int64s=list(keys.values()),
        default_int64=len(texts),
    )
    table = graph.constant(categories.encoded(np.arange(len(texts) + 1)))
    return graph.node("Gather", table, graph.node("Squeeze", codes, graph.indices([1])), axis=0)


def _other_texts(text: str | None) -> list[str]:
    """Other texts of a category: truth values in other letter cases, whole numbers with ".0"."""
    if text is None:
        return []
    if text.lower() in ("true", "false"):
        return [text.lower(), text.upper(), text.capitalize()]
    return [f"{text}.0"] if text.lstrip("-").isdecimal() else []


def completed(graph: Graph, model: Any, rows: str) -> str:
    """Samples with conditional means in place of NaN; see `samples.estimator.complete`."""
    gaussian = getattr(model, "completion_", None)
    if gaussian is None:
        return rows
    unit = np.where(gaussian.scale > 0, gaussian.scale, 1.0)
    precision = np.linalg.inv(gaussian.covariance)
    root = np.sqrt(np.diag(precision))
    scaled = precision / np.outer(root, root)

    def double(array: Any) -> str:
        return graph.constant(np.asarray(array, dtype=np.float64), np.float64)

    def dot(a: str, b: str) -> str:
        return graph.sums(graph.node("Mul", a, b), keepdims=1)

    def ratio(a: str, b: str) -> str:
        return graph.node("Div", a, graph.node("Max", b, double(_TINY)))

    if gaussian.empty.any():
        rows = graph.node("Where", graph.constant(gaussian.empty), graph.scalar(0.0), rows)
    gaps = graph.node("IsNaN", rows)
    mask = graph.node("Cast", gaps, to=_DOUBLE)
    rows64 = graph.node("Cast", rows, to=_DOUBLE)
    # Columns are scaled so that the precision has a unit diagonal.
    origin, size = gaussian.mean + unit * gaussian.shift, unit / root
    known = graph.node("Div", graph.node("Sub", rows64, double(origin)), double(size))
    known = graph.node("Where", gaps, double([0.0]), known)
    matrix = double(scaled)
    product = graph.node("MatMul", known, matrix)
    residual = graph.node("Neg", graph.node("Mul", mask, product))
    step, squared = residual, dot(residual, residual)
    solution = graph.node("Mul", mask, double([0.0]))
    for _ in range(min(len(root), _MAX_STEPS)):
        image = graph.node("Mul", mask, graph.node("MatMul", step, matrix))
        length = ratio(squared, dot(step, image))
        solution = graph.node("Add", solution, graph.node("Mul", length, step))
        residual = graph.node("Sub", residual, graph.node("Mul", length, image))
        before, squared = squared, dot(residual, residual)
        step = graph.node("Add", residual, graph.node("Mul", ratio(squared, before), step))
    scale = np.where(gaussian.scale > 0, size, 0.0)  # constant columns are completed by the mean
    centre = np.where(gaussian.scale > 0, origin, gaussian.mean)
    filled = graph.node("Add", graph.node("Mul", solution, double(scale)), double(centre))
    return graph.node("Where", gaps, graph.numbers(filled), rows)

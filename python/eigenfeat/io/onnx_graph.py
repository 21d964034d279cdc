"""Builder of the graph of an ONNX model, and GEM's features as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.version import __version__
from eigenfeat.expansion.features import check_powers

if TYPE_CHECKING:
    from eigenfeat.expansion.features import Layer

__all__ = ["Graph", "layer_features"]

OPSET = 17  # version of the operators, of ONNX 1.12
IR_VERSION = 8  # version of the file format, of ONNX 1.12
LEARNING = "ai.onnx.ml"  # domain of operators for trees and categories


class Graph:
    """A graph to which methods add nodes; the methods return the names of values."""

    def __init__(self, dtype: str) -> None:
        self.onnx = _onnx()
        self.dtype = np.dtype(dtype)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, array: Any, dtype: Any = None) -> str:
        """An array that is part of the model; numbers have the graph's type by default."""
        name = f"/constant_{len(self._constants)}"
        data = np.asarray(array)
        data = data.astype(dtype or self.dtype) if data.dtype.kind == "f" else data
        helper = self.onnx.numpy_helper
        self._constants.append(helper.from_array(np.ascontiguousarray(data), name=name))
        return name

    def scalar(self, value: float) -> str:
        """A number as an array (1,)."""
        return self.constant(np.array([value], dtype=float))

    def indices(self, places: Any) -> str:
        """Integers, such as indices of columns or axes."""
        return self.constant(np.asarray(places, dtype=np.int64))

    def columns(self, rows: str, places: Any) -> str:
        """The columns with these indices."""
        return self.node("Gather", rows, self.indices(places), axis=1)

    def sums(self, rows: str, axis: int = 1, *, keepdims: int = 0) -> str:
        """Sums along an axis."""
        return self.node("ReduceSum", rows, self.indices([axis]), keepdims=keepdims)

    def numbers(self, values: str) -> str:
        """Values as numbers of the graph's type."""
        return self.node("Cast", values, to=self.type_code)

    def node(
        self, operator: str, *inputs: str, output: str | None = None, **attributes: Any
    ) -> str:
        """The result of an operator."""
        # Names of values that begin with a slash differ from names of columns.
        name = output or f"/{operator.lower()}_{len(self._nodes)}"
        make = self.onnx.helper.make_node
        self._nodes.append(make(operator, list(inputs), [name], name=f"node_{name}", **attributes))
        return name

    def input(self, name: str, kind: int, shape: Sequence[Any]) -> str:
        """Declare an input of the model."""
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int, shape: Sequence[Any]) -> None:
        """Declare a value as an output of the model."""
        info = self.onnx.helper.make_tensor_value_info(name, kind, shape)
        self.outputs.append(info)

    def affine(self, rows: str, matrix: NDArray[Any], offset: NDArray[Any] | None) -> str:
        """``rows @ matrix + offset``."""
        product = self.node("MatMul", rows, self.constant(matrix))
        return product if offset is None else self.node("Add", product, self.constant(offset))

    @property
    def type_code(self) -> int:
        """ONNX's type code of the graph's numbers."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype))

    def _learning_opset(self) -> list[Any]:
        """The set of operators for trees and categories, if the graph uses it."""
        used = any(node.domain == LEARNING for node in self._nodes)
        return [self.onnx.helper.make_opsetid(LEARNING, 3)] if used else []

    def model(self, source: Any) -> Any:
        """The checked ONNX model."""
        helper = self.onnx.helper
        name = type(source).__name__
        graph = helper.make_graph(self._nodes, name, self.inputs, self.outputs, self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET), *self._learning_opset()],
            ir_version=IR_VERSION,
            producer_name="eigenfeat",
            producer_version=__version__,
            doc_string=f"A fitted {name} of eigenfeat {__version__}",
        )
        metadata = {"estimator": name}
        names = getattr(source, "feature_names_in_", None)
        if names is not None:
            metadata["feature_names"] = "\n".join(map(str, names))
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model, full_check=True)
        return model


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            'onnx: expected an installed package, got none: pip install "eigenfeat[onnx]"'
        ) from error
    return onnx


def layer_features(graph: Graph, layer: Layer, rows: str) -> str:
    """Features of a layer."""
    offset = layer.offset if layer.offset.any() else None
    projections = graph.affine(rows, layer.directions, offset)
    if layer.shares is not None:
        projections = _compressed(graph, projections, layer.shares)
    terms = _expanded(graph, projections, layer.wave, layer.powers)
    if layer.include_input:
        terms = [rows, *terms]
    return graph.node("Concat", *terms, axis=1)


def _compressed(graph: Graph, projections: str, shares: NDArray[Any]) -> str:
    """See `eigenfeat.expansion.features.compressed`."""
    sizes = graph.affine(graph.node("Abs", projections), shares, None)
    tiny = graph.scalar(float(np.finfo(np.float32).tiny))
    roots = graph.node("Sqrt", graph.node("Max", sizes, tiny))
    return graph.node("Div", projections, graph.affine(roots, (shares > 0).T.astype(float), None))


def _expanded(graph: Graph, rows: str, expansion: str, powers: Sequence[int]) -> list[str]:
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
    """``sqrt(1 + rows) - 1``, computed without cancellation."""
    one = graph.scalar(1.0)
    root = graph.node("Sqrt", graph.node("Add", rows, one))
    return graph.node("Div", rows, graph.node("Add", root, one))

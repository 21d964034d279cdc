"""The graph of an ONNX model while it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.version import __version__

__all__ = ["Graph"]

OPSET = 17
IR_VERSION = 8
LEARNING = "ai.onnx.ml"  # domain of operators for trees and categories


class Graph:
    """Nodes in order; values go by the names that the methods return."""

    def __init__(self, dtype: str) -> None:
        self.onnx = _onnx()
        self.dtype = np.dtype(dtype)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._scalars: dict[float, str] = {}
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
        """A number."""
        if value not in self._scalars:
            self._scalars[value] = self.constant(np.array([value], dtype=float))
        return self._scalars[value]

    def node(
        self, operator: str, *inputs: str, output: str | None = None, **attributes: Any
    ) -> str:
        """The result of an operator."""
        name = output or f"/{operator.lower()}_{len(self._nodes)}"  # unlike names of columns
        make = self.onnx.helper.make_node
        self._nodes.append(make(operator, list(inputs), [name], name=f"node_{name}", **attributes))
        return name

    def input(self, name: str, kind: int, shape: Sequence[Any]) -> str:
        """Make a value an input."""
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int, shape: Sequence[Any]) -> None:
        """Make a value an output."""
        info = self.onnx.helper.make_tensor_value_info(name, kind, shape)
        self.outputs.append(info)

    def affine(self, rows: str, matrix: NDArray[Any], offset: NDArray[Any] | None) -> str:
        """``rows @ matrix + offset``."""
        product = self.node("MatMul", rows, self.constant(matrix))
        return product if offset is None else self.node("Add", product, self.constant(offset))

    @property
    def number(self) -> int:
        """The type of numbers, as ONNX counts types."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype))

    def _learning_opset(self) -> list[Any]:
        """The set of operators for trees and categories, if the graph uses it."""
        used = any(node.domain == LEARNING for node in self._nodes)
        return [self.onnx.helper.make_opsetid(LEARNING, 3)] if used else []

    def model(self, source: Any) -> Any:
        """The whole, checked."""
        helper = self.onnx.helper
        name = type(source).__name__
        graph = helper.make_graph(self._nodes, name, self.inputs, self.outputs, self._constants)
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET), *self._learning_opset()],
            ir_version=IR_VERSION,
            producer_name="eigenfeat",
            producer_version=__version__,
            doc_string=f"A fitted {name} of eigenfeat {__version__}",
        )
        about = {"estimator": name}
        names = getattr(source, "feature_names_in_", None)
        if names is not None:
            about["feature_names"] = "\n".join(map(str, names))
        helper.set_model_props(made, about)
        self.onnx.checker.check_model(made, full_check=True)
        return made


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            'onnx: expected to be installed for this, as by pip install "eigenfeat[onnx]"'
        ) from error
    return onnx

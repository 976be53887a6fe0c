"""Collects the nodes and initializers of an ONNX graph, whose values are rows of packed tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from oga.export.tensor_file import TensorFile

CONTRIB = "com.microsoft"
OWN = "oga"  # operators that only this engine has
OPSETS = {"": 23, CONTRIB: 1, OWN: 1}
_IR_VERSION = 10  # what onnxruntime 1.23 reads


class GraphWriter:
    """A graph that grows. Weights go straight into a data file, so that none is held."""

    def __init__(self, data: TensorFile, rows: str) -> None:
        """Starts an empty graph.

        Args:
            data: receives the weights in the order of the graph.
            rows: the leading, symbolic dimension of what nodes compute, until ``rows`` is set anew.
        """
        self.rows = rows
        self.data = data
        self.nodes: list[ir.Node] = []
        self._inputs: list[ir.Value] = []
        self._initializers: dict[str, ir.Value] = {}

    def input(self, name: str, dtype: ir.DataType, dims: Sequence[int | str]) -> ir.Value:
        """Declares an input of the graph."""
        self._inputs.append(_typed(name, dtype, dims))
        return self._inputs[-1]

    def store(self, name: str, array: Any, dtype: ir.DataType | None = None) -> ir.Value:
        """An initializer in the data file; ``dtype`` is what the bytes stand for, where NumPy has no such type."""
        return self._known(self.data.append(name, array, dtype))

    def stored_again(self, name: str, value: ir.Value, *dims: int) -> ir.Value:
        """An initializer of another shape over the bytes of one that ``store`` returned."""
        return self._known(self.data.reshaped(name, value, *dims))

    def constant(self, name: str, array: Any) -> ir.Value:
        """A small initializer inside the model file, where shape inference finds it. Written once per name."""
        if name not in self._initializers:
            tensor = ir.tensor(array, name=name)
            self._known(
                ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
            )
        return self._initializers[name]

    def value(self, name: str, *dims: int | str, dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
        """A value that a node will compute."""
        return _typed(name, dtype, dims)

    def node(
        self,
        operator: str,
        inputs: Sequence[ir.Value | None],
        name: str,
        *dims: int,
        domain: str = "",
        output: str | None = None,
        dtype: ir.DataType = ir.DataType.FLOAT,
        **attributes: Any,
    ) -> ir.Value:
        """Adds a node with one output, of the current rows by ``dims``."""
        value = _typed(output or f"{name}_output", dtype, (self.rows, *dims))
        self.nodes.append(ir.node(operator, inputs, attributes, domain=domain, outputs=[value], name=name))
        return value

    def model(self, outputs: Sequence[ir.Value]) -> ir.Model:
        """The finished model, without initializers that no node reads."""
        read = {value.name for node in self.nodes for value in node.inputs if value is not None}
        domains = {node.domain for node in self.nodes}
        graph = ir.Graph(
            self._inputs,
            outputs,
            nodes=self.nodes,
            initializers=[value for name, value in self._initializers.items() if name in read],
            opset_imports={domain: version for domain, version in OPSETS.items() if domain in domains},
            name="decoder",
        )
        return ir.Model(graph, ir_version=_IR_VERSION, producer_name="oga")

    def _known(self, value: ir.Value) -> ir.Value:
        self._initializers[str(value.name)] = value
        return value


def dims_of(value: ir.Value) -> list[int]:
    """Dimensions of a value, 0 for a symbolic one."""
    dims = value.shape if value.shape is not None else ()
    return [dim if isinstance(dim, int) else 0 for dim in dims]


def _typed(name: str, dtype: ir.DataType, dims: Sequence[int | str]) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(dims), type=ir.TensorType(dtype))

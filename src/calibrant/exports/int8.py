"""Integers of 8 bits in the place of the weights, and of what is multiplied with them.

``quantize_dynamic`` of onnxruntime takes one scale for a whole batch: a few large values in one token make
all others coarse, and a text's label can depend on the texts beside it. Here every token has its own range
[l, u], every column of a weight its own scale v, and every word of the embeddings its own, too:

    x ≈ l + r·a,  r = (u − l)/255,  a in 0 … 255        w ≈ v·b,  b in −63 … 63
    x·w ≈ r·v·Σ a·b + l·v·Σ b

Σ a·b is computed in integers. b has 7 bits: processors without VNNI add two products in 16 bits, and with
2·255·63 < 2¹⁵ they give the same sum as all others. What reads the last features, the head, stays in float32.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 63
SMALLEST_TABLE = 2**16
"""Weights in an embedding that is worth it; positions and token types are not."""
TINY = np.float32(1e-12)


def quantised(model: Any) -> Any:
    """A copy of a graph with such products and tables in the place of float32 ones."""
    from onnx import TensorProto, numpy_helper

    found = type(model)()
    found.CopyFrom(model)
    graph = found.graph
    del graph.value_info[:]  # they tell the types of before, and onnxruntime refuses them
    weights = {each.name: each for each in graph.initializer if each.data_type == TensorProto.FLOAT}
    writer = _Writer()
    for node in model.graph.node:
        weight = weights.get(node.input[_WEIGHT[node.op_type]]) if node.op_type in _WEIGHT else None
        values = None if weight is None else numpy_helper.to_array(weight)
        if values is not None and node.op_type == "MatMul" and values.ndim == 2:
            writer.product(node, values)
        elif values is not None and node.op_type == "Gather" and values.size >= SMALLEST_TABLE:
            writer.table(node, values)
        else:
            writer.nodes.append(node)
    used = {name for node in writer.nodes for name in node.input}
    kept = [each for each in model.graph.initializer if each.name in used]
    for part, new in ((graph.node, writer.nodes), (graph.initializer, [*kept, *writer.arrays])):
        del part[:]
        part.extend(new)
    return found


_WEIGHT = {"MatMul": 1, "Gather": 0}
"""Which input is the weight."""


class _Writer:
    """Collects nodes and arrays."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []
        self._tokens: dict[str, tuple[str, str, str]] = {}
        self._known: set[str] = set()
        self._numbers = self._names()

    def product(self, node: Any, w: NDArray[np.float32]) -> None:
        """x·w, of x (…, h) and w (h, k)."""
        from onnx import TensorProto

        (x, name), (y,) = node.input, node.output
        v = np.maximum(np.abs(w).max(axis=0), TINY) / LARGEST
        b = np.round(w / v).astype(np.int8)
        low, r, a = self._of_tokens(x)
        total = self._array(f"{name}_sum", (v * b.sum(axis=0, dtype=np.int64)).astype(np.float32))
        products = self._node("MatMulInteger", a, self._array(f"{name}_int8", b))
        scaled = self._node("Mul", self._node("Cast", products, to=TensorProto.FLOAT), r)
        scaled = self._node("Mul", scaled, self._array(f"{name}_scale", v.astype(np.float32)))
        self._node("Add", scaled, self._node("Mul", low, total), out=y)

    def table(self, node: Any, w: NDArray[np.float32]) -> None:
        """Rows of w (V, h) by their number."""
        from onnx import TensorProto

        (name, ids), (y,) = node.input, node.output
        v = np.maximum(np.abs(w).max(axis=1, keepdims=True), TINY) / 127
        row = self._node("Gather", self._array(f"{name}_int8", np.round(w / v).astype(np.int8)), ids)
        scale = self._node("Gather", self._array(f"{name}_scale", v.astype(np.float32)), ids)
        self._node("Mul", self._node("Cast", row, to=TensorProto.FLOAT), scale, out=y)

    def _of_tokens(self, x: str) -> tuple[str, str, str]:
        """The names of l, r and a; query, key and value share them."""
        from onnx import TensorProto

        if x not in self._tokens:
            last = self._array("int8_last_axis", np.array([-1]))
            low = self._node("ReduceMin", x, last, keepdims=1)
            span = self._node("Sub", self._node("ReduceMax", x, last, keepdims=1), low)
            r = self._node("Mul", span, self._array("int8_step", np.float32(1 / 255)))
            r = self._node("Max", r, self._array("int8_tiny", TINY))
            a = self._node("Round", self._node("Div", self._node("Sub", x, low), r))
            self._tokens[x] = low, r, self._node("Cast", a, to=TensorProto.UINT8)
        return self._tokens[x]

    def _node(self, kind: str, *inputs: str, out: str | None = None, **how: Any) -> str:
        from onnx import helper

        name = out or next(self._numbers)
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"node_{name}_int8", **how))
        return name

    def _array(self, name: str, values: Any) -> str:
        from onnx import numpy_helper

        if name not in self._known:
            self._known.add(name)
            self.arrays.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    @staticmethod
    def _names() -> Iterator[str]:
        number = 0
        while True:
            yield f"int8_{number}"
            number += 1

"""ONNX files as bytes: the little of protobuf that a graph with its tensors needs.

The field numbers are those of onnx.proto3 of the ONNX standard; no package is needed to write them.
"""

import struct
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

Dim = Union[int, str]  # a number, or the name of an axis that stays open

FLOAT, INT64, BOOL = 1, 7, 9
_NUMPY = {"float32": FLOAT, "int64": INT64, "bool": BOOL}


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are ten bytes, as protobuf has them
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, value: Union[bytes, str]) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name: str, value: Any) -> bytes:
    out = _block(1, name)
    if isinstance(value, bool):
        return out + _number(3, int(value)) + _number(20, 2)
    if isinstance(value, int):
        return out + _number(3, value) + _number(20, 2)
    if isinstance(value, float):
        return out + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, str):
        return out + _block(4, value) + _number(20, 3)
    if value and all(isinstance(v, float) for v in value):
        packed = struct.pack(f"<{len(value)}f", *value)
        return out + _block(7, packed) + _number(20, 6)
    if value and all(isinstance(v, str) for v in value):
        return out + b"".join(_block(9, v) for v in value) + _number(20, 8)
    return out + b"".join(_number(8, int(v)) for v in value) + _number(20, 7)


def _tensor(name: str, array: Any) -> bytes:
    dims = b"".join(_number(1, int(d)) for d in array.shape)
    return (
        dims + _number(2, _NUMPY[str(array.dtype)]) + _block(8, name) + _block(9, array.tobytes())
    )


def _value(name: str, elements: int, dims: Optional[Sequence[Dim]]) -> bytes:
    kind = _number(1, elements)
    if dims is not None:
        shape = b"".join(
            _block(1, _number(1, d) if isinstance(d, int) else _block(2, d)) for d in dims
        )
        kind += _block(2, shape)
    return _block(1, name) + _block(2, _block(1, kind))


class OnnxGraph:
    """Nodes in the order of their execution, tensors by name, inputs and outputs."""

    def __init__(self) -> None:
        self._nodes: List[bytes] = []
        self._tensors: List[bytes] = []
        self._inputs: List[bytes] = []
        self._outputs: List[bytes] = []

    def node(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Dict[str, Any]
    ) -> None:
        body = b"".join(_block(1, i) for i in inputs) + b"".join(_block(2, o) for o in outputs)
        body += _block(3, outputs[0]) + _block(4, op)
        body += b"".join(_block(5, _attribute(k, v)) for k, v in attributes.items())
        self._nodes.append(_block(1, body))

    def tensor(self, name: str, array: Any) -> None:
        self._tensors.append(_block(5, _tensor(name, array)))

    def constant(self, name: str, array: Any) -> None:
        """A node that gives an array: importers take initializers alone for weights."""
        value = _block(1, "value") + _block(5, _tensor("", array)) + _number(20, 4)
        self._nodes.append(
            _block(1, _block(2, name) + _block(3, name) + _block(4, "Constant") + _block(5, value))
        )

    def input(self, name: str, dims: Sequence[Dim], elements: int = FLOAT) -> None:
        self._inputs.append(_block(11, _value(name, elements, dims)))

    def output(self, name: str, elements: int = FLOAT) -> None:
        self._outputs.append(_block(12, _value(name, elements, None)))

    def serialize(self, opset: int, metadata: Sequence[Tuple[str, str]] = ()) -> bytes:
        parts = (*self._nodes, _block(2, "absorbed"), *self._tensors, *self._inputs)
        graph = b"".join((*parts, *self._outputs))
        out = _number(1, 9) + _block(2, "loom.bridge") + _block(7, graph)
        out += _block(8, _block(1, "") + _number(2, opset))
        return out + b"".join(_block(14, _block(1, k) + _block(2, v)) for k, v in metadata)

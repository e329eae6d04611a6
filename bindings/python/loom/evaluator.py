"""Evaluator: runs an ONNX or TFLite file unchanged, node by node, on the CPU.

graph = loom.Evaluator("model.onnx")
outputs = graph.run({"x": x})  # by their names
"""

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._library import FileBytes, Handle, encoded, handle_from, is_bytes, lib, text_from
from .arrays import as_tensor
from .engine import Engine, engine_handle
from .errors import InvalidArgumentError
from .network import Path
from .session import run_ports


class GraphValue(NamedTuple):
    """An input or output of a graph."""

    name: str
    type: str  # "float", "int64", "bool", ...
    shape: Optional[Tuple[int, ...]]  # -1 is any extent; None is an unknown rank


class Evaluator(Handle):
    """A graph of an ONNX or TFLite file. It has every type, exact integers, shapes that depend on
    data, If, Loop and Scan. A Network has gradients, training, fused layers and GPUs instead.

    inputs and outputs have the names, types and shapes. Booleans are uint8, 0 and 1.
    """

    _FREE = "loom_evaluator_free"

    def __init__(
        self,
        path: Union[Path, bytes],
        *,
        name: Optional[str] = None,
        engine: Optional[Engine] = None,
    ) -> None:
        """path: or the bytes of such a file, which errors call `name`."""
        on = engine_handle(engine)
        if is_bytes(path):
            file = FileBytes(path, name)
            made = handle_from(lib.loom_evaluator_load_memory, on, *file.arguments)
        else:
            made = handle_from(lib.loom_evaluator_load, on, encoded(path))
        super().__init__(made)

    def _values(self, which: str) -> List[GraphValue]:
        rows = json.loads(text_from(lib.loom_evaluator_json, self.handle))[which]
        return [
            GraphValue(r["name"], r["type"], None if r["shape"] is None else tuple(r["shape"]))
            for r in rows
        ]

    @property
    def inputs(self) -> List[GraphValue]:
        """In the order of the file, without those that have a default value."""
        return self._values("inputs")

    @property
    def outputs(self) -> List[GraphValue]:
        """In the order of the file."""
        return self._values("outputs")

    def run(self, inputs: Union[Dict[str, Any], Sequence[Any]]) -> Dict[str, Any]:
        """All inputs, by name or in order, to all outputs by name. InvalidArgumentError: an input
        that differs from the file."""
        if isinstance(inputs, dict):
            names = [value.name for value in self.inputs]
            if sorted(names) != sorted(inputs):
                raise InvalidArgumentError(
                    f"the graph takes {', '.join(names)}; got {', '.join(inputs) or 'none'}"
                )
            inputs = [inputs[name] for name in names]
        tensors = [as_tensor(values) for values in inputs]
        return run_ports(lib.loom_evaluator_run, self.handle, tensors)

    def __repr__(self) -> str:
        if self.closed:
            return "<loom.Evaluator, closed>"
        names = [", ".join(v.name for v in side) for side in (self.inputs, self.outputs)]
        return f"<loom.Evaluator {names[0]} -> {names[1]}>"

"""A model of another framework as bytes, for `loom absorb` in another process or elsewhere.

sys.stdout.buffer.write(loom.bridge.stream(model, x))  # python3 export.py | loom absorb -o a.entity

Layout (docs/absorb.md): u64 length of the manifest | manifest, JSON | zeros to a multiple of 64 |
payload | SHA-256 of everything before it. It hands over the graph, the example inputs and what the
framework computed for them; the network is made, and proven, by who reads it.
"""

import hashlib
import json
import struct
from typing import Any, Dict, List

import numpy as np

from ..errors import InvalidArgumentError
from . import transformers

SCHEMA = "bridge.stream/2"
_ALIGNMENT = 64


class _Payload:
    """Pieces of bytes, each at a multiple of 64, and the position of each."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def add(self, piece: bytes) -> Dict[str, Any]:
        self.bytes += bytes(-len(self.bytes) % _ALIGNMENT)
        store = {"offset": len(self.bytes), "length": len(piece)}
        self.bytes += piece
        return {"store": store, "sha256": hashlib.sha256(piece).hexdigest()}

    def array(self, values: Any) -> Dict[str, Any]:
        plain = np.ascontiguousarray(values)
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        return {
            "dtype": plain.dtype.name,
            "shape": [int(n) for n in np.shape(values)],
            **self.add(little.tobytes()),
        }


def stream(
    model: Any, example_inputs: Any = None, *, abs_tol: float = 1e-5, rel_tol: float = 1e-4
) -> bytes:
    """The stream of a model, with what its framework computes for the example inputs.

    Takes what `loom.absorb` takes, but for language models of transformers, whose folder is the
    better stream. Raises Unabsorbable with every problem, and InvalidArgumentError where the inputs
    or the kind of the model do not fit.
    """
    from . import Unabsorbable, _listed, _planet_of

    if transformers.is_language_model(model):
        raise InvalidArgumentError(
            "a language model of transformers has no stream; save_pretrained() it and use "
            "`loom convert`"
        )
    plan, inputs, expected = _planet_of(model)(model, _listed(example_inputs))
    if plan.problems:
        raise Unabsorbable(plan.problems)
    if plan.torch is not None:
        plan.torch.find(plan, None)
    payload = _Payload()
    graph = {"format": "onnx", **payload.add(plan.serialize())}
    asked: List[Any] = [payload.array(x) for x in inputs]
    wanted: List[Any] = [payload.array(np.asarray(y, dtype=np.float32)) for y in expected]
    manifest = {
        "schema": SCHEMA,
        "name": plan.name,
        "source": plan.source,
        "graph": graph,
        **({} if plan.source_parameters is None else {"trainable": plan.source_parameters}),
        "fixture": {
            "inputs": asked,
            "expected": wanted,
            "tolerance": {"abs": float(abs_tol), "rel": float(rel_tol)},
        },
    }
    text = json.dumps(manifest, ensure_ascii=True).encode()
    head = struct.pack("<Q", len(text)) + text
    body = head + bytes(-len(head) % _ALIGNMENT) + bytes(payload.bytes)
    return body + hashlib.sha256(body).digest()

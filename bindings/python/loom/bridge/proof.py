"""The proof of an absorbed model: what the source framework computed, and what the engine does.

Rungs: the source in its own process; the engine on the network that was just built; the engine on
the saved file, in a fresh process. The engine's rungs have to agree bit for bit, and with the
source within |a - b| <= abs + rel |b|.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Sequence

import numpy as np

from ..errors import InternalError

_ASK = """
import sys
import numpy as np
import loom
inputs = np.load(sys.argv[2])
names = [n for n in inputs.files if n != "::dtype"]
network = loom.Network.load(sys.argv[1])
from loom.bridge.proof import ask
np.savez(sys.argv[3], *ask(network, [inputs[n] for n in names]))
"""


def ask(network: Any, inputs: Sequence[Any]) -> List[Any]:
    """What the network says, as a list of arrays, one for each output."""
    given = {port.name: array for port, array in zip(network.inputs, inputs)}
    with network.session(max_batch=max(1, len(inputs[0]))) as session:
        return [np.asarray(v, dtype=np.float32) for v in session.run(given).values()]


def digest(arrays: Sequence[Any]) -> str:
    """SHA-256 over dtypes, shapes and little-endian bytes."""
    out = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        out.update(f"{array.dtype.str}{array.shape}".encode())
        out.update(array.tobytes())
    return out.hexdigest()


def _ulps(a: Any, b: Any) -> int:
    """The largest distance in float32 numbers that lie between a and b."""

    def ordered(x: Any) -> Any:
        bits = np.ascontiguousarray(x, dtype=np.float32).view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return int(np.abs(ordered(a) - ordered(b)).max()) if a.size else 0


def compare(wanted: Any, got: Any, abs_tol: float, rel_tol: float) -> Dict[str, Any]:
    """How far `got` is from `wanted`, and the first place beyond the tolerance."""
    wanted = np.asarray(wanted, dtype=np.float64)
    got = np.asarray(got, dtype=np.float64)
    if wanted.shape != got.shape:
        return {"shapes": [list(wanted.shape), list(got.shape)], "pass": False}
    difference = np.abs(wanted - got)
    far = np.flatnonzero(~(difference <= abs_tol + rel_tol * np.abs(wanted)))
    large = np.abs(wanted) > 1e-6  # relative differences mean nothing below
    norms = np.linalg.norm(wanted) * np.linalg.norm(got)
    return {
        "max_abs": float(difference.max()) if difference.size else 0.0,
        "max_rel": float((difference[large] / np.abs(wanted[large])).max()) if large.any() else 0.0,
        "max_ulp": _ulps(wanted.astype(np.float32), got.astype(np.float32)),
        "cosine": float((wanted * got).sum() / norms) if norms > 0 else 1.0,
        "first_beyond": int(far[0]) if far.size else None,
        "pass": far.size == 0,
    }


class Proof:
    """`passed`, the figures of each output, and hashes of the inputs and of every rung."""

    def __init__(self, report: Dict[str, Any]) -> None:
        self.report = report

    @property
    def passed(self) -> bool:
        return bool(self.report["passed"])

    @property
    def max_abs(self) -> float:
        return max((o.get("max_abs", float("inf")) for o in self.report["outputs"]), default=0.0)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """The report with inputs and expected outputs, for `python -m loom.bridge.verify`."""
        arrays = {f"input{i}": a for i, a in enumerate(self.report["_inputs"])}
        arrays.update({f"expected{i}": a for i, a in enumerate(self.report["_expected"])})
        with open(path, "wb") as file:
            np.savez(file, report=np.frombuffer(self.json().encode(), np.uint8), **arrays)

    def json(self) -> str:
        return json.dumps({k: v for k, v in self.report.items() if not k.startswith("_")}, indent=1)

    def __repr__(self) -> str:
        verdict = "holds" if self.passed else "FAILED"
        return f"<loom.bridge.Proof {verdict}: max abs {self.max_abs:.3g}, {self.report['source']}>"


def prove(
    network: Any,
    inputs: Sequence[Any],
    expected: Sequence[Any],
    source: str,
    abs_tol: float,
    rel_tol: float,
    fresh_process: bool,
) -> Proof:
    """Climbs the rungs. Raises InternalError where the engine disagrees with itself."""
    got = ask(network, inputs)
    outputs = [compare(w, g, abs_tol, rel_tol) for w, g in zip(expected, got)]
    rungs = {"native": digest([np.float32(e) for e in expected]), "engine": digest(got)}
    if fresh_process:
        rungs["fresh process"] = digest(_ask_fresh(network, inputs))
        if rungs["fresh process"] != rungs["engine"]:
            raise InternalError(
                "the saved file computes other bits than the network it was made of"
            )
    whole = len(got) == len(expected) and all(o["pass"] for o in outputs)
    return Proof(
        {
            "schema": "loom.proof/1",
            "source": source,
            "tolerance": {"abs": abs_tol, "rel": rel_tol},
            "inputs": digest(inputs),
            "rungs": rungs,
            "outputs": outputs,
            "passed": whole,
            "_inputs": list(inputs),
            "_expected": list(expected),
        }
    )


def _ask_fresh(network: Any, inputs: Sequence[Any]) -> List[Any]:
    with tempfile.TemporaryDirectory(prefix="loom_proof_") as folder:
        paths = [os.path.join(folder, n) for n in ("net.entity", "in.npz", "out.npz")]
        network.save(paths[0])
        np.savez(paths[1], **{f"i{k:04}": a for k, a in enumerate(inputs)})
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        search = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
        ended = subprocess.run(
            [sys.executable, "-c", _ASK, *paths],
            env={**os.environ, "PYTHONPATH": search},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != 0:
            raise InternalError(f"a fresh process cannot ask the saved file: {ended.stderr[-300:]}")
        said = np.load(paths[2])
        return [said[n] for n in said.files]

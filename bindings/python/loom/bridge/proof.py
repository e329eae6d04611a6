"""The proof of an absorbed model: what the source framework computed, and what the engine does.

Rungs: the source in its own process ("native"); the engine on the network that was just built
("engine"); the engine on the saved file in a fresh process ("file"); the same file there through
the sessions of this package ("wheel"). The last three have to agree bit for bit, and with the
source within |a - b| <= abs + rel |b|. The network carries the proof, and its .entity file does.
"""

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .. import _ffi
from .._library import encoded, lib, sized, text_from
from ..arrays import as_tensor
from ..errors import InternalError, NotFoundError
from ..network import Network

_FRESH = """
import sys
from loom.bridge.proof import climb_fresh
climb_fresh(*sys.argv[1:])
"""
_HERE = "native, engine"


def ask(network: Network, inputs: Sequence[Any]) -> List[Any]:
    """The outputs of the network, as a list of arrays."""
    given = {port.name: array for port, array in zip(network.inputs, inputs)}
    samples = inputs[0].shape[0] if inputs[0].ndim else 1
    with network.session(max_batch=max(1, samples)) as session:
        return [np.asarray(v, dtype=np.float32) for v in session.run(given).values()]


def digest(arrays: Sequence[Any]) -> str:
    """SHA-256 over, for each array, a line "float32 2x3" and its little-endian bytes."""
    out = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        out.update(f"{array.dtype.name} {'x'.join(map(str, array.shape))}\n".encode())
        out.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    return out.hexdigest()


def compare(wanted: Any, got: Any, abs_tol: float, rel_tol: float) -> Dict[str, Any]:
    """The figures of a proof, of what no Network computed. Shapes have to be equal."""
    wanted = np.asarray(wanted, dtype=np.float32).ravel()
    got = np.asarray(got, dtype=np.float32).ravel()
    far = np.abs(wanted.astype(np.float64) - got)
    size = np.abs(wanted.astype(np.float64))
    beyond = np.flatnonzero(~(far <= abs_tol + rel_tol * size))
    bits = [a.view(np.int32).astype(np.int64) for a in (wanted, got)]
    ordered = [np.where(b < 0, -(b & 0x7FFFFFFF), b) for b in bits]
    lengths = np.linalg.norm(wanted.astype(np.float64)) * np.linalg.norm(got.astype(np.float64))
    return {
        "max_abs": float(far.max(initial=0.0)),
        "max_rel": float((far[size > 1e-6] / size[size > 1e-6]).max(initial=0.0)),
        "max_ulp": int(np.abs(ordered[0] - ordered[1]).max(initial=0)),
        "cosine": float((wanted.astype(np.float64) * got).sum() / lengths) if lengths else 1.0,
        "first_beyond": int(beyond[0]) if beyond.size else -1,
    }


class Proof:
    """`passed`, the figures of each output, and hashes of inputs, expected outputs and outputs.

    `str(proof)` is one line. Networks that loom.absorb() made have one, and so do their files.
    """

    def __init__(self, report: Dict[str, Any]) -> None:
        self.report = report

    @property
    def passed(self) -> bool:
        return bool(self.report.get("holds", True))

    @property
    def problem(self) -> str:
        """Why it does not hold; "" where it does."""
        return str(self.report.get("problem", ""))

    @property
    def source(self) -> str:
        """Framework, version and model: "PyTorch 2.5.1: Sequential"."""
        return str(self.report["source"])

    @property
    def rungs(self) -> Tuple[str, ...]:
        """The compared values."""
        return tuple(self.report["rungs"].split(", "))

    @property
    def max_abs(self) -> float:
        return max((float(o["max_abs"] or 0) for o in self.report["outputs"]), default=0.0)

    def json(self) -> str:
        return json.dumps(self.report, indent=1)

    def __str__(self) -> str:
        if "text" in self.report:  # of a comparison that was made here
            return str(self.report["text"])
        return (
            f"the proof holds: {self.source}; rungs {', '.join(self.rungs)}; "
            f"max abs {self.max_abs:.2g}"
        )

    def __repr__(self) -> str:
        verdict = "holds" if self.passed else "FAILED"
        return f"<loom.bridge.Proof {verdict}: max abs {self.max_abs:.3g}, {self.source}>"


def verify_proof(path: Any, *, engine: Any = None) -> Proof:
    """Repeats the proof in a file on this machine, as `loom verify proof` does.

    The Proof that is returned tells whether it holds (`passed`) and if not, why (`problem`). Raises
    NotFoundError where the file carries none, and BadFileError where it is damaged.
    """
    network = Network.load(path, engine=engine)
    try:
        return Proof(json.loads(text_from(lib.loom_network_verify_proof, network.handle)))
    except NotFoundError as error:
        raise NotFoundError(f"{path}: {error}") from None


def carried(network: Network) -> "Proof | None":
    """The proof that a network carries; None: it has none, or was changed since."""
    try:
        return Proof(json.loads(text_from(lib.loom_network_proof, network.handle)))
    except NotFoundError:
        return None


def prove(
    network: Network,
    inputs: Sequence[Any],
    expected: Sequence[Any],
    source: str,
    abs_tol: float,
    rel_tol: float,
    fresh_process: bool,
    here: str = _HERE,
) -> Proof:
    """Climbs the rungs; where all hold, the network carries the proof. here: those of this process.

    Raises InternalError where the engine disagrees with itself.
    """
    said = _compared(network, inputs, expected, source, abs_tol, rel_tol, here)
    if not said.passed or not fresh_process:
        return said
    _climb(network, inputs, said.report["outputs_sha256"])
    rungs = f"{here}, file, wheel"
    return _compared(network, inputs, expected, source, abs_tol, rel_tol, rungs)


def _compared(
    network: Network,
    inputs: Sequence[Any],
    expected: Sequence[Any],
    source: str,
    abs_tol: float,
    rel_tol: float,
    rungs: str,
) -> Proof:
    options = sized(
        _ffi.loom_prove_options,
        source=encoded(source),
        rungs=encoded(rungs),
        abs_tol=abs_tol if abs_tol > 0 else -1.0,
        rel_tol=rel_tol if rel_tol > 0 else -1.0,
    )
    given = [as_tensor(a) for a in inputs]
    wanted = [as_tensor(np.asarray(e, dtype=np.float32)) for e in expected]
    return Proof(
        json.loads(
            text_from(
                lib.loom_network_prove,
                network.handle,
                (_ffi.loom_tensor * len(given))(*[t.tensor for t in given]),
                len(given),
                (_ffi.loom_tensor * len(wanted))(*[t.tensor for t in wanted]),
                len(wanted),
                ctypes.byref(options),
            )
        )
    )


def ask_fresh(program: str, *arguments: str) -> str:
    """The output of a program in a fresh process that can import this package."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    search = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise InternalError(f"a fresh process cannot ask the saved file: {ended.stderr[-300:]}")
    return ended.stdout


def _climb(network: Network, inputs: Sequence[Any], engine: str) -> None:
    """The rungs of the saved file, both in one fresh process."""
    with tempfile.TemporaryDirectory(prefix="loom_proof_") as folder:
        paths = [os.path.join(folder, n) for n in ("net.entity", "in.npz")]
        network.save(paths[0])
        np.savez(paths[1], **{f"i{k:04}": a for k, a in enumerate(inputs)})
        said = ask_fresh(_FRESH, *paths)
    for rung, found in json.loads(said).items():
        if found != engine:
            raise InternalError(
                f"the saved file computes other bits than the network it was made of (rung {rung})"
            )


def climb_fresh(path: str, arrays: str) -> None:
    """The work of the fresh process: prints the hashes of its two rungs as JSON."""
    held = np.load(arrays)
    proof = verify_proof(path)
    wheel = ask(Network.load(path), [held[n] for n in held.files])
    print(json.dumps({"file": proof.report["outputs_sha256"], "wheel": digest(wheel)}))

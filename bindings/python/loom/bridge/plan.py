"""A Plan: what a model of another framework computes, as nodes of ONNX with their origins.

Rules of a framework add nodes; what no rule covers becomes a Problem, and all of them are told at
once. Nothing is guessed from shapes: a rule reads every attribute that it depends on, or refuses.
"""

import hashlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..errors import UnsupportedError
from ._onnx import FLOAT, INT64, Dim, OnnxGraph

OPSET = 20


class Problem(NamedTuple):
    """What of the source has no rule, and why."""

    where: str  # the path of the module, "encoder.layers.0"
    what: str  # the class, operation or attribute
    why: str

    def __str__(self) -> str:
        return f"{self.where or '(the model)'}: {self.what}: {self.why}"


class Step(NamedTuple):
    """One node of the plan, and what of the source it came from."""

    op: str
    inputs: Tuple[str, ...]
    output: str
    origin: str


class Unabsorbable(UnsupportedError):
    """The model holds what no rule covers; `problems` lists all of it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        lines = "; ".join(str(p) for p in self.problems)
        super().__init__(f"cannot absorb this model: {lines}")


class Plan:
    """Nodes in the order of their execution. `str(plan)` is a table of them."""

    def __init__(self, framework: str, version: str, name: str) -> None:
        self.framework, self.version, self.name = framework, version, name
        self.steps: List[Step] = []
        self.problems: List[Problem] = []
        self.parameters = 0
        self.origin = ""  # of the nodes that are added now
        self._graph = OnnxGraph()
        self._constants: Dict[Tuple[Any, ...], str] = {}
        # Where the parameters lie in memory that the operator under way is made of.
        self.read: List[int] = []
        self._names = 0
        self.outputs: List[str] = []

    # ---- adding ----------------------------------------------------------------------------------

    def input(self, name: str, dims: Sequence[Dim], *, ids: bool = False) -> str:
        self._graph.input(name, dims, INT64 if ids else FLOAT)
        return name

    def constant(self, value: Any, *, parameter: bool = True) -> str:
        """float64 becomes float32, whole numbers int64. Equal tensors are one, but for those that
        are made of other parameters (`read`): layers that begin as copies learn apart."""
        array = np.asarray(value)
        if array.dtype.kind in "iu":
            array, parameter = array.astype(np.int64), False
        elif array.dtype.kind == "b":
            parameter = False
        else:
            array = array.astype(np.float32)
        array = np.ascontiguousarray(array).reshape(array.shape)
        digest = hashlib.sha256(array.tobytes()).digest()
        own = sorted(set(self.read)) if parameter else ()
        key = (str(array.dtype), array.shape, digest, *own)
        if key not in self._constants:
            name = self._name("c")
            self._graph.tensor(name, array)
            self._constants[key] = name
            self.parameters += array.size if parameter else 0
        return self._constants[key]

    def op(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Adds a node and names its first output. Attributes that are None are left out."""
        return self.ops(op, *inputs, outputs=outputs, **attributes)[0]

    def ops(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> List[str]:
        names = [self._name("v") for _ in range(outputs)]
        kept = {k: v for k, v in attributes.items() if v is not None}
        self._graph.node(op, inputs, names, kept)
        self.steps.append(Step(op, inputs, names[0], self.origin))
        return names

    def output(self, name: str, called: str) -> None:
        self._graph.node("Identity", [name], [called], {})
        self._graph.output(called)
        self.outputs.append(called)

    def refuse(self, what: str, why: str, where: Optional[str] = None) -> None:
        problem = Problem(self.origin if where is None else where, what, why)
        if problem not in self.problems:
            self.problems.append(problem)

    # ---- what users of bare ops need often -------------------------------------------------------

    def dense(self, x: str, weight: Any, bias: Any = None) -> str:
        """x W^T + b over the last axis; weight [out, in]."""
        y = self.op("MatMul", x, self.constant(np.asarray(weight).T))
        return y if bias is None else self.op("Add", y, self.constant(bias))

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    # ---- reading ---------------------------------------------------------------------------------

    def serialize(self) -> bytes:
        """The plan as an ONNX file. Raises Unabsorbable where there are problems."""
        if self.problems:
            raise Unabsorbable(self.problems)
        return self._graph.serialize(OPSET, [("loom.absorbed.from", self.source)])

    @property
    def source(self) -> str:
        return f"{self.framework} {self.version}: {self.name}"

    def __repr__(self) -> str:
        return (
            f"<loom.bridge.Plan of {self.source}, {len(self.steps)} nodes, "
            f"{self.parameters} parameters, {len(self.problems)} problems>"
        )

    def __str__(self) -> str:
        rows = [(s.origin or "-", s.op, ", ".join(s.inputs), s.output) for s in self.steps]
        widths = [max((len(r[i]) for r in rows), default=0) for i in range(3)]
        lines = [repr(self)]
        lines += ["  ".join((*(c.ljust(w) for c, w in zip(r, widths)), r[3])) for r in rows]
        return "\n".join(lines + [f"problem: {p}" for p in self.problems])

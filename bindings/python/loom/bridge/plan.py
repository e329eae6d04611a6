"""A Plan: what a model of another framework computes, as nodes of ONNX with their origins.

Rules of a framework add nodes. An operation without a rule becomes a Problem, and all of them are
reported at once. Nothing is guessed from shapes: a rule reads every attribute that it depends on,
or refuses.
"""

import hashlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ..errors import UnsupportedError
from ._onnx import FLOAT, INT64, Dim, OnnxGraph

OPSET = 20


class Problem(NamedTuple):
    """A part of the source that has no rule, and the reason."""

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
        self._taken: Set[str] = set()  # names of weights
        # The addresses of the parameters that the operator under way is made of.
        self.read: List[int] = []
        # Names of trainable parameters by their address, if the framework knows them. None means
        # that every constant is a parameter unless its rule says otherwise.
        self.trainable: Optional[Dict[int, str]] = None
        self.source_parameters: Optional[int] = None  # that the source would train, of what is used
        self._seen: List[Tuple[int, int, int, Any]] = []  # arrays of the source: memory, and place
        self._names = 0
        self.outputs: List[str] = []
        self.metadata: Dict[str, str] = {}  # of the file, besides what every plan says
        self.torch: Any = None  # of a plan of a PyTorch module: its torch.Source
        self.gradients: Any = None  # a Gradients of torch_gradients.py: what its proof found

    # ---- adding ----------------------------------------------------------------------------------

    def input(self, name: str, dims: Sequence[Dim], *, ids: bool = False) -> str:
        self._graph.input(name, dims, INT64 if ids else FLOAT)
        return name

    def forget(self) -> None:
        """The sources of the operator before."""
        self.read.clear()
        self._seen.clear()

    def see(self, array: Any, place: int) -> None:
        """Tells that an array holds the numbers of a parameter; also views of it do."""
        start = int(array.__array_interface__["data"][0])
        self._seen.append((start, start + max(array.nbytes, 1), place, array))

    def constant(self, value: Any, *, parameter: bool = True, places: Sequence[int] = ()) -> str:
        """float64 becomes float32, integers become int64. Equal tensors are one, but for those that
        are made of other parameters: layers that begin as copies learn apart.

        parameter: it trains, if the framework does not say otherwise. places: the addresses of the
        parameters that it is a copy of; views of their arrays are known without.
        """
        array = np.asarray(value)
        made_of = sorted(set(places) or self._places_of(array))
        kind = array.dtype.kind
        array = np.ascontiguousarray(
            array.astype(np.int64 if kind in "iu" else bool if kind == "b" else np.float32)
        ).reshape(array.shape)
        trains = parameter and kind not in "iub"
        if self.trainable is not None:
            trains = trains and bool(made_of) and all(p in self.trainable for p in made_of)
        own = tuple(made_of or sorted(set(self.read))) if trains else ()
        digest = hashlib.sha256(array.tobytes()).digest()
        key = (str(array.dtype), array.shape, digest, trains, *own)
        if key not in self._constants:
            self._constants[key] = self._store(array, trains, made_of)
        return self._constants[key]

    def _store(self, array: Any, trains: bool, made_of: Sequence[int]) -> str:
        """Weights are initializers, named as in the source; what does not train is a Constant."""
        if trains:
            name = self._weight_name(made_of)
            self.parameters += array.size
            self._graph.tensor(name, array)
            return name
        name = self._name("c")
        if array.dtype == np.float32:
            self._graph.constant(name, array)
        else:
            self._graph.tensor(name, array)
        return name

    def _weight_name(self, made_of: Sequence[int]) -> str:
        self._names += 1
        known = self.trainable or {}
        if len(made_of) != 1 or made_of[0] not in known:
            return f"weights.{self._names}"
        name = known[made_of[0]]
        if name in self._taken:
            name = f"{name}|{self._names}"
        self._taken.add(name)
        return name

    def _places_of(self, array: Any) -> List[int]:
        at = int(array.__array_interface__["data"][0])
        return [place for start, end, place, _ in self._seen if start <= at < end][:1]

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

    def dense(self, x: str, weight: Any, bias: Any = None, *, parameter: bool = True) -> str:
        """x W^T + b over the last axis; weight [out, in]. parameter: as constant() has it."""
        y = self.op("MatMul", x, self.constant(np.asarray(weight).T, parameter=parameter))
        return y if bias is None else self.op("Add", y, self.constant(bias, parameter=parameter))

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    # ---- reading ---------------------------------------------------------------------------------

    def serialize(self) -> bytes:
        """The plan as an ONNX file. Raises Unabsorbable where there are problems."""
        if self.problems:
            raise Unabsorbable(self.problems)
        said = [("loom.absorbed.from", self.source)]
        if self.trainable is not None:  # names do not tell then what trains
            said.append(("loom.initializers", "weights"))
        return self._graph.serialize(OPSET, [*said, *self.metadata.items()])

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

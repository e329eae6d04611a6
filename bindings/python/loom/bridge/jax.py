"""JAX: the jaxpr of a function, of a bound module of flax.linen, or of one of flax.nnx.

A jaxpr is what is executed: calls are inlined, scans unrolled, and what depends on no input is
computed here, by JAX itself. The first axis of each input stays open where the function allows it.
"""

from importlib import import_module
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from ..errors import UnsupportedError
from . import jax_ops, jax_shapes  # noqa: F401  they fill the table of rules
from .jax_graph import ELEMENTWISE, LAZY, RULES, JaxGraph, Value, extents
from .plan import Plan

# Steps of a scan that are unrolled; more are refused.
LONGEST_SCAN = 512
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def absorb_function(function: Any, inputs: List[Any]) -> Any:
    """The plan, the inputs as arrays, and what the function says of them (empty with problems)."""
    jax: Any = import_module("jax")
    called = _plain(function)
    arrays = [np.asarray(i) for i in inputs]
    with jax.default_matmul_precision("highest"):
        closed = _traced(called, arrays)
        plan = _plan_of(function, closed, arrays)
        if plan.problems:
            return plan, [], []
        said = jax.tree_util.tree_leaves(called(*inputs))
    wanted = [np.int32 if a.dtype.kind in "iu" else np.float32 for a in arrays]
    given = [np.ascontiguousarray(a, dtype=w) for a, w in zip(arrays, wanted)]
    return plan, given, [np.asarray(s, dtype=np.float32) for s in said]


def _plain(function: Any) -> Any:
    """A module of nnx as a function in evaluation mode: its variables count random numbers, which
    has to happen inside of the trace, on a copy."""
    if not any(c.__module__.startswith("flax.nnx") for c in type(function).__mro__):
        return lambda *x: function(*x)
    nnx: Any = import_module("flax.nnx")
    graph, state = nnx.split(function)

    def called(*x: Any) -> Any:
        module = nnx.merge(graph, state)
        module.eval()
        return module(*x)

    return called


def _traced(function: Any, arrays: List[Any]) -> Any:
    """With an open batch where the function allows it."""
    jax: Any = import_module("jax")
    exported: Any = import_module("jax.export")
    (batch,) = exported.symbolic_shape("batch")
    kinds = [np.int32 if a.dtype.kind in "iu" else np.float32 for a in arrays]
    shown = [
        jax.ShapeDtypeStruct((batch, *a.shape[1:]) if a.ndim else (), k)
        for a, k in zip(arrays, kinds)
    ]
    try:
        return jax.make_jaxpr(function)(*shown)
    except Exception:  # JAX raises errors of many kinds for a batch that it has to know
        fixed = [jax.ShapeDtypeStruct(a.shape, k) for a, k in zip(arrays, kinds)]
        try:
            return jax.make_jaxpr(function)(*fixed)
        except Exception as error:
            first = str(error).strip().splitlines()[:1] or [type(error).__name__]
            raise UnsupportedError(f"JAX cannot trace the model: {first[0]}") from error


def _plan_of(function: Any, closed: Any, arrays: List[Any]) -> Plan:
    jax: Any = import_module("jax")
    what = function if hasattr(function, "__name__") else type(function)
    plan = Plan("JAX", jax.__version__, what.__name__)
    graph = JaxGraph(plan)
    values = []
    for i, variable in enumerate(closed.jaxpr.invars):
        shape, whole = extents(variable.aval.shape), np.dtype(variable.aval.dtype).kind in "iu"
        dims = [d if isinstance(d, int) else "batch" for d in shape]
        name = plan.input(f"input{i}", dims, ids=whole)
        values.append(Value(shape, name=name, note=("ids",) if whole else None))
        if graph.first is None and shape and isinstance(shape[0], str):
            graph.first = values[-1]
    consts = [_constant(c) for c in closed.consts]
    outputs = _run(graph, closed.jaxpr, consts, values)
    if not plan.problems:
        for i, (value, variable) in enumerate(zip(outputs, closed.jaxpr.outvars)):
            plan.output(graph.name(graph.full(value, variable.aval.shape)), f"output{i}")
    return plan


def _constant(array: Any) -> Value:
    return Value(extents(array.shape), array=array)


def _run(graph: JaxGraph, jaxpr: Any, consts: List[Value], inputs: List[Value]) -> List[Any]:
    """The values of a jaxpr's outputs; None if a part of one has no rule, which is refused. Every
    part without a rule is reported."""
    values: Dict[Any, Any] = dict(zip(jaxpr.constvars, consts))
    values.update(zip(jaxpr.invars, inputs))

    def read(atom: Any) -> Value:
        if hasattr(atom, "val"):
            return _constant(np.asarray(atom.val))
        found = values.get(atom)
        if not isinstance(found, Value):
            raise LookupError  # what it is computed of was refused
        return found

    needed = _needed(jaxpr)
    for equation in jaxpr.eqns:
        if id(equation) not in needed:
            continue
        try:
            operands = [read(a) for a in equation.invars]
        except LookupError:
            continue
        try:
            made = _equation(graph, equation, operands)
        except NotImplementedError as error:
            graph.plan.refuse(equation.primitive.name, str(error), _origin(graph, equation))
            continue
        values.update((v, m) for v, m in zip(equation.outvars, made) if m is not None)
    return [read(a) if hasattr(a, "val") else values.get(a) for a in jaxpr.outvars]


def _needed(jaxpr: Any) -> "set[int]":
    """Equations that an output depends on."""
    wanted = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    found = set()
    for equation in reversed(jaxpr.eqns):
        if not any(v in wanted for v in equation.outvars):
            continue
        found.add(id(equation))
        wanted.update(v for v in equation.invars if not hasattr(v, "val"))
    return found


def _origin(graph: JaxGraph, equation: Any) -> str:
    """The path of the module, as scopes have it, or the line of the source."""
    stack = str(equation.source_info.name_stack)
    if graph.scope or stack:
        return "/".join(filter(None, (graph.scope, stack)))
    try:
        from jax._src import source_info_util  # type: ignore[import-not-found,unused-ignore]

        return str(source_info_util.summarize(equation.source_info))
    except (ImportError, AttributeError):
        return ""


def _equation(graph: JaxGraph, equation: Any, operands: List[Value]) -> List[Any]:
    kind, params = equation.primitive.name, equation.params
    graph.plan.origin = _origin(graph, equation)
    inner = next((params[k] for k in _CALLS if k in params), None)
    if kind == "scan":
        return _scan(graph, params, operands)
    if kind in ("while", "cond", "custom_root", "custom_linear_solve"):
        raise NotImplementedError("control flow that depends on values")
    if inner is not None:
        body = getattr(inner, "jaxpr", inner)
        consts = [_constant(c) for c in getattr(inner, "consts", [])]
        outer, stack = graph.scope, str(equation.source_info.name_stack)
        graph.scope = "/".join(filter(None, (outer, stack)))
        try:
            return _run(graph, body, consts, operands)
        finally:
            graph.scope = outer
    avals = [v.aval for v in equation.outvars]
    fixed = all(isinstance(d, int) for a in avals for d in getattr(a, "shape", ()))
    whole = all(v.shape == extents(a.aval.shape) for v, a in zip(operands, equation.invars))
    known = all(v.array is not None for v in operands)
    if fixed and whole and known:
        return _folded(equation, [v.array for v in operands])
    if kind in ELEMENTWISE and known:  # repeated over the open batch
        return _folded(equation, np.broadcast_arrays(*(np.asarray(v.array) for v in operands)))
    if kind not in RULES:
        raise NotImplementedError("no rule for this primitive")
    graph.out = avals[0]
    if kind not in ELEMENTWISE and kind not in LAZY:
        operands = [graph.full(v, a.aval.shape) for v, a in zip(operands, equation.invars)]
    made = RULES[kind](graph, *operands, **params)
    return list(made) if isinstance(made, list) else [made]


def _folded(equation: Any, arrays: Sequence[Any]) -> List[Value]:
    said = equation.primitive.bind(*arrays, **equation.params)
    return [_constant(s) for s in (said if equation.primitive.multiple_results else [said])]


def _scan(graph: JaxGraph, params: Any, operands: List[Value]) -> List[Value]:
    length, closed = int(params["length"]), params["jaxpr"]
    if length > LONGEST_SCAN:
        raise NotImplementedError(f"a scan of {length} steps; at most {LONGEST_SCAN} are unrolled")
    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    consts, carry, rows = operands[:first], operands[first:last], operands[last:]
    known = [_constant(c) for c in closed.consts]
    steps: List[Tuple[Value, ...]] = []
    for i in range(length):
        at = length - 1 - i if params["reverse"] else i
        given = [*consts, *carry, *(_row(graph, r, at) for r in rows)]
        said = _run(graph, closed.jaxpr, known, given)
        if graph.plan.problems:
            return []
        carry = said[: len(carry)]
        steps.append(tuple(said[len(carry) :]))
    if params["reverse"]:
        steps.reverse()
    avals = closed.jaxpr.outvars[len(carry) :]
    return [*carry, *(_stacked(graph, [s[k] for s in steps], a) for k, a in enumerate(avals))]


def _row(graph: JaxGraph, value: Value, at: int) -> Value:
    """Along the first axis."""
    if value.array is not None:
        return _constant(value.array[at if value.shape[0] != 1 else 0])
    index = graph.plan.constant(np.array(at, dtype=np.int64))
    note = value.note
    return Value(value.shape[1:], name=graph.op("Gather", value, index, axis=0), note=note)


def _stacked(graph: JaxGraph, values: List[Value], variable: Any) -> Value:
    shape = extents(variable.aval.shape)
    parts = [graph.op("Unsqueeze", graph.full(v, shape), graph.ints(0)) for v in values]
    whole = [len(values), *shape]
    return Value(whole, name=parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=0))

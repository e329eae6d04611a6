"""Code that the rules of JAX's primitives share: the table of them, values, and a plan on its way.

A value is an array that is known, or a name of the plan. A value that is only repeated along an
axis has extent 1 there (`shape`), since all element by element operations of ONNX broadcast; who
needs the repetition asks full().
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .plan import Plan

Rule = Callable[..., Any]
RULES: Dict[str, Rule] = {}
# Primitives that broadcast as those of ONNX do, and may be computed on repeated constants.
ELEMENTWISE = set(
    "exp log tanh logistic erf erfc sqrt rsqrt neg abs sign floor ceil sin cos not add sub mul div "
    "min max pow gt ge lt le eq ne and or xor square integer_pow log1p expm1 select_n".split()
)


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(made: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, made))
        return made

    return enter


# Others whose rules take operands that are repeated; all the rest are given them in full.
LAZY = set(
    "broadcast_in_dim dot_general split transpose clamp "
    "stop_gradient copy copy_p reduce_precision tile "
    "optimization_barrier convert_element_type".split()
)


class Value(NamedTuple):
    """One of array and name. note: what ids went through, which a gather then reads."""

    shape: List[Any]  # integers; an open extent is a text
    array: Any = None
    name: str = ""
    note: Optional[Tuple[Any, ...]] = None

    def noted(self) -> "Value":
        """The value that the note speaks of."""
        assert self.note is not None
        found: Value = self.note[1]
        return found


def extents(shape: Sequence[Any]) -> List[Any]:
    return [int(d) if isinstance(d, (int, np.integer)) else str(d) for d in shape]


class JaxGraph:
    """The plan of a function on its way; `out` is the aval of the equation whose rule runs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.first: Optional[Value] = None  # an input with the open batch first
        self.out: Any = None
        self.scope = ""  # of the call whose equations run

    def name(self, value: Value) -> str:
        if value.array is None and not value.name:
            raise NotImplementedError("ids that are computed with; they only look up rows")
        if value.array is None:
            return value.name
        return self.plan.constant(np.asarray(value.array))

    def known(self, value: Value, what: str) -> Any:
        if value.array is None:
            raise NotImplementedError(f"{what} that is computed")
        return np.asarray(value.array)

    def op(self, op: str, *inputs: Any, **attributes: Any) -> str:
        names = [self.name(i) if isinstance(i, Value) else i for i in inputs]
        return self.plan.op(op, *names, **attributes)

    def ints(self, *values: int) -> str:
        return self.plan.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        return self.plan.constant(np.float32(value), parameter=False)

    @property
    def shape(self) -> List[Any]:
        return extents(self.out.shape)

    def made(self, name: str, shape: Optional[List[Any]] = None) -> Value:
        return Value(self.shape if shape is None else shape, name=name)

    def elementwise(self, op: str, *operands: Value, **attributes: Any) -> Value:
        rank = len(self.shape)
        shape: List[Any] = [1] * rank
        for value in operands:
            for i, extent in enumerate(value.shape[::-1]):
                if extent != 1:
                    shape[rank - 1 - i] = extent
        return Value(shape, name=self.op(op, *operands, **attributes))

    def reshaped(self, name: str, target: Sequence[Any]) -> str:
        """One extent may be open."""
        if sum(isinstance(d, str) for d in target) > 1:
            raise NotImplementedError(f"more than one open axis: {list(target)}")
        return self.op(
            "Reshape", name, self.ints(*(-1 if isinstance(d, str) else d for d in target))
        )

    def full(self, value: Value, wanted: Optional[Sequence[Any]] = None) -> Value:
        """With every repetition carried out."""
        target = extents(value.shape if wanted is None else wanted)
        if value.shape == target:
            return value
        fixed = [1 if isinstance(d, str) else d for d in target]
        if value.array is not None:
            array = np.broadcast_to(np.asarray(value.array), fixed)
            value = Value(extents(array.shape), array=array)
        elif any(s == 1 != d for s, d in zip(value.shape, fixed)):
            name = self.op("Expand", value, self.ints(*fixed))
            shape = [d if s == 1 else s for s, d in zip(value.shape, fixed)]
            value = Value(shape, name=name)
        open_axes = [i for i, (s, t) in enumerate(zip(value.shape, target)) if s != t]
        if not open_axes:
            return value
        if open_axes != [0] or self.first is None:
            raise NotImplementedError("a repetition over the open batch that is not the first axis")
        if self.first.note == ("ids",):
            raise NotImplementedError("a repetition over the open batch where the input is ids")
        rows = self.op("Flatten", self.first, axis=1)
        zero = self.op("Mul", self.op("ReduceMin", rows, self.ints(1), keepdims=1), self.number(0))
        zero = self.op("Reshape", zero, self.ints(-1, *[1] * (len(target) - 1)))
        return Value(list(target), name=self.op("Add", zero, value))

    def transposed(self, value: Value, order: Sequence[int]) -> Value:
        order = [int(i) for i in order]
        if order == list(range(len(order))):
            return value
        shape = [value.shape[i] for i in order]
        if value.array is not None:
            return Value(shape, array=np.transpose(np.asarray(value.array), order))
        return Value(shape, name=self.op("Transpose", value, perm=order))

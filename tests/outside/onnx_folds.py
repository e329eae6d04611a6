"""Random ONNX graphs that compute constants from constants, for onnx_ops.py: the shape and mask
computations that exporters write."""
import numpy as np
from onnx import TensorProto, numpy_helper

from onnx_graph import FLOATS, INTEGERS, batch, kind_of, near_shape, regrouped, sample, type_of


def shown(g, c):
    """A graph whose result shows every value of a constant."""
    g.input([batch(g.r), 1])
    c = g.node("Reshape", [g.floats(c), g.const([1, -1], np.int64)])
    return g.node("MatMul", ["x", c])


def folded(make):
    return lambda g: shown(g, make(g))


def kinds(r, allowed):
    return r.pick(allowed) if r.chance(0.97) else r.pick(FLOATS + INTEGERS + (np.bool_,))


NUMBERS = FLOATS + INTEGERS
SIGNED = (np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64)


def fold_unary(op, allowed):
    def make(g):
        values = g.r.values(sample(g.r, 0, 3), kinds(g.r, allowed), 3)
        if op == "Sqrt":
            values = np.abs(values)
        return g.node(op, [g.const(values)])
    return folded(make)


def fold_binary(op, allowed):
    def make(g):
        r = g.r
        dims = sample(r, 0, 3)
        kind = kinds(r, allowed)
        a, b = r.values(dims, kind, 3), r.values(near_shape(r, dims), kind_of(r, kind), 3)
        if r.chance(0.2) and np.dtype(kind).kind in "iu":
            a = a * np.asarray(50, kind)
            b = b * np.asarray(11, b.dtype) if b.dtype != np.bool_ else b
        if op == "Div" and b.dtype.kind in "iu":
            b = np.where(b == 0, 1, b).astype(b.dtype)
        if op == "Pow":
            a, b = np.abs(a), np.asarray(r.pick([2, 1, 0.5, 3, 0])).astype(b.dtype)
        pair = [g.const(a), g.const(b)]
        if r.chance(0.3):
            pair.reverse()
        if op == "Div" and a.dtype.kind in "iu" and r.chance(1):
            pair = sorted(pair, key=lambda n: int(n[1:]))
        return g.node(op, pair)
    return folded(make)


@folded
def fold_cast(g):
    r = g.r
    values = r.values(sample(r, 0, 2), r.pick(NUMBERS + (np.bool_,)), 20)
    if values.dtype.kind == "f" and r.chance(0.2):
        values = values * np.asarray(100, values.dtype)
    to = r.pick(NUMBERS + (np.bool_,)) if r.chance(0.9) else None
    target = TensorProto.BFLOAT16 if to is None else type_of(to)
    if values.dtype.kind == "f" and to is not None and np.dtype(to).kind in "iu":
        low = 0 if np.dtype(to).kind == "u" else -100  # values outside are undefined
        values = np.clip(values, low, 100).astype(values.dtype)
    return g.node("Cast", [g.const(values)], to=target)


@folded
def fold_where(g):
    r = g.r
    dims = sample(r, 0, 3)
    kind = kinds(r, NUMBERS)
    return g.node("Where", [g.const(r.values(near_shape(r, dims), np.bool_)),
                            g.const(r.values(dims, kind)),
                            g.const(r.values(near_shape(r, dims), kind_of(r, kind)))])


@folded
def fold_gather(g):
    r = g.r
    dims = sample(r, 1, 3)
    axis = r.pick([None, 0, 1, -1, len(dims)])
    extent = dims[axis if axis is not None and axis < len(dims) else 0]
    at = np.asarray(r.g.integers(-extent, extent + r.pick([0, 0, 0, 1]),
                                 r.pick([[], [1], [2], [2, 2]])))
    return g.node("Gather", [g.const(r.values(dims, kinds(r, NUMBERS))),
                             g.const(at.astype(r.pick([np.int64, np.int32])))], axis=axis)


@folded
def fold_slice(g):
    r = g.r
    dims = r.wholes(1, 5, r.whole(1, 3))
    count = r.whole(1, len(dims))
    axes = r.order(len(dims))[:count]
    axes = [a - r.pick([0, 0, len(dims)]) for a in axes]
    if r.chance(0.05):
        axes[0] = r.whole(-4, 4)
    inputs = [g.const(r.values(dims)),
              g.const([r.pick([0, 0, 1, 2, -1, -2, 9, -9]) for _ in axes], np.int64),
              g.const([r.pick([9, 2**63 - 1, 2, 3, -1, -9]) for _ in axes], np.int64)]
    if r.chance(0.8):
        inputs.append(g.const(axes, np.int64))
        if r.chance(0.6):
            inputs.append(g.const([r.pick([1, 1, 2, 3, -1, 0]) for _ in axes], np.int64))
    return g.node("Slice", inputs)


@folded
def fold_concat(g):
    r = g.r
    dims = sample(r, 0 if r.chance(0.05) else 1, 3)
    kind = kinds(r, NUMBERS)
    axis = r.pick([0, 0, 0, -1, 1, None, -len(dims)])
    parts = []
    for _ in range(r.whole(1, 3)):
        mine = list(dims)
        if mine:
            at = (axis or 0) if -len(mine) <= (axis or 0) < len(mine) else 0
            mine[at] = r.whole(0 if r.chance(0.1) else 1, 3)
        parts.append(g.const(r.values(mine, kind_of(r, kind))))
    return g.node("Concat", parts, axis=axis)


@folded
def fold_expand(g):
    r = g.r
    dims = [d if r.chance(0.5) else 1 for d in sample(r, 0, 3)]
    to = [r.pick([d, 1, 3]) if d == 1 else r.pick([d, 1, d, 2]) for d in dims]
    to = [2] * r.pick([0, 0, 1]) + to
    return g.node("Expand", [g.const(r.values(dims, kinds(r, NUMBERS))), g.const(to, np.int64)])


@folded
def fold_filled(g):
    r = g.r
    value = None
    if r.chance(0.7):
        held = r.values(r.pick([[1], [1], [], [2]]), r.pick(NUMBERS))
        value = numpy_helper.from_array(np.asarray(held))
    return g.node("ConstantOfShape", [g.const(sample(r, 0, 3), np.int64)], value=value)


@folded
def fold_range(g):
    r = g.r
    kind = kinds(r, (np.float32, np.float64, np.int64, np.int32, np.int16))
    step = r.pick([1, 2, -1, 0.3, 0.1])
    parts = [r.whole(-3, 3), r.whole(-5, 8), step if np.dtype(kind).kind == "f" else round(step)]
    if parts[2] == 0:
        parts[2] = 1
    return g.node("Range", [g.const(np.asarray(p).astype(kind).reshape(r.pick([[], [], [], [1]])))
                            for p in parts])


@folded
def fold_trilu(g):
    r = g.r
    inputs = [g.const(r.values(sample(r, 1 if r.chance(0.1) else 2, 3), kinds(r, NUMBERS)))]
    if r.chance(0.5):
        inputs.append(g.const(np.asarray(r.whole(-2, 2), np.int64).reshape(r.pick([[], [1]]))))
    return g.node("Trilu", inputs, upper=r.pick([None, 0, 1]))


@folded
def fold_transpose(g):
    r = g.r
    dims = sample(r, 0, 3)
    perm = r.order(len(dims)) if r.chance(0.8) else r.wholes(-1, 2, len(dims))
    return g.node("Transpose", [g.const(r.values(dims, kinds(r, NUMBERS)))],
                  perm=r.pick([None, perm, perm]))


@folded
def fold_view(g):
    r = g.r
    dims = sample(r, 0, 3)
    c = g.const(r.values(dims, kinds(r, NUMBERS)))
    op = r.pick(["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Identity"])
    if op == "Reshape":
        return g.node(op, [c, g.const(regrouped(r, dims), np.int64)])
    if op == "Flatten":
        return g.node(op, [c], axis=r.pick([None, 0, 1, -1, 3]))
    if op in ("Squeeze", "Unsqueeze"):
        return g.node(op, [c, g.const([r.whole(-2, 2)], np.int64)])
    return g.node(op, [c])


@folded
def constant(g):
    r = g.r
    form = r.pick(["value", "value_float", "value_floats", "value_int", "value_ints",
                   "value_string"], p=[.3, .2, .2, .1, .18, .02])
    values = {"value": numpy_helper.from_array(r.values(sample(r, 0, 2), kinds(r, NUMBERS))),
              "value_float": 1.5, "value_floats": [0.5, -2.0, 1e-3], "value_int": 7,
              "value_ints": [3, -1], "value_string": "text"}
    given = {form: values[form]}
    if r.chance(0.05):
        given["value_float"] = 0.5
    return g.node("Constant", [], **given)


OPERATORS = {
    **{f"{op} of constants": fold_binary(op, NUMBERS) for op in
       "Add Sub Mul Div Pow Max Min Equal Greater GreaterOrEqual Less LessOrEqual".split()},
    **{f"{op} of constants": fold_binary(op, (np.bool_,)) for op in "And Or".split()},
    "Sqrt of constants": fold_unary("Sqrt", FLOATS), "Neg of constants": fold_unary("Neg", SIGNED),
    "Reciprocal of constants": fold_unary("Reciprocal", FLOATS),
    "Not of constants": fold_unary("Not", (np.bool_,)), "Cast of constants": fold_cast,
    "Where of constants": fold_where, "Gather of constants": fold_gather,
    "Slice of constants": fold_slice, "Concat of constants": fold_concat,
    "Expand of constants": fold_expand, "ConstantOfShape": fold_filled, "Range": fold_range,
    "Trilu": fold_trilu, "Transpose of constants": fold_transpose, "views of constants": fold_view,
    "Constant": constant,
}

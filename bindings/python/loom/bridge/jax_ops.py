"""Rules for JAX's functions of single numbers, products and convolutions."""

from typing import Any, List, Sequence

import numpy as np

from .jax_graph import JaxGraph, Value, rule

# ---- element by element --------------------------------------------------------------------------

_UNARY = {
    "exp": "Exp",
    "log": "Log",
    "tanh": "Tanh",
    "logistic": "Sigmoid",
    "erf": "Erf",
    "sqrt": "Sqrt",
    "neg": "Neg",
    "abs": "Abs",
    "sign": "Sign",
    "floor": "Floor",
    "ceil": "Ceil",
    "sin": "Sin",
    "cos": "Cos",
    "not": "Not",
}
for _jax_name, _onnx_name in _UNARY.items():

    @rule(_jax_name)
    def _(g: JaxGraph, x: Value, _name: str = _onnx_name, **params: Any) -> Value:
        return g.elementwise(_name, x)


_BINARY = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "min": "Min",
    "pow": "Pow",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "le": "LessOrEqual",
    "eq": "Equal",
    "and": "And",
    "or": "Or",
    "xor": "Xor",
    "add_any": "Add",
}
for _jax_name, _onnx_name in _BINARY.items():

    @rule(_jax_name)
    def _(g: JaxGraph, a: Value, b: Value, _name: str = _onnx_name, **params: Any) -> Value:
        if _name == "Add" and a.note == ("ids",) and b.array is not None:
            return Value(a.shape, note=("wrapped", a))  # what jnp.take() does to negative ids
        return g.elementwise(_name, a, b)


@rule("lt")
def _(g: JaxGraph, a: Value, b: Value, **params: Any) -> Value:
    negative = a.note == ("ids",) and b.array is not None and not np.any(np.asarray(b.array))
    if negative:
        return Value(a.shape, note=("negative", a))
    return g.elementwise("Less", a, b)


@rule("ne")
def _(g: JaxGraph, a: Value, b: Value, **params: Any) -> Value:
    return g.elementwise("Not", g.elementwise("Equal", a, b))


@rule("max")
def _(g: JaxGraph, a: Value, b: Value, **params: Any) -> Value:
    for value, other in ((a, b), (b, a)):
        if value.array is not None and np.all(np.isneginf(np.asarray(value.array))):
            return other
    return g.elementwise("Max", a, b)


@rule("square")
def _(g: JaxGraph, x: Value, **params: Any) -> Value:
    return g.elementwise("Mul", x, x)


@rule("integer_pow")
def _(g: JaxGraph, x: Value, y: int, **params: Any) -> Value:
    made = x
    for _i in range(abs(y) - 1):
        made = g.elementwise("Mul", made, x)
    return g.elementwise("Reciprocal", made) if y < 0 else made


@rule("rsqrt")
def _(g: JaxGraph, x: Value, **params: Any) -> Value:
    return g.elementwise("Reciprocal", g.elementwise("Sqrt", x))


@rule("erfc")
def _(g: JaxGraph, x: Value, **params: Any) -> Value:
    return g.elementwise("Sub", _one(), g.elementwise("Erf", x))


@rule("log1p")
def _(g: JaxGraph, x: Value, **params: Any) -> Value:
    return g.elementwise("Log", g.elementwise("Add", x, _one()))


@rule("expm1")
def _(g: JaxGraph, x: Value, **params: Any) -> Value:
    return g.elementwise("Sub", g.elementwise("Exp", x), _one())


def _one() -> Value:
    return Value([], array=np.float32(1))


@rule("clamp")
def _(g: JaxGraph, low: Value, x: Value, high: Value, **params: Any) -> Value:
    return g.elementwise("Min", g.elementwise("Max", x, low), high)


@rule("stop_gradient", "copy", "copy_p", "reduce_precision", "optimization_barrier")
def _(g: JaxGraph, x: Value, **params: Any) -> Value:
    return x


@rule("convert_element_type")
def _(g: JaxGraph, x: Value, new_dtype: Any = None, **params: Any) -> Value:
    kind = np.dtype(new_dtype).kind
    if x.array is not None:
        return Value(x.shape, array=np.asarray(x.array).astype(new_dtype))
    if kind in "iu" and x.note is None:
        raise NotImplementedError("a conversion to integers")
    if kind == "f" and x.note == ("ids",):
        return Value(x.shape, name=g.op("Cast", x, to=1))
    return x


@rule("select_n")
def _(g: JaxGraph, which: Value, *cases: Value, **params: Any) -> Value:
    if which.note is not None and which.note[0] == "negative":
        return which.noted()  # ids of a table: those below zero are not taken
    if len(cases) != 2:
        raise NotImplementedError("a choice among more than two")
    if which.array is not None and len({bool(w) for w in np.ravel(np.asarray(which.array))}) == 1:
        return g.full(cases[int(np.ravel(np.asarray(which.array))[0])], g.shape)
    return g.elementwise("Where", which, *(_finite(c) for c in (cases[1], cases[0])))


def _finite(value: Value) -> Value:
    """-inf under a mask becomes a number whose exponential is zero as well."""
    if value.array is None:
        return value
    array = np.asarray(value.array)
    return value._replace(array=np.clip(array, -1e30, 1e30)) if array.dtype.kind == "f" else value


# ---- products ------------------------------------------------------------------------------------


@rule("dot_general")
def _(g: JaxGraph, a: Value, b: Value, dimension_numbers: Any = None, **params: Any) -> Value:
    """As [batch, rows, sum] times [batch, sum, columns]; the result is in that order too."""
    (sum_a, sum_b), (batch_a, batch_b) = dimension_numbers
    shared_a, shared_b = [*sum_a, *batch_a], [*sum_b, *batch_b]
    a, b = _repeated(g, a, b, shared_a, shared_b), _repeated(g, b, a, shared_b, shared_a)
    rows = [i for i in range(len(a.shape)) if i not in (*sum_a, *batch_a)]
    columns = [i for i in range(len(b.shape)) if i not in (*sum_b, *batch_b)]
    left = g.transposed(a, [*batch_a, *rows, *sum_a])
    right = g.transposed(b, [*batch_b, *sum_b, *columns])
    n, k = len(batch_a), len(sum_a)
    out = [a.shape[i] for i in (*batch_a, *rows)] + [b.shape[i] for i in columns]
    if n == 0 and right.array is not None and k == 1 and len(columns) == 1:
        return Value(out, name=g.op("MatMul", left, right))
    left = _merged(g, left, n, len(rows), k)
    right = _merged(g, right, n, k, len(columns))
    return Value(out, name=g.reshaped(g.op("MatMul", left, right), out))


def _repeated(g: JaxGraph, mine: Value, theirs: Value, axes: List[int], others: List[int]) -> Value:
    """With repetitions carried out along the axes that both have; rows may stay one."""
    wanted = list(mine.shape)
    for i, j in zip(axes, others):
        wanted[i] = theirs.shape[j] if wanted[i] == 1 else wanted[i]
    return g.full(mine, wanted)


def _merged(g: JaxGraph, value: Value, batch: int, *groups: int) -> Value:
    """Each group of axes after the batch as one."""
    shape, at = list(value.shape[:batch]), batch
    for count in groups:
        part = value.shape[at : at + count]
        at += count
        if count == 1:
            shape += part
        elif any(isinstance(d, str) for d in part):
            shape.append("-".join(map(str, part)))
        else:
            shape.append(int(np.prod(part, dtype=np.int64)) if part else 1)
    if shape == value.shape:
        return value
    if value.array is not None:
        return Value(shape, array=np.asarray(value.array).reshape(shape))
    return Value(shape, name=g.reshaped(value.name, shape))


# ---- convolutions --------------------------------------------------------------------------------


@rule("conv_general_dilated")
def _(
    g: JaxGraph,
    x: Value,
    w: Value,
    window_strides: Sequence[int] = (),
    padding: Any = (),
    lhs_dilation: Sequence[int] = (),
    rhs_dilation: Sequence[int] = (),
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    **params: Any,
) -> Value:
    if batch_group_count != 1:
        raise NotImplementedError("groups of the batch")
    x = g.transposed(x, dimension_numbers.lhs_spec)
    kernel = np.transpose(g.known(w, "a kernel"), dimension_numbers.rhs_spec)
    back = np.argsort(dimension_numbers.out_spec).tolist()
    shape = [g.shape[i] for i in dimension_numbers.out_spec]
    low, high = [int(p[0]) for p in padding], [int(p[1]) for p in padding]
    if any(d != 1 for d in lhs_dilation):
        if any(s != 1 for s in window_strides) or feature_group_count != 1:
            raise NotImplementedError("a transposed convolution with strides or groups")
        name = _transposed(g, x, kernel, list(lhs_dilation), list(rhs_dilation), low, high)
    else:
        name = g.op(
            "Conv",
            x,
            g.plan.constant(kernel),
            kernel_shape=list(kernel.shape[2:]),
            strides=list(window_strides),
            pads=low + high,
            dilations=list(rhs_dilation),
            group=int(feature_group_count),
        )
    return g.transposed(Value(shape, name=name), back)


def _transposed(
    g: JaxGraph,
    x: Value,
    kernel: Any,
    strides: List[int],
    dilations: List[int],
    low: List[int],
    high: List[int],
) -> str:
    """Over an input with zeros between: the gradient of a convolution with the kernel flipped."""
    rank = kernel.ndim - 2
    reach = [d * (k - 1) for d, k in zip(dilations, kernel.shape[2:])]
    pads = [r - p for r, p in zip(reach * 2, low + high)]
    flipped = np.flip(kernel, axis=tuple(range(2, 2 + rank))).swapaxes(0, 1)
    name = g.op(
        "ConvTranspose",
        x,
        g.plan.constant(flipped),
        kernel_shape=list(kernel.shape[2:]),
        strides=strides,
        pads=[max(p, 0) for p in pads],
        dilations=dilations,
    )
    more = [max(-p, 0) for p in pads]
    if not any(more):
        return name
    return g.op("Pad", name, g.ints(0, 0, *more[:rank], 0, 0, *more[rank:]), g.number(0))

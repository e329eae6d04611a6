"""Operators of onnx_torch.py: elements, shapes, reductions and products."""
import math

import torch
import torch.nn.functional as F
from onnx_torch import FLOATS, Unsupported, operator

UNARY = {
    "Abs": torch.abs, "Ceil": torch.ceil, "Cos": torch.cos, "Erf": torch.erf, "Exp": torch.exp,
    "Floor": torch.floor, "Log": torch.log, "Neg": torch.neg, "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Round": torch.round,
    "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin, "Softsign": F.softsign,
    "Sqrt": torch.sqrt, "Tanh": torch.tanh, "Mish": F.mish, "HardSwish": F.hardswish,
    "IsNaN": torch.isnan, "Atan": torch.atan, "Softplus": lambda x: F.softplus(x, threshold=1e9),
    "Identity": lambda x: x, "Shape": lambda x: torch.tensor(x.shape, dtype=torch.int64),
    "Size": lambda x: torch.tensor(x.numel(), dtype=torch.int64),
}
BINARY = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Equal": torch.eq, "Greater": torch.gt,
    "Less": torch.lt, "GreaterOrEqual": torch.ge, "LessOrEqual": torch.le, "MatMul": torch.matmul,
    "And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor,
}
for name, function in UNARY.items():
    operator(name)(lambda c, x, f=function: f(x))
for name, function in BINARY.items():
    operator(name)(lambda c, a, b, f=function: f(a, b))


# ---- elements ------------------------------------------------------------------------------------


@operator("Div")
def divide(c, a, b):
    return a / b if a.dtype in FLOATS else torch.div(a, b, rounding_mode="trunc")


@operator("Mod")
def modulo(c, a, b):
    return torch.fmod(a, b) if c.get("fmod", 0) else torch.remainder(a, b)


@operator("Pow")
def power(c, a, b):
    return torch.pow(a, b.to(a.dtype))


@operator("Max", "Min", "Sum", "Mean")
def fold(c, *inputs):
    by = {"Max": torch.maximum, "Min": torch.minimum}.get(c.node.op_type, torch.add)
    out = inputs[0]
    for x in inputs[1:]:
        out = by(out, x)
    return out / len(inputs) if c.node.op_type == "Mean" else out


@operator("Where")
def where(c, condition, a, b):
    return torch.where(condition, a, b)


@operator("PRelu")
def prelu(c, x, slope):
    return torch.where(x < 0, x * slope, x)


@operator("LeakyRelu")
def leaky(c, x):
    return F.leaky_relu(x, c.get("alpha", 0.01))


@operator("Elu")
def elu(c, x):
    return F.elu(x, c.get("alpha", 1.0))


@operator("Selu")
def selu(c, x):
    alpha, gamma = c.get("alpha", 1.67326319217681884), c.get("gamma", 1.05070102214813232)
    return gamma * torch.where(x > 0, x, alpha * (torch.exp(x.clamp(max=0)) - 1))


@operator("HardSigmoid")
def hard_sigmoid(c, x):
    return (c.get("alpha", 0.2) * x + c.get("beta", 0.5)).clamp(0, 1)


@operator("Gelu")
def gelu(c, x):
    return F.gelu(x, approximate=c.get("approximate", "none"))


@operator("Clip")
def clip(c, x, low=None, high=None):
    low, high = (c.get("min"), c.get("max")) if c.opset < 11 else (low, high)
    if low is not None:
        x = torch.maximum(x, torch.as_tensor(low, dtype=x.dtype))
    return x if high is None else torch.minimum(x, torch.as_tensor(high, dtype=x.dtype))


@operator("Cast")
def cast(c, x):
    kinds = {2: torch.uint8, 3: torch.int8, 6: torch.int32, 7: torch.int64, 9: torch.bool}
    return x.to(kinds.get(c.get("to"), c.dtype))


@operator("CastLike")
def cast_like(c, x, like):
    return x.to(like.dtype)


@operator("Dropout")
def dropout(c, x, *rest):
    return x, torch.ones_like(x, dtype=torch.bool)


@operator("Softmax", "LogSoftmax")
def softmax(c, x):
    by = F.softmax if c.node.op_type == "Softmax" else F.log_softmax
    if c.opset >= 13:
        return by(x, c.get("axis", -1))
    axis = c.get("axis", 1) % max(x.dim(), 1)
    return by(x.reshape(math.prod(x.shape[:axis]), -1), 1).reshape(x.shape)


# ---- constants -----------------------------------------------------------------------------------


@operator("Constant")
def constant(c):
    for name, kind in (("value_float", c.dtype), ("value_floats", c.dtype),
                       ("value_int", torch.int64), ("value_ints", torch.int64)):
        if name in c.attributes:
            return torch.tensor(c.attributes[name], dtype=kind)
    return c.tensor(c.attributes["value"])


@operator("ConstantOfShape")
def constant_of_shape(c, shape):
    value = c.tensor(c.attributes["value"]) if "value" in c.attributes else \
        torch.zeros(1, dtype=c.dtype)
    return value.reshape(()).expand(shape.tolist()).clone()


@operator("Range")
def of_range(c, start, limit, delta):
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


@operator("EyeLike")
def eye_like(c, x):
    return torch.eye(*x.shape, dtype=x.dtype)


# ---- shapes --------------------------------------------------------------------------------------


def listed(c, given, name):
    """A list that newer opsets give as an input and older ones as an attribute."""
    return given.reshape(-1).tolist() if given is not None else c.get(name)


@operator("Reshape")
def reshape(c, x, shape=None):
    shape = listed(c, shape, "shape")
    if not c.get("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape)


@operator("Flatten")
def flatten(c, x):
    axis = c.get("axis", 1)
    axis += x.dim() if axis < 0 else 0
    return x.reshape(math.prod(x.shape[:axis]), -1)


@operator("Transpose")
def transpose(c, x):
    return x.permute(*c.get("perm", list(range(x.dim()))[::-1]))


@operator("Squeeze")
def squeeze(c, x, axes=None):
    axes = listed(c, axes, "axes")
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@operator("Unsqueeze")
def unsqueeze(c, x, axes=None):
    axes = listed(c, axes, "axes")
    rank = x.dim() + len(axes)
    for axis in sorted(a % rank for a in axes):
        x = x.unsqueeze(axis)
    return x


@operator("Concat")
def concat(c, *inputs):
    return torch.cat(inputs, c.get("axis"))


@operator("Split")
def split(c, x, sizes=None):
    axis, sizes = c.get("axis", 0), listed(c, sizes, "split")
    if sizes is None:
        sizes = -(-x.shape[axis] // c.get("num_outputs", c.outputs))
    return torch.split(x, sizes, axis)


@operator("Slice")
def cut(c, x, starts=None, ends=None, axes=None, steps=None):
    starts, ends = listed(c, starts, "starts"), listed(c, ends, "ends")
    axes = listed(c, axes, "axes") or list(range(len(starts)))
    steps = listed(c, steps, "steps") or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        end = None if step < 0 and end < -x.shape[axis] else end
        at = torch.arange(x.shape[axis])[slice(start, end)] if step > 0 else \
            torch.tensor(range(x.shape[axis])[slice(start, end, step)], dtype=torch.int64)
        x = x.index_select(axis, at[::step] if step > 0 else at)
    return x


@operator("Expand")
def expand(c, x, shape):
    return x * torch.ones(shape.tolist(), dtype=x.dtype) if x.dtype != torch.bool else \
        x.expand(torch.broadcast_shapes(x.shape, tuple(shape.tolist())))


@operator("Tile")
def tile(c, x, repeats):
    return x.repeat(*repeats.tolist())


@operator("Pad")
def pad(c, x, pads=None, value=None, axes=None):
    pads = listed(c, pads, "pads")
    axes = axes.tolist() if axes is not None else list(range(x.dim()))
    value = float(value) if value is not None else c.get("value", 0.0)
    for i, axis in enumerate(axes):
        before, after = pads[i], pads[i + len(axes)]
        if before < 0 or after < 0:
            x = x.narrow(axis, max(-before, 0), x.shape[axis] - max(-before, 0) - max(-after, 0))
            before, after = max(before, 0), max(after, 0)
        x = padded(x, axis, before, after, c.get("mode", "constant"), value)
    return x


def padded(x, axis, before, after, mode, value):
    size = x.shape[axis]
    if mode == "constant":
        edges = [list(x.shape), list(x.shape)]
        edges[0][axis], edges[1][axis] = before, after
        parts = [torch.full(e, value, dtype=x.dtype) for e in edges]
        return torch.cat([parts[0], x, parts[1]], axis)
    at = torch.arange(-before, size + after)
    if mode == "reflect":
        at = at.abs()
        at = torch.where(at >= size, 2 * (size - 1) - at, at)
    elif mode == "edge":
        at = at.clamp(0, size - 1)
    else:
        raise Unsupported(f"Pad of mode {mode}")
    return x.index_select(axis, at)


@operator("Gather")
def gather(c, x, indices):
    axis = c.get("axis", 0) % x.dim()
    flat = torch.where(indices < 0, indices + x.shape[axis], indices).reshape(-1).long()
    out = x.index_select(axis, flat)
    return out.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1:])


@operator("GatherElements")
def gather_elements(c, x, indices):
    axis = c.get("axis", 0)
    return torch.gather(x, axis, torch.where(indices < 0, indices + x.shape[axis], indices))


@operator("GatherND")
def gather_nd(c, x, indices):
    if c.get("batch_dims", 0):
        raise Unsupported("GatherND with batch_dims")
    return x[tuple(indices.unbind(-1))]


@operator("ScatterND")
def scatter_nd(c, x, indices, updates):
    return x.index_put(tuple(indices.unbind(-1)), updates)


@operator("OneHot")
def one_hot(c, indices, depth, values):
    if c.get("axis", -1) != -1:
        raise Unsupported("OneHot of another axis")
    hot = torch.arange(int(depth)) == indices.unsqueeze(-1) % int(depth)
    return torch.where(hot, values[1], values[0])


@operator("Trilu")
def trilu(c, x, k=None):
    return (torch.triu if c.get("upper", 1) else torch.tril)(x, 0 if k is None else int(k))


# ---- reductions ----------------------------------------------------------------------------------

REDUCTIONS = {
    "ReduceMean": lambda x, a, k: x.mean(a, keepdim=k), "ReduceMax": lambda x, a, k: x.amax(a, k),
    "ReduceSum": lambda x, a, k: x.sum(a, keepdim=k), "ReduceMin": lambda x, a, k: x.amin(a, k),
    "ReduceL2": lambda x, a, k: x.square().sum(a, keepdim=k).sqrt(),
    "ReduceL1": lambda x, a, k: x.abs().sum(a, keepdim=k),
    "ReduceSumSquare": lambda x, a, k: x.square().sum(a, keepdim=k),
    "ReduceLogSumExp": lambda x, a, k: x.logsumexp(a, keepdim=k),
}


@operator(*REDUCTIONS, "ReduceProd")
def reduce(c, x, axes=None):
    axes, keep = listed(c, axes, "axes"), bool(c.get("keepdims", 1))
    if not axes:
        if c.get("noop_with_empty_axes", 0):
            return x
        axes = list(range(x.dim()))
    if c.node.op_type == "ReduceProd":
        for axis in sorted((a % x.dim() for a in axes), reverse=True):
            x = x.prod(axis, keepdim=keep)
        return x
    return REDUCTIONS[c.node.op_type](x, axes, keep)


@operator("ArgMax", "ArgMin")
def arg(c, x):
    by = torch.argmax if c.node.op_type == "ArgMax" else torch.argmin
    return by(x, c.get("axis", 0), bool(c.get("keepdims", 1)))


@operator("TopK")
def top_k(c, x, k):
    return torch.topk(x, int(k), c.get("axis", -1), bool(c.get("largest", 1)))


@operator("CumSum")
def cumsum(c, x, axis):
    if c.get("exclusive", 0) or c.get("reverse", 0):
        raise Unsupported("CumSum, exclusive or reversed")
    return x.cumsum(int(axis))


# ---- products ------------------------------------------------------------------------------------


@operator("Gemm")
def gemm(c, a, b, bias=None):
    a, b = (a.T if c.get("transA", 0) else a), (b.T if c.get("transB", 0) else b)
    out = c.get("alpha", 1.0) * (a @ b)
    return out if bias is None else out + c.get("beta", 1.0) * bias


@operator("Einsum")
def einsum(c, *inputs):
    return torch.einsum(c.get("equation"), *inputs)


@operator("If")
def branch(c, condition):
    taken, other = "then_branch", "else_branch"
    if not bool(condition):
        taken, other = other, taken
    made = c.module.run(c.attributes[taken], dict(c.outer))
    if not c.module.all_branches:
        return made
    unused = c.module.run(c.attributes[other], dict(c.outer))
    return [m + 0 * sum(y.sum() for y in unused) if m.is_floating_point() else m for m in made]

"""Random ONNX graphs of several operators, for onnx_random.py: layers as exporters write them,
which Loom's importer recognizes. At times a part is wrong."""
import math

import numpy as np

from onnx_graph import BATCH, batch, regrouped, sample

ACTIVATIONS = "Relu Sigmoid Tanh LeakyRelu Elu Softplus HardSwish".split()


def odd(r, value, others):
    """Mostly `value`."""
    return r.pick(others) if r.chance(0.12) else value


def number(g, value):
    return g.const(np.float32(value).reshape(g.r.pick([[], [1]])))


def dense(g, x, width, out, bias=None):
    """x W, or x W + b, over rows of `width`."""
    r = g.r
    y = g.node("MatMul", [x, g.const(r.values([width, out], scale=width ** -0.5))])
    if bias is None:
        bias = r.chance(0.6)
    if not bias:
        return y
    b = g.const(r.values([out], scale=0.3))
    return g.node("Add", [y, b] if r.chance(0.7) else [b, y])


def active(g, x):
    op = g.r.pick(ACTIVATIONS + [None])
    return x if op is None else g.node(op, [x])


def linear(g):
    dims = [batch(g.r)] + sample(g.r, 1, 3)
    x = g.input(dims)
    y = active(g, dense(g, x, dims[-1], 4))
    return dense(g, y, 4, 3) if g.r.chance(0.5) else y


def flat_linear(g):
    r = g.r
    dims = [batch(r)] + sample(r, 2, 3)
    x = g.input(dims)
    count = int(np.prod(dims[1:]))
    flat = g.node("Flatten", [x]) if r.chance(0.5) else g.node(
        "Reshape", [x, g.const([odd(r, 0, [-1, dims[0]]), odd(r, -1, [count])], np.int64)])
    return active(g, dense(g, flat, count, 3))


def conv(g, x, channels, filters, axes, op="Conv"):
    r = g.r
    groups = odd(r, 1, [channels]) if channels == filters else 1
    kernel = r.wholes(1, 3, axes)
    lead = [filters, channels // groups] if op == "Conv" else [channels, filters // groups]
    inputs = [x, g.const(r.values(lead + kernel, scale=0.4))]
    if r.chance(0.5):
        inputs.append(g.const(r.values([filters])))
    return g.node(op, inputs, group=groups, pads=r.pick([None, [1] * 2 * axes]))


def batch_norm(g, x, channels):
    p = [g.r.values([channels]) for _ in range(4)]
    p[3] = np.abs(p[3]) + np.float32(0.2)
    return g.node("BatchNormalization", [x] + [g.const(v) for v in p])


def channel_scale(g, x, channels, axes):
    r = g.r
    for op in (r.pick(["Mul", "Div"]), r.pick(["Add", "Sub"])):
        shape = odd(r, [channels] + [1] * axes, [[1], [1] * axes, [channels]])
        c = r.values(shape)
        if op == "Div":
            c = np.sign(c) * (np.abs(c) + np.float32(0.3))
        pair = [x, g.const(c)]
        if r.chance(0.2) and op != "Div":
            pair.reverse()
        x = g.node(op, pair)
    return x


def convolution(g):
    """Conv, then an operator that is folded into its weights; or that first."""
    r = g.r
    axes, channels, filters = r.whole(1, 3), r.whole(1, 3), r.whole(1, 4)
    x = g.input([batch(r), channels] + r.wholes(3, 5, axes))
    op = r.pick(["Conv", "Conv", "ConvTranspose"])
    if r.chance(0.3):
        x = batch_norm(g, x, channels)
        return active(g, conv(g, x, channels, filters, axes, op))
    y = conv(g, x, channels, filters, axes, op)
    for _ in range(r.whole(1, 2)):
        y = batch_norm(g, y, filters) if r.chance(0.5) else channel_scale(g, y, filters, axes)
    return active(g, y)


def pooled(g):
    r = g.r
    axes, channels = r.whole(1, 3), r.whole(1, 4)
    x = g.input([batch(r), channels] + r.wholes(2, 5, axes))
    y = active(g, conv(g, x, channels, 4, axes)) if r.chance(0.6) else x
    width = 4 if y != x else channels
    if r.chance(0.5):
        y = g.node("GlobalAveragePool", [y])
    elif g.opset < 18:
        y = g.node("ReduceMean", [y], axes=list(range(2, axes + 2)))
    else:
        y = g.node("ReduceMean", [y, g.const(list(range(-axes, 0)), np.int64)])
    y = g.node("Flatten", [y]) if r.chance(0.6) else g.node(
        "Squeeze", [y, g.const(list(range(2, axes + 2)), np.int64)])
    return dense(g, y, width, 3)


def gelu(g):
    """x/2 (1 + erf(x / sqrt 2)), or with tanh, in one of the orders exporters use."""
    r = g.r
    x = g.input([batch(r)] + sample(r, 1, 2))
    if r.chance(0.5):
        x = dense(g, x, g.x.shape[-1], 4)
    if r.chance(0.5):
        inside = g.node("Erf", [g.node("Div", [x, number(g, odd(r, math.sqrt(2), [1.4, 1.0]))])])
    else:
        cube = g.node("Pow", [x, number(g, 3)]) if r.chance(0.5) else g.node(
            "Mul", [g.node("Mul", [x, x]), x])
        term = g.node("Mul", [cube, number(g, odd(r, 0.044715, [0.04, 0.045]))])
        inside = g.node("Tanh", [g.node("Mul", [g.node("Add", [x, term]),
                                                number(g, math.sqrt(2 / math.pi))])])
    gate = g.node("Add", [inside, number(g, odd(r, 1, [0.9, 0]))])
    if r.chance(0.5):
        return g.node("Mul", [g.node("Mul", [x, gate]), number(g, odd(r, 0.5, [1, 0.4]))])
    return g.node("Mul", [g.node("Mul", [x, number(g, 0.5)]), gate])


def mean(g, x):
    keep = odd(g.r, 1, [0])
    axis = odd(g.r, -1, [1])
    if g.opset < 18:
        return g.node("ReduceMean", [x], axes=[axis], keepdims=keep)
    return g.node("ReduceMean", [x, g.const([axis], np.int64)], keepdims=keep)


def norm(g):
    """A root mean square or layer norm, spelled out."""
    r = g.r
    dims = [batch(r)] + sample(r, 1, 2)
    x = g.input(dims)
    if r.chance(0.5):
        x = dense(g, x, dims[-1], 5)
        dims[-1] = 5
    if r.chance(0.5):
        x = g.node("Sub", [x, mean(g, x)])
    square = g.node("Pow", [x, number(g, 2)]) if r.chance(0.5) else g.node("Mul", [x, x])
    power = mean(g, square)
    eps = number(g, r.pick([1e-5, 1e-6, 1e-2, 0]))
    if r.chance(0.1):
        root = g.node("Add", [g.node("Sqrt", [power]), eps])  # eps outside of the root
    else:
        root = g.node("Sqrt", [g.node("Add", [power, eps])])
    if r.chance(0.5):
        y = g.node("Div", [x, root])
    else:
        y = g.node("Mul", [x, g.node("Reciprocal", [root])])
    if r.chance(0.7):
        y = g.node("Mul", [y, g.const(r.values(dims[-1:]))])
        if r.chance(0.6):
            y = g.node("Add", [y, g.const(r.values(dims[-1:]))])
    return dense(g, y, dims[-1], 3) if r.chance(0.3) else y


def mask_of(r, time):
    hidden = np.float32(odd(r, r.pick([-np.inf, -1e9, -3e38]), [-1.0, 0.5]))
    at = np.arange(time)
    apart = at[None] - at[:, None]
    form = r.pick(["causal", "window", "both", "ones", "random"], p=[.5, .15, .15, .1, .1])
    hides = {"causal": apart > 0, "window": np.abs(apart) >= 2, "both": (apart > 0) | (apart < -1),
             "ones": np.zeros([time, time], bool), "random": r.values([time, time], np.bool_)}[form]
    hides = hides & ~np.eye(time, dtype=bool)
    mask = np.where(hides, hidden, np.float32(0))
    return mask.reshape([1] * r.pick([0, 1, 2]) + [time, time])


def attention(g):
    r = g.r
    time, heads, size, width = r.whole(2, 4), r.whole(1, 3), r.whole(1, 3), r.whole(2, 4)
    shared_by = r.pick([1, 1, heads])
    b = batch(r)
    x = g.input([b, time, width])

    def heads_of(count, turn):
        y = dense(g, x, width, count * size)
        y = g.node("Reshape", [y, g.const([odd(r, 0, [-1, b]), time, count, size], np.int64)])
        if count < heads:  # one for all
            y = g.node("Transpose", [y], perm=[0, 2, 1, 3])
            y = g.node("Expand", [y, g.const([1, heads, 1, 1], np.int64)])
            return g.node("Transpose", [y], perm=[0, 1, 3, 2]) if turn else y
        return g.node("Transpose", [y], perm=odd(
            r, [0, 2, 3, 1] if turn else [0, 2, 1, 3], [[0, 2, 1, 3]]))
    few = heads // shared_by
    q, k, v = heads_of(heads, False), heads_of(few, True), heads_of(few, False)
    scale = number(g, odd(r, size ** -0.5, [1.0, 0.3]))
    if r.chance(0.3):
        q = g.node("Mul", [q, scale])
    s = g.node("MatMul", [q, k])
    if r.chance(0.7):
        s = g.node("Mul", [s, scale])
    if r.chance(0.6):
        s = g.node("Add", [s, g.const(mask_of(r, time))])
    p = g.node("Softmax", [s], axis=odd(r, -1, [3, 2, 1]))
    y = g.node("Transpose", [g.node("MatMul", [p, v])], perm=odd(r, [0, 2, 1, 3], [[0, 1, 2, 3]]))
    y = g.node("Reshape", [y, g.const([odd(r, 0, [-1]), time, heads * size], np.int64)])
    y = dense(g, y, heads * size, odd(r, width, [width + 1]))
    return g.node("Add", [x, y]) if r.chance(0.3) else y


def gated(g):
    r = g.r
    width, inner = r.whole(2, 4), r.whole(2, 5)
    x = g.input([batch(r)] + r.wholes(2, 3, r.whole(0, 1)) + [width])
    gate, up = dense(g, x, width, inner), dense(g, x, width, inner)
    form = r.pick(["silu", "Sigmoid", "Relu", "none"], p=[.5, .2, .2, .1])
    if form == "silu":
        gate = g.node("Mul", [gate, g.node("Sigmoid", [gate])])
    elif form != "none":
        gate = g.node(form, [gate])
    pair = [gate, up]
    if r.chance(0.3):
        pair.reverse()
    return dense(g, g.node(odd(r, "Mul", ["Div", "Add"]), pair), inner, odd(r, width, [width + 1]))


def residual(g):
    r = g.r
    width = r.whole(2, 4)
    x = g.input([batch(r)] + r.wholes(2, 3, r.whole(0, 1)) + [width])
    y = x
    for _ in range(r.whole(1, 3)):
        inner = y
        for _ in range(r.whole(1, 2)):
            inner = active(g, dense(g, inner, width, width))
        pair = [y, inner]
        if r.chance(0.3):
            pair.reverse()
        last, y = y, g.node(odd(r, "Add", ["Sub", "Mul"]), pair)
        if r.chance(0.1):
            y = g.node("Add", [y, last])
    return y


def joined(g):
    r = g.r
    width = r.whole(2, 4)
    x = g.input([batch(r), width])
    if r.chance(0.5):
        x = active(g, dense(g, x, width, width))
    parts = [active(g, dense(g, x, width, r.whole(1, 3), True)) for _ in range(r.whole(2, 3))]
    if r.chance(0.3):
        parts.append(x)
    return g.node("Concat", parts, axis=odd(r, 1, [-1, 0]))


def normalized_input(g):
    """(x - shift) / deviation in front."""
    r = g.r
    dims = [batch(r)] + sample(r, 1, 3)
    x = g.input(dims)
    for op in r.pick([["Sub", "Mul"], ["Sub", "Div"], ["Mul"], ["Add", "Mul"], ["Mul", "Sub"]]):
        shape = odd(r, dims[1:], [dims[-1:], [1], dims[1:2] + [1] * (len(dims) - 2)])
        x = g.node(op, [x, g.const(np.abs(r.values(shape)) + np.float32(0.2))])
    if len(dims) > 2 and r.chance(0.6):
        x = g.node("Flatten", [x])
        dims = [dims[0], int(np.prod(dims[1:]))]
    return active(g, dense(g, x, dims[-1], 3))


def of_the_batch(g):
    """Constants that are made of the shape of the input: some of them depend on the batch."""
    r = g.r
    dims = [BATCH, r.whole(2, 4)]
    x = g.input(dims)
    at = r.pick([0, 1, 1])
    extent = g.node("Gather", [g.node("Shape", [x]), g.const(np.int64(at))])
    n = g.floats(extent)
    for _ in range(r.whole(0, 2)):
        n = g.node(r.pick(["Sqrt", "Neg", "Reciprocal"]), [n])
    y = dense(g, x, dims[1], 3) if r.chance(0.5) else x
    if r.chance(0.3):
        rows = g.node("Shape", [x], start=0, end=1)
        shape = g.node("Concat", [rows, g.const([-1], np.int64)], axis=0)
        y = g.node("Reshape", [g.node("Unsqueeze", [y, g.const([1], np.int64)]), shape])
    return g.node(r.pick(["Mul", "Add", "Div"]), [y, n])


def function(g):
    """A random function of single values: mostly none of ours, and then refused."""
    r = g.r
    x = g.input([batch(r)] + sample(r, 1, 2))
    if r.chance(0.3):
        x = dense(g, x, g.x.shape[-1], 4)

    def tree(depth):
        if depth == 0 or r.chance(0.15):
            return x
        form = r.whole(0, 5)
        if form <= 1:
            return g.node(r.pick(ACTIVATIONS + ["Abs", "Neg", "Exp", "Erf"]), [tree(depth - 1)])
        if form == 5:
            test = g.node(r.pick(["Less", "Greater", "LessOrEqual"]),
                          [tree(depth - 1), number(g, r.pick([0, 1, -3, 1e3]))])
            pair = [tree(depth - 1), tree(depth - 1) if r.chance(0.5) else number(g, 0)]
            if r.chance(0.5):
                pair.reverse()
            return g.node("Where", [test] + pair)
        op = r.pick(["Add", "Mul", "Sub", "Div", "Max", "Min"])
        other = number(g, r.pick([0, 1, 0.5, -1, 2, 6, 1e-4, 1e4])) if r.chance(
            0.6) else tree(depth - 1)
        pair = [tree(depth - 1), other]
        if r.chance(0.3):
            pair.reverse()
        return g.node(op, pair)
    return tree(r.whole(1, 3))


def views(g):
    """Reshapes and transpositions in a row, which must come out even."""
    r = g.r
    dims = [batch(r)] + sample(r, 2, 3)
    y, shape = g.input(dims), dims
    if r.chance(0.4):
        y, shape = dense(g, y, dims[-1], 4), dims[:-1] + [4]
    for _ in range(r.whole(1, 3)):
        order = [0] + [1 + i for i in r.order(len(shape) - 1)]
        y = g.node("Transpose", [y], perm=order)
        if r.chance(0.5):
            between = [shape[0]] + regrouped(r, [shape[i] for i in order[1:]])
            y = g.node("Reshape", [y, g.const([0] + between[1:], np.int64)])
            y = g.node("Reshape", [y, g.const([0] + [shape[i] for i in order[1:]], np.int64)])
        if r.chance(0.8):
            y = g.node("Transpose", [y], perm=[int(i) for i in np.argsort(order)])
        else:
            shape = [shape[i] for i in order]
    return dense(g, y, shape[-1], 3) if r.chance(0.7) else y


IDIOMS = {"linear": linear, "flatten and linear": flat_linear, "convolution": convolution,
          "pool and linear": pooled, "GELU": gelu, "norm": norm, "attention": attention,
          "gate": gated, "residual": residual, "concat": joined,
          "normalized input": normalized_input, "of the batch": of_the_batch, "function": function,
          "views": views}

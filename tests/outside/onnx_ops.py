"""Random ONNX graphs around one operator each, for onnx_random.py. OPERATORS has a row for each
operator that Loom's importer knows; a row makes the graph and names its output. Attributes and
shapes are mostly right and at times odd. ONNX Runtime decides whether they are valid."""
import numpy as np
from onnx import TensorProto

import onnx_folds
import onnx_places
from onnx_graph import FLOATS, batch, kind_of, near_shape, regrouped, sample

def floats(g, least=1, most=3, odd=0.05):
    """The input as floats of any rank; at times of a rank or a type that is rarely seen."""
    r = g.r
    dims = [batch(r)] + sample(r, least, most)
    if r.chance(odd):
        dims = r.wholes(1, 3, r.pick([0, 1, 5, 6]))
    kind = r.pick(FLOATS) if r.chance(0.1) else np.float32
    return g.input(dims, kind), dims, kind


def product(g, x, dims, kind=np.float32):
    """x W, so that the next operator has a layer to join."""
    out = g.r.whole(1, 5)
    w = g.const(g.r.values([dims[-1] if dims else 1, out], kind, 0.5))
    return g.node("MatMul", [x, w]), dims[:-1] + [out]


# ---- functions of elements -----------------------------------------------------------------------


def unary(op, **attributes):
    def make(g):
        x, dims, kind = floats(g)
        if dims and g.r.chance(0.5):
            x, dims = product(g, x, dims, kind)
        given = {k: v(g.r) for k, v in attributes.items() if g.r.chance(0.7)}
        return g.node(op, [x], **given)
    return make


def alpha(r):
    return float(r.pick([0.01, 1.0, 0.5, 0.2, 1.702, -1.0]))


def binary(op, numbers=True):
    def make(g):
        r = g.r
        x, dims, kind = floats(g)
        if dims and r.chance(0.5):
            x, dims = product(g, x, dims, kind)
        if r.chance(0.2) and dims:
            other, _ = product(g, x, dims, kind) if r.chance(0.5) else (x, dims)
            return g.node(op, [x, other])
        other = kind_of(r, kind)
        if op == "Pow" and r.chance(0.3):
            other = r.pick([np.float32, np.int64, np.int32])
        values = r.values(near_shape(r, dims), other)
        if r.chance(0.4):
            values = np.asarray(r.pick([2, 1, 3, 0, 0.5, -1, 100])).astype(other).reshape(
                r.pick([[], [1]]))
        pair = [x, g.const(values)]
        if r.chance(0.3):
            pair.reverse()
        y = g.node(op, pair)
        if numbers or r.chance(0.2):
            return y
        return g.node("Where", [y, x, g.const(np.zeros([], kind))])
    return make


def variadic(op):
    def make(g):
        x, dims, kind = floats(g)
        more = [g.const(g.r.values(near_shape(g.r, dims), kind, 3))
                for _ in range(g.r.pick([0, 1, 1, 1, 2]))]
        return g.node(op, [x] + more)
    return make


def where(g):
    r = g.r
    x, dims, kind = floats(g)
    test = g.node(r.pick(["Greater", "Less", "GreaterOrEqual", "LessOrEqual"]),
                  [x, g.const(np.asarray(r.pick([0, 1, -2.5]), kind))])
    if r.chance(0.15):
        test = g.const(r.values(near_shape(r, dims), np.bool_))
    other = g.const(r.values(r.pick([[], [1], near_shape(r, dims)]), kind))
    if r.chance(0.6):
        other = g.node(r.pick(["Mul", "Add"]), [x, g.const(np.asarray(r.pick([0.01, 0, 1]), kind))])
    branches = [x, other]
    if r.chance(0.3):
        branches.reverse()
    return g.node("Where", [test] + branches)


# ---- shapes --------------------------------------------------------------------------------------


def around(make):
    """A view between products, so that its meaning is known."""
    def made(g):
        x, dims, kind = floats(g, 1, 4)
        if dims and g.r.chance(0.4):
            x, dims = product(g, x, dims, kind)
        y, out = make(g, x, dims)
        if out and g.r.chance(0.4):
            y, _ = product(g, y, out, kind)
        return y
    return made


@around
def reshape(g, x, dims):
    r = g.r
    out = regrouped(r, dims)
    shape = list(out)
    if shape and r.chance(0.6):
        shape[r.whole(0, len(shape) - 1)] = r.pick([-1, -1, 0])
    if r.chance(0.05):
        shape.append(r.whole(-2, 3))
    allow = r.whole(0, 1) if r.chance(0.1) else None
    return g.node("Reshape", [x, g.const(shape, np.int64)], allowzero=allow), out


@around
def flatten(g, x, dims):
    axis = g.r.pick([None, 1, 1, 0, 2, -1, len(dims), 9])
    at = 1 if axis is None else axis + (len(dims) if axis < 0 else 0)
    before = int(np.prod(dims[:at]))
    return g.node("Flatten", [x], axis=axis), [before, int(np.prod(dims)) // max(before, 1)]


@around
def squeeze(g, x, dims):
    r = g.r
    dims = list(dims)
    at = r.whole(0, len(dims))
    dims.insert(at, 1)
    x = g.node("Unsqueeze", [x, g.const([at], np.int64)])
    if r.chance(0.2):
        return g.node("Squeeze", [x]), [d for d in dims if d != 1]
    axis = r.pick([at, at, at - len(dims), r.whole(-6, 5)])
    if axis in (at, at - len(dims)):
        del dims[at]
    return g.node("Squeeze", [x, g.const(axis, np.int64).strip() if r.chance(0.1)
                              else g.const([axis], np.int64)]), dims


@around
def unsqueeze(g, x, dims):
    r = g.r
    axes = [r.whole(0, len(dims))] if r.chance(0.7) else [r.whole(-5, 5) for _ in range(2)]
    out = list(dims)
    if len(axes) == 1:
        out.insert(axes[0], 1)
        axes = [axes[0] - r.pick([0, len(dims) + 1])]
    inputs = [x] if r.chance(0.05) else [x, g.const(axes, np.int64)]
    return g.node("Unsqueeze", inputs), out


@around
def transpose(g, x, dims):
    r = g.r
    order = r.order(len(dims))
    if r.chance(0.3) and len(dims) > 1:
        order = [0] + [i for i in order if i]
    if r.chance(0.1):
        order = r.wholes(-1, 3, len(dims))
    given = None if r.chance(0.15) else order
    out = [dims[i] for i in order] if sorted(order) == list(range(len(dims))) else list(dims)
    y = g.node("Transpose", [x], perm=given)
    if given is not None and r.chance(0.4) and sorted(order) == list(range(len(dims))):
        y, out = g.node("Transpose", [y], perm=[int(i) for i in np.argsort(order)]), list(dims)
    return y, out


@around
def expand(g, x, dims):
    r = g.r
    out = [d * r.pick([1, 1, 1, 2]) if d == 1 or r.chance(0.1) else d for d in dims]
    out = [1] * r.pick([0, 0, 1]) + out
    shape = [1 if r.chance(0.3) else d for d in out]
    return g.node("Expand", [x, g.const(shape, np.int64)]), out


@around
def same(g, x, dims):
    r = g.r
    if r.chance(0.4):
        return g.node("Identity", [x]), dims
    inputs = [x]
    if r.chance(0.5):
        inputs.append(g.const(np.asarray(r.pick([0.5, 0.0, 1.0]), np.float32)))
        if r.chance(0.5):
            inputs.append(g.const(np.asarray(r.chance(0.3))))
    if r.chance(0.2):
        return g.node("Dropout", inputs, outputs=2)[0], dims
    return g.node("Dropout", inputs, seed=r.pick([None, 1])), dims


@around
def cast(g, x, dims):
    r = g.r
    to = r.pick([TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16,
                 TensorProto.INT64, TensorProto.BOOL])
    y = g.node("Cast", [x], to=to, saturate=r.pick([None, None, None, 0, 1]))
    if r.chance(0.7):
        y = g.floats(y)
    return y, dims


def shape(g):
    r = g.r
    x, dims, _ = floats(g)
    s = g.node("Shape", [x], start=r.pick([None, 1, 0, -1, 5]), end=r.pick([None, None, -1, 2]))
    if r.chance(0.5):  # as numbers
        return g.node("Mul", [g.floats(x), g.node("ReduceMean" if r.chance(0.1) else "Sqrt",
                                                  [g.floats(s)])])
    joined = g.node("Concat", [g.node("Shape", [x], start=0, end=1), g.const([-1], np.int64)],
                    axis=0)
    return product(g, g.node("Reshape", [x, joined]), [dims[0] if dims else 1,
                                                       int(np.prod(dims[1:]))])[0]


# ---- layers --------------------------------------------------------------------------------------


def gemm(g):
    r = g.r
    n, k, m = r.wholes(1, 5, 3)
    if r.chance(0.3):
        m = n
    kind = r.pick(FLOATS) if r.chance(0.1) else np.float32
    trans_a, trans_b = r.pick([None, None, 0, 1]), r.pick([None, 0, 1])
    x = g.input([k, n] if trans_a == 1 else [n, k], kind)
    w = g.const(r.values([m, k] if trans_b == 1 else [k, m], kind_of(r, kind)))
    inputs = [x, w]
    if r.chance(0.8):
        c = r.pick([[m], [1, m], [m, 1], [n, 1], [n, m], [1], [], [1, 1], [n], [1, 1, m], [m, m]],
                   p=[.3, .15, .08, .12, .1, .06, .05, .05, .03, .03, .03])
        inputs.append(g.const(r.values(c, kind)))
    return g.node("Gemm", inputs, alpha=r.pick([None, 0.5, 2.0]), beta=r.pick([None, 0.0, 1.5]),
                  transA=trans_a, transB=trans_b)


def matmul(g):
    r = g.r
    x, dims, kind = floats(g, 1, 4)
    if r.chance(0.2) and dims:
        x, dims = g.node("Transpose", [x]), dims[::-1]
    k = dims[-1] if dims else 1
    w = r.pick([[k, 4], [k, 1], [k], [1, k, 3], [4, k], [2, k, 2]], p=[.6, .1, .1, .1, .05, .05])
    pair = [x, g.const(r.values(w, kind_of(r, kind)))]
    if r.chance(0.05):
        pair.reverse()
    return g.node("MatMul", pair)


def window(g, axes, extra=False):
    """kernel, and the attributes of convolutions and pools."""
    r = g.r

    def each(choices, p, odd=0.03):
        if r.chance(0.35):
            return None
        one = r.pick(choices, p)
        values = [one] * axes if r.chance(0.6) else [r.pick(choices, p) for _ in range(axes)]
        return values + ([1] if r.chance(odd) else [])
    kernel = r.wholes(1, 3, axes)
    pads = each([0, 1, 2, 3], [.45, .35, .15, .05])
    if pads is not None:
        pads = pads[:axes] * 2 if r.chance(0.8) else pads[:axes] + r.wholes(0, 2, axes)
    attributes = {"strides": each([1, 2, 3, 0], [.6, .25, .1, .05]),
                  "dilations": each([1, 2, 3, 0], [.65, .2, .1, .05]), "pads": pads,
                  "auto_pad": r.pick([None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "ODD"],
                                     p=[.7, .12, .08, .04, .04, .02])}
    if r.chance(0.8) and attributes["auto_pad"] in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        attributes["pads"] = None
    if extra:
        attributes["output_padding"] = each([0, 1, 2], [.5, .35, .15])
        if r.chance(0.04):
            attributes["output_shape"] = r.wholes(3, 9, axes)
    return kernel, attributes


def conv(op):
    def make(g):
        r = g.r
        axes = r.pick([1, 2, 2, 3])
        groups = r.pick([1, 1, 2, 3])
        per, filters = r.whole(1, 2), groups * r.whole(1, 2)
        kind = r.pick(FLOATS) if r.chance(0.08) else np.float32
        x = g.input([batch(r), groups * per] + r.wholes(2, 6, axes), kind)
        kernel, attributes = window(g, axes, op == "ConvTranspose")
        lead = [filters, per] if op == "Conv" else [groups * per, filters // groups]
        inputs = [x, g.const(r.values(lead + kernel, kind_of(r, kind), 0.5))]
        if r.chance(0.6):
            inputs.append(g.const(r.values(
                r.pick([[filters], [filters, 1], [1]], p=[.94, .03, .03]), kind)))
        return g.node(op, inputs, group=None if groups == 1 else groups,
                      kernel_shape=r.pick([None, kernel, kernel[::-1]], p=[.5, .47, .03]),
                      **attributes)
    return make


def average_pool(g):
    r = g.r
    axes = r.pick([1, 2, 2, 3])
    kind = r.pick(FLOATS) if r.chance(0.08) else np.float32
    x = g.input([batch(r), r.whole(1, 3)] + r.wholes(2, 7, axes), kind)
    kernel, attributes = window(g, axes)
    if r.chance(0.5):
        attributes["dilations"] = None
    return g.node("AveragePool", [x], kernel_shape=kernel if r.chance(0.97) else None,
                  count_include_pad=r.pick([None, 0, 1, 1]), ceil_mode=r.pick([None, None, 0, 1]),
                  **attributes)


def global_pool(g):
    x, _, _ = floats(g, 1, 4)
    return g.node("GlobalAveragePool", [x])


def batch_norm(g):
    r = g.r
    x, dims, kind = floats(g, 1, 4)
    if r.chance(0.5) and len(dims) == 2:
        x, dims = product(g, x, dims, kind)
    c = dims[1] if len(dims) > 1 else 1
    p = [r.values([c], kind) for _ in range(4)]
    p[3] = np.abs(p[3]) + np.asarray(0.1, kind)
    return g.node("BatchNormalization", [x] + [g.const(v) for v in p],
                  outputs=r.pick([1, 1, 1, 1, 1, 1, 1, 1, 1, 3]),
                  epsilon=r.pick([None, 1e-3, 0.1]), momentum=r.pick([None, 0.5]),
                  training_mode=r.pick([None, None, 0, 0, 1]))


def norm(op, bias):
    def make(g):
        r = g.r
        x, dims, kind = floats(g)
        if dims and r.chance(0.4):
            x, dims = product(g, x, dims, kind)
        axis = r.pick([None, -1, -1, len(dims) - 1, len(dims) - 1, 1, 0, -2])
        inside = dims[-1:] if axis is None else dims[axis:]
        if r.chance(0.08):
            inside = r.pick([dims, [1], [1] + inside, inside + [1]])
        inputs = [x, g.const(r.values(inside, kind_of(r, kind)))]
        if bias and r.chance(0.6):
            inputs.append(g.const(r.values(inside, kind)))
        stash = r.pick([None, None, None, 1, 0])
        outputs = r.pick([1, 1, 1, 1, 1, 1, 1, 1, 2])
        y = g.node(op, inputs, outputs=outputs, axis=axis, epsilon=r.pick([None, 1e-3, 0.0, 0.5]),
                   stash_type=stash)
        return y if outputs == 1 else y[0]
    return make


def softmax(g):
    r = g.r
    x, dims, kind = floats(g)
    if dims and r.chance(0.4):
        x, dims = product(g, x, dims, kind)
    if r.chance(0.3):
        x = g.node(r.pick(["Mul", "Div"]), [x, g.const(np.asarray(r.pick([0.5, 3, -1, 0]), kind))])
    return g.node("Softmax", [x], axis=r.pick([None, -1, -1, len(dims) - 1, 1, 0, -2, 7]))


def embedding(g):
    r = g.r
    vocab = r.whole(2, 9)
    dims = [batch(r)] + r.wholes(1, 5, r.pick([1, 1, 1, 2, 0]))
    ids = g.input(dims, r.pick([np.int64, np.int64, np.int32]), ids=vocab)
    if r.chance(0.15):
        ids = g.node("Cast", [ids], to=r.pick([TensorProto.INT64, TensorProto.INT32,
                                               TensorProto.FLOAT]))
    table = r.values(r.pick([[vocab, 4], [vocab, 1], [vocab], [vocab, 2, 3]], p=[.8, .1, .05, .05]))
    return g.node("Gather", [g.const(table), ids], axis=r.pick([None, 0, 0, 1, -2]))


def recurrent(op):
    """Mostly as exporters write it: the time axis first, the directions squeezed away."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]

    def make(g):
        r = g.r
        b, time, width, hidden = batch(r), *r.wholes(1, 4, 3)
        kind = np.float32 if r.chance(0.97) else np.float64
        x = g.input([b, time, width], kind)
        layout = r.pick([None, None, None, 0, 1])
        if not layout and r.chance(0.95):
            x = g.node("Transpose", [x], perm=[1, 0, 2])
        direction = r.pick([None, "forward", "reverse", "bidirectional"], p=[.6, .3, .05, .05])
        ways = 2 if direction == "bidirectional" else 1
        inputs = [x, g.const(r.values([ways, gates * hidden, width], kind, 0.5)),
                  g.const(r.values([ways, gates * hidden, hidden], kind, 0.5))]
        optional = [r.values([ways, 2 * gates * hidden], kind, 0.5),
                    np.full([b], time, np.int32),
                    np.zeros([ways, b, hidden] if not layout else [b, ways, hidden], kind)]
        if r.chance(0.1):
            optional[2] = r.values(optional[2].shape, kind)
        if op == "LSTM":
            optional += [np.zeros_like(optional[2]), r.values([ways, 3 * hidden], kind)]
        keep = [r.chance(p) for p in (0.7, 0.06, 0.25, 0.25, 0.04)[:len(optional)]]
        while keep and not keep[-1]:
            keep.pop()
        inputs += [g.const(v) if k else "" for k, v in zip(keep, optional)]
        attributes = {"linear_before_reset": r.pick([None, 0, 1, 1, 1])} if op == "GRU" else {}
        if op == "LSTM" and r.chance(0.05):
            attributes["input_forget"] = r.whole(0, 1)
        if r.chance(0.3 if op == "RNN" else 0.05):
            names = ["Tanh", "Relu", "Sigmoid", "Softplus", "LeakyRelu", "Elu", "Affine", "Odd",
                     "tanh"]
            attributes["activations"] = [r.pick(names) for _ in range(
                ways * {"RNN": 1, "GRU": 2, "LSTM": 3}[op])]
            if r.chance(0.3):
                attributes["activation_alpha"] = [float(r.pick([0.01, 1.0, 0.3]))]
                attributes["activation_beta"] = [float(r.pick([0.0, 0.5]))]
        if r.chance(0.03):
            attributes["clip"] = 0.5
        wanted = r.pick([[1], [None, 1], [1, 1]] + ([[1, 1, 1]] if op == "LSTM" else []))
        y = g.node(op, inputs, outputs=wanted if len(wanted) > 1 else 1,
                   hidden_size=hidden if r.chance(0.95) else None, direction=direction,
                   layout=layout, **attributes)
        first = wanted[0] is not None
        y = y if isinstance(y, str) else (y[0] if first else y[1])
        if r.chance(0.06):
            return y
        if not first:  # [ways, batch, hidden]
            return g.node("Squeeze", [y, g.const([1 if layout else 0], np.int64)])
        if layout:
            return g.node("Squeeze", [y, g.const([2], np.int64)])
        y = g.node("Squeeze", [y, g.const([1], np.int64)])
        if r.chance(0.9):
            y = g.node("Transpose", [y], perm=[1, 0, 2])
        if r.chance(0.25):  # one step
            y = g.node("Gather", [y, g.const(np.asarray(r.pick([-1, time - 1, 0]), np.int64))],
                       axis=1)
        elif r.chance(0.25):
            at = r.pick([-1, time - 1, -1, 0])
            y = g.node("Slice", [y, g.const([at], np.int64),
                                 g.const([r.pick([2**63 - 1, time, at + 1])], np.int64),
                                 g.const([r.pick([1, -2])], np.int64)])
        return y
    return make


def slice_(g):
    r = g.r
    x, dims, _ = floats(g)
    rank = len(dims)
    axes = [r.whole(-rank, rank - 1) if rank else 0 for _ in range(r.pick([1, 1, 1, 2]))]
    starts = [r.pick([0, 0, 1, -1, -9]) for _ in axes]
    ends = [r.pick([9, 2**63 - 1, 2**31 - 1, 2, -1]) for _ in axes]
    kind = r.pick([np.int64, np.int64, np.int32])
    ends = [min(end, np.iinfo(kind).max) for end in ends]
    inputs = [x, g.const(starts, kind), g.const(ends, kind)]
    if r.chance(0.9):
        inputs.append(g.const(axes, kind))
        if r.chance(0.3):
            inputs.append(g.const([r.pick([1, 1, 2, -1]) for _ in axes], kind))
    return g.node("Slice", inputs)


def concat(g):
    r = g.r
    x, dims, kind = floats(g, 1, 2)
    parts = [x if r.chance(0.2) else product(g, x, dims, kind)[0] for _ in range(r.whole(1, 3))]
    if r.chance(0.05):
        parts.append(g.const(r.values(dims, kind)))
    return g.node("Concat", parts, axis=r.pick([1, 1, -1, -1, 0, len(dims) - 1, None]))


def reduce_mean(g):
    r = g.r
    x, dims, kind = floats(g, 1, 4)
    rank = len(dims)
    axes = r.pick([[-1], [rank - 1], list(range(2, rank)), [1], None, [0], []],
                  p=[.25, .15, .35, .1, .05, .05, .05])
    keep = r.pick([None, 1, 1, 0])
    if g.opset < 18:
        y = g.node("ReduceMean", [x], axes=axes, keepdims=keep)
    else:
        inputs = [x] if axes is None else [x, g.const(axes, np.int64)]
        y = g.node("ReduceMean", inputs, keepdims=keep,
                   noop_with_empty_axes=r.pick([None, None, None, 0, 1]))
    if r.chance(0.3) and axes in ([-1], [rank - 1]) and keep != 0:
        return g.node("Sub", [x, y])
    return g.node("Flatten", [y]) if r.chance(0.3) else y


# ---- all of them ---------------------------------------------------------------------------------

OPERATORS = {
    **{op: unary(op) for op in ("Relu Sigmoid Tanh Erf Exp Log Sqrt Reciprocal Neg Abs Softplus "
                                "Mish HardSwish").split()},
    "LeakyRelu": unary("LeakyRelu", alpha=alpha), "Elu": unary("Elu", alpha=alpha),
    "Gelu": unary("Gelu", approximate=lambda r: r.pick(["none", "tanh", "odd"], p=[.5, .45, .05])),
    **{op: binary(op) for op in "Add Sub Mul Div Pow".split()},
    **{op: variadic(op) for op in "Max Min".split()},
    **{op: binary(op, False) for op in "Greater GreaterOrEqual Less LessOrEqual".split()},
    "Where": where, "Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze,
    "Unsqueeze": unsqueeze, "Transpose": transpose, "Expand": expand, "Identity, Dropout": same,
    "Cast": cast, "Shape": shape, "Gemm": gemm, "MatMul": matmul, "Conv": conv("Conv"),
    "ConvTranspose": conv("ConvTranspose"), "AveragePool": average_pool,
    "GlobalAveragePool": global_pool, "BatchNormalization": batch_norm,
    "LayerNormalization": norm("LayerNormalization", True),
    "RMSNormalization": norm("RMSNormalization", False),
    "SimplifiedLayerNormalization": norm("SimplifiedLayerNormalization", False),
    "Softmax": softmax, "Gather": embedding, "Slice": slice_, "LSTM": recurrent("LSTM"),
    "GRU": recurrent("GRU"), "RNN": recurrent("RNN"), "Concat": concat, "ReduceMean": reduce_mean,
    **onnx_folds.OPERATORS, **onnx_places.OPERATORS,
}
# Operators that came with an opset; before it their graphs are rarely right.
SINCE = {"Gelu": 20, "Mish": 18, "RMSNormalization": 23}

"""Random TFLite models around one operator each, for tflite_check.py. OPERATORS has a row for each:
it makes a model with random attributes."""

import numpy as np

from tflite_draw import ACTS, any_rank, drawn, partner, picture, pick, sliding, whole, window_out
from tflite_moves import MOVES


def conv(m, r):
    x = picture(m, r)
    n, h, w, c = m.shape(x)
    k, s, d, same = sliding(r, h, w)
    filters = whole(r, 1, 6)
    group = 1
    if c % 2 == 0 and r.random() < 0.2:
        group, filters = 2, 2 * whole(r, 1, 3)
    inputs = [x, m.constant(drawn(r, [filters, *k, c // group], 0.6))]
    inputs.append(m.constant(drawn(r, [filters])) if r.random() < 0.8 else -1)
    out = [n, *(window_out(e, k[i], s[i], d[i], same) for i, e in enumerate((h, w))), filters]
    return m.op(
        "CONV_2D",
        inputs,
        out,
        (
            "Conv2DOptions",
            {
                "padding": 0 if same else 1,
                "strideH": s[0],
                "strideW": s[1],
                "dilationHFactor": d[0],
                "dilationWFactor": d[1],
                "fusedActivationFunction": pick(r, ACTS),
            },
        ),
    )


def depthwise(m, r):
    x = picture(m, r)
    n, h, w, c = m.shape(x)
    k, s, d, same = sliding(r, h, w)
    s[1] = s[0]
    times = pick(r, (1, 1, 2, 3))
    inputs = [x, m.constant(drawn(r, [1, *k, c * times], 0.6)), m.constant(drawn(r, [c * times]))]
    out = [n, *(window_out(e, k[i], s[i], d[i], same) for i, e in enumerate((h, w))), c * times]
    return m.op(
        "DEPTHWISE_CONV_2D",
        inputs,
        out,
        (
            "DepthwiseConv2DOptions",
            {
                "padding": 0 if same else 1,
                "strideH": s[0],
                "strideW": s[1],
                "depthMultiplier": times,
                "dilationHFactor": d[0],
                "dilationWFactor": d[1],
                "fusedActivationFunction": pick(r, ACTS),
            },
        ),
    )


def transpose_conv(m, r):
    x = picture(m, r)
    n, h, w, c = m.shape(x)
    k, s = [whole(r, 1, 4), whole(r, 1, 4)], [whole(r, 1, 3), whole(r, 1, 3)]
    same = r.random() < 0.5
    out = [n]
    for i, e in enumerate((h, w)):
        # Every extent whose convolution would give e.
        fits = [
            o
            for o in range(1, e * s[i] + k[i] + 1)
            if (same or o >= k[i]) and window_out(o, k[i], s[i], 1, same) == e
        ]
        out.append(pick(r, fits))
    filters = whole(r, 1, 5)
    out.append(filters)
    inputs = [m.constant(out, "int32"), m.constant(drawn(r, [filters, *k, c], 0.6)), x]
    if r.random() < 0.5:
        inputs.append(m.constant(drawn(r, [filters])))
    return m.op(
        "TRANSPOSE_CONV",
        inputs,
        out,
        (
            "TransposeConvOptions",
            {
                "padding": 0 if same else 1,
                "strideH": s[0],
                "strideW": s[1],
                "fusedActivationFunction": pick(r, (0, 1, 3)) if len(inputs) == 4 else 0,
            },
        ),
    )


def pool(name):
    def make(m, r):
        x = picture(m, r)
        n, h, w, c = m.shape(x)
        k, s, d, same = sliding(r, h, w, dilated=False)
        out = [n, *(window_out(e, k[i], s[i], 1, same) for i, e in enumerate((h, w))), c]
        return m.op(
            name,
            [x],
            out,
            (
                "Pool2DOptions",
                {
                    "padding": 0 if same else 1,
                    "strideH": s[0],
                    "strideW": s[1],
                    "filterHeight": k[0],
                    "filterWidth": k[1],
                    "fusedActivationFunction": pick(r, (0, 0, 1, 3)),
                },
            ),
        )

    return make


def fully_connected(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    keep = r.random() < 0.4
    width = dims[-1] if keep or r.random() < 0.5 else int(np.prod(dims))
    out = whole(r, 1, 6)
    shape = dims[:-1] + [out] if keep else [int(np.prod(dims)) // width, out]
    inputs = [x, m.constant(drawn(r, [out, width], 0.7))]
    inputs.append(m.constant(drawn(r, [out])) if r.random() < 0.7 else -1)
    return m.op(
        "FULLY_CONNECTED",
        inputs,
        shape,
        (
            "FullyConnectedOptions",
            {"keepNumDims": keep, "fusedActivationFunction": pick(r, (0, 0, 1, 2, 3))},
        ),
    )


def binary(name, options=None):
    def make(m, r):
        x = any_rank(m, r)
        y = partner(m, r, x, name in ("DIV", "FLOOR_DIV", "FLOOR_MOD"))
        ins = [x, y]
        if name == "POW":
            x = m.op("EXP", [x], m.shape(x))
            ins = [x, m.constant(np.float32(pick(r, (0.5, 1, 2, 3, -1, 1.7))))]
        if name not in ("DIV", "FLOOR_DIV", "FLOOR_MOD", "POW") and r.random() < 0.5:
            ins.reverse()
        shape = list(np.broadcast_shapes(*(m.shape(i) for i in ins)))
        return m.op(
            name,
            ins,
            shape,
            options and (options, {"fusedActivationFunction": pick(r, (0, 0, 1, 3, 2))}),
        )

    return make


def approximate(r):
    return "GeluOptions", {"approximate": r.random() < 0.5}


def slope(r):
    return "LeakyReluOptions", {"alpha": float(r.uniform(0, 1))}


def unary(name, positive=False, options=None):
    def make(m, r):
        x = any_rank(m, r)
        if positive:
            x = m.op("ABS", [x], m.shape(x))
            x = m.op("ADD", [x, m.constant(np.float32(0.2))], m.shape(x), ("AddOptions", {}))
        if name in ("FLOOR", "CEIL", "ROUND", "SIGN") and r.random() < 0.5:
            x = m.op("MUL", [x, m.constant(np.float32(3))], m.shape(x), ("MulOptions", {}))
        return m.op(name, [x], m.shape(x), options(r) if options else None)

    return make


def prelu(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    alpha = [1] * (len(dims) - 2) + [dims[-1]]
    if r.random() < 0.3:
        alpha = dims[1:]
    return m.op("PRELU", [x, m.constant(drawn(r, alpha))], dims)


def compare(name):
    def make(m, r):
        x = any_rank(m, r)
        dims = m.shape(x)
        x = m.op("ROUND", [x], dims)
        y = m.constant(np.round(drawn(r, [] if r.random() < 0.5 else dims[-1:])))
        t = m.op(name, [x, y], dims, kind="bool")
        if r.random() < 0.3:
            t = m.op("LOGICAL_NOT", [t], dims, kind="bool")
        if r.random() < 0.4:
            u = m.op("GREATER", [x, m.constant(np.float32(0))], dims, kind="bool")
            t = m.op(pick(r, ("LOGICAL_AND", "LOGICAL_OR")), [t, u], dims, kind="bool")
        if r.random() < 0.5:
            return m.op("SELECT_V2", [t, x, m.constant(np.float32(pick(r, (-1, 0, 7))))], dims)
        return m.op("CAST", [t], dims, ("CastOptions", {"inDataType": 6, "outDataType": 0}))

    return make


def select(m, r):
    x = any_rank(m, r)
    dims = m.shape(x)
    t = m.op("GREATER", [x, m.constant(np.float32(0.1))], dims, kind="bool")
    y = m.op("EXP", [x], dims)
    return m.op("SELECT", [t, x, y], dims)


def reduce_(name):
    def make(m, r):
        x = any_rank(m, r, 2, 4)
        dims = m.shape(x)
        axes = sorted({whole(r, 1, len(dims) - 1) for _ in range(whole(r, 1, 3))})
        given = [a - len(dims) if r.random() < 0.3 else a for a in axes]
        keep = r.random() < 0.5
        out = [1 if i in axes else d for i, d in enumerate(dims) if keep or i not in axes]
        return m.op(
            name, [x, m.constant(given, "int32")], out, ("ReducerOptions", {"keepDims": keep})
        )

    return make


def resize(name, options):
    def make(m, r):
        x = picture(m, r)
        n, h, w, c = m.shape(x)
        to = (
            [whole(r, 1, 3) * h, whole(r, 1, 3) * w]
            if r.random() < 0.5
            else [whole(r, 1, 20), whole(r, 1, 20)]
        )
        corners, centers = pick(r, ((False, False), (True, False), (False, True)))
        return m.op(
            name,
            [x, m.constant(to, "int32")],
            [n, *to, c],
            (options, {"alignCorners": corners, "halfPixelCenters": centers}),
        )

    return make


def softmax(m, r):
    x = any_rank(m, r, 2, 4)
    return m.op(
        "SOFTMAX", [x], m.shape(x), ("SoftmaxOptions", {"beta": pick(r, (1.0, 1.0, 0.5, 2.0))})
    )


def arg(name):
    def make(m, r):
        x = any_rank(m, r, 2, 4)
        dims = m.shape(x)
        at = whole(r, 1, len(dims) - 1)
        x = m.op("ROUND", [x], dims)
        y = m.op(
            name,
            [x, m.constant(at, "int32")],
            dims[:at] + dims[at + 1 :],
            (
                pick(r, ("ArgMaxOptions",)) if name == "ARG_MAX" else "ArgMinOptions",
                {"outputType": 2},
            ),
            kind="int32",
        )
        return m.op("CAST", [y], m.shape(y), ("CastOptions", {"inDataType": 2, "outDataType": 0}))

    return make


def l2_norm(m, r):
    x = any_rank(m, r, 2, 4)
    return m.op("L2_NORMALIZATION", [x], m.shape(x), ("L2NormOptions", {}))


def local_response(m, r):
    x = picture(m, r)
    return m.op(
        "LOCAL_RESPONSE_NORMALIZATION",
        [x],
        m.shape(x),
        (
            "LocalResponseNormalizationOptions",
            {
                "radius": whole(r, 0, 3),
                "bias": float(r.uniform(0.5, 2)),
                "alpha": float(r.uniform(0.1, 1)),
                "beta": pick(r, (0.5, 0.75, 1.0)),
            },
        ),
    )


def cast(m, r):
    x = any_rank(m, r)
    y = m.op(
        "CAST", [x], m.shape(x), ("CastOptions", {"inDataType": 0, "outDataType": 2}), kind="int32"
    )
    return m.op("CAST", [y], m.shape(x), ("CastOptions", {"inDataType": 2, "outDataType": 0}))


OPERATORS = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "TRANSPOSE_CONV": transpose_conv,
    "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D"),
    "MAX_POOL_2D": pool("MAX_POOL_2D"),
    "L2_POOL_2D": pool("L2_POOL_2D"),
    "FULLY_CONNECTED": fully_connected,
    "ADD": binary("ADD", "AddOptions"),
    "SUB": binary("SUB", "SubOptions"),
    "MUL": binary("MUL", "MulOptions"),
    "DIV": binary("DIV", "DivOptions"),
    "MAXIMUM": binary("MAXIMUM"),
    "MINIMUM": binary("MINIMUM"),
    "SQUARED_DIFFERENCE": binary("SQUARED_DIFFERENCE"),
    "POW": binary("POW"),
    "FLOOR_DIV": binary("FLOOR_DIV"),
    "FLOOR_MOD": binary("FLOOR_MOD"),
    "PRELU": prelu,
    "RELU": unary("RELU"),
    "RELU6": unary("RELU6"),
    "RELU_N1_TO_1": unary("RELU_N1_TO_1"),
    "RELU_0_TO_1": unary("RELU_0_TO_1"),
    "TANH": unary("TANH"),
    "LOGISTIC": unary("LOGISTIC"),
    "ELU": unary("ELU"),
    "HARD_SWISH": unary("HARD_SWISH"),
    "EXP": unary("EXP"),
    "LOG": unary("LOG", True),
    "SQRT": unary("SQRT", True),
    "RSQRT": unary("RSQRT", True),
    "SQUARE": unary("SQUARE"),
    "ABS": unary("ABS"),
    "NEG": unary("NEG"),
    "SIN": unary("SIN"),
    "COS": unary("COS"),
    "FLOOR": unary("FLOOR"),
    "CEIL": unary("CEIL"),
    "ROUND": unary("ROUND"),
    "SIGN": unary("SIGN"),
    "LOG_SOFTMAX": unary("LOG_SOFTMAX"),
    "LESS": compare("LESS"),
    "LESS_EQUAL": compare("LESS_EQUAL"),
    "GREATER": compare("GREATER"),
    "GREATER_EQUAL": compare("GREATER_EQUAL"),
    "EQUAL": compare("EQUAL"),
    "NOT_EQUAL": compare("NOT_EQUAL"),
    "SELECT": select,
    "MEAN": reduce_("MEAN"),
    "SUM": reduce_("SUM"),
    "REDUCE_MAX": reduce_("REDUCE_MAX"),
    "REDUCE_MIN": reduce_("REDUCE_MIN"),
    "REDUCE_PROD": reduce_("REDUCE_PROD"),
    "RESIZE_BILINEAR": resize("RESIZE_BILINEAR", "ResizeBilinearOptions"),
    "RESIZE_NEAREST_NEIGHBOR": resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    "SOFTMAX": softmax,
    "ARG_MAX": arg("ARG_MAX"),
    "ARG_MIN": arg("ARG_MIN"),
    "L2_NORMALIZATION": l2_norm,
    "LOCAL_RESPONSE_NORMALIZATION": local_response,
    "CAST": cast,
    "GELU": unary("GELU", options=approximate),
    "LEAKY_RELU": unary("LEAKY_RELU", options=slope),
    **MOVES,
}

"""Random quantized TFLite models around one operator each, for tflite_check.py. A row gives the
output and its tolerance, one step of its scale."""

import numpy as np

from tflite_file import Steps
from tflite_draw import pick, sliding, whole, window_out

RANGE = {"int8": (-128, 127), "uint8": (0, 255)}


def kind_of(r):
    return pick(r, ("int8", "int8", "uint8"))


def steps_for(r, kind, low=0.005, high=0.05):
    least, most = RANGE[kind]
    return Steps(
        float(np.float32(r.uniform(low, high))),
        whole(r, least // 2, most // 2) if kind == "int8" else whole(r, 60, 200),
    )


def quantized_input(m, r, dims, kind, steps):
    """Stored numbers as an input, or floats and a QUANTIZE."""
    if r.random() < 0.5:
        return m.input(r.integers(*RANGE[kind], dims, endpoint=True).astype(kind), steps=steps)
    low, high = ((v - steps.zero[0]) * steps.scale[0] for v in RANGE[kind])
    x = m.input(r.uniform(low, high, dims).astype(np.float32))
    return m.op("QUANTIZE", [x], dims, kind=kind, steps=steps)


def given(m, r, y, steps):
    """The stored output, or its floats."""
    allowed = float(steps.scale[0]) * 1.01
    if r.random() < 0.5:
        return y, allowed
    return m.op("DEQUANTIZE", [y], m.shape(y)), allowed


def picture(m, r, kind, steps, channels=None):
    return quantized_input(
        m, r, [1, whole(r, 3, 7), whole(r, 3, 7), channels or whole(r, 1, 4)], kind, steps
    )


def weights(m, r, dims, kind, axis, count):
    """int8: a scale for each channel; uint8: one for all, and a zero point."""
    if kind == "uint8":
        steps = Steps(float(r.uniform(0.005, 0.03)), whole(r, 100, 150))
        return m.constant(r.integers(0, 256, dims), "uint8", steps), np.full(count, steps.scale[0])
    steps = Steps(r.uniform(0.005, 0.03, count).astype(np.float32), 0, axis)
    return m.constant(r.integers(-127, 128, dims), "int8", steps), steps.scale


def bias(m, r, count, x_steps, scales):
    scale = (x_steps.scale[0] * scales).astype(np.float32)
    steps = Steps(scale if len(set(scale.tolist())) > 1 else scale[:1], 0)
    return m.constant(r.integers(-200, 200, count), "int32", steps)


def conv(name):
    def make(m, r):
        kind = kind_of(r)
        xs, ys = steps_for(r, kind), steps_for(r, kind, 0.03, 0.1)
        x = picture(m, r, kind, xs)
        n, h, w, c = m.shape(x)
        k, s, d, same = sliding(r, h, w, dilated=False)
        s[1] = s[0]
        out = [n, *(window_out(e, k[i], s[i], 1, same) for i, e in enumerate((h, w)))]
        options = {
            "padding": 0 if same else 1,
            "strideH": s[0],
            "strideW": s[1],
            "fusedActivationFunction": pick(r, (0, 1, 3)),
        }
        deep = name == "DEPTHWISE_CONV_2D"
        f = c if deep else whole(r, 1, 5)
        kernel, scales = weights(
            m, r, [1, *k, c] if deep else [f, *k, c], kind, 3 if deep else 0, f
        )
        if deep:
            options["depthMultiplier"] = 1
        ins = [x, kernel, bias(m, r, f, xs, scales)]
        y = m.op(
            name,
            ins,
            out + [f],
            ("DepthwiseConv2DOptions" if deep else "Conv2DOptions", options),
            kind,
            ys,
        )
        return given(m, r, y, ys)

    return make


def fully_connected(m, r):
    kind = kind_of(r)
    xs, ys = steps_for(r, kind), steps_for(r, kind, 0.03, 0.1)
    width, out = whole(r, 1, 12), whole(r, 1, 6)
    x = quantized_input(m, r, [1, width], kind, xs)
    ws = Steps(0.02, 0 if kind == "int8" else 128)
    low, high = RANGE[kind]
    k = m.constant(r.integers(max(low, -127), high, [out, width]), kind, ws)
    b = bias(m, r, out, xs, np.full(out, ws.scale[0]))
    y = m.op(
        "FULLY_CONNECTED",
        [x, k, b],
        [1, out],
        ("FullyConnectedOptions", {"fusedActivationFunction": pick(r, (0, 1, 3))}),
        kind,
        ys,
    )
    return given(m, r, y, ys)


def binary(name):
    def make(m, r):
        kind = kind_of(r)
        xs, zs, ys = steps_for(r, kind), steps_for(r, kind), steps_for(r, kind, 0.02, 0.1)
        dims = [1, whole(r, 1, 5), whole(r, 1, 5), whole(r, 1, 4)]
        x, z = (quantized_input(m, r, dims, kind, s) for s in (xs, zs))
        y = m.op(
            name,
            [x, z],
            dims,
            (name.capitalize() + "Options", {"fusedActivationFunction": pick(r, (0, 1, 3))}),
            kind,
            ys,
        )
        return given(m, r, y, ys)

    return make


def fixed(name, scale, zero, options=None):
    """Operators whose output has a scale that TFLite prescribes."""

    def make(m, r):
        kind = kind_of(r)
        xs = steps_for(r, kind)
        ys = Steps(scale, zero if kind == "int8" else zero + 128)
        x = quantized_input(m, r, [1, whole(r, 2, 9)], kind, xs)
        y = m.op(name, [x], m.shape(x), options, kind, ys)
        return given(m, r, y, ys)

    return make


def moved(name):
    """Operators that keep the scale of their input."""

    def make(m, r):
        kind = kind_of(r)
        xs = steps_for(r, kind)
        x = picture(m, r, kind, xs)
        n, h, w, c = m.shape(x)
        if name in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
            k, s, _, same = sliding(r, h, w, dilated=False)
            out = [n, *(window_out(e, k[i], s[i], 1, same) for i, e in enumerate((h, w))), c]
            y = m.op(
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
                        "fusedActivationFunction": pick(r, (0, 1, 3)),
                    },
                ),
                kind,
                xs,
            )
        elif name == "RESHAPE":
            y = m.op(
                name,
                [x, m.constant([n, h * w * c], "int32")],
                [n, h * w * c],
                ("ReshapeOptions", {"newShape": [n, h * w * c]}),
                kind,
                xs,
            )
        elif name == "PAD":
            p = [[0, 0], [1, 1], [0, 2], [0, 0]]
            y = m.op(
                name,
                [x, m.constant(p, "int32")],
                [d + sum(q) for d, q in zip((n, h, w, c), p)],
                None,
                kind,
                xs,
            )
        elif name == "CONCATENATION":
            z = quantized_input(m, r, [n, h, w, c], kind, xs)
            y = m.op(
                name, [x, z], [n, h, w, 2 * c], ("ConcatenationOptions", {"axis": 3}), kind, xs
            )
        else:
            y = m.op(
                name,
                [x, m.constant([2 * h, 2 * w], "int32")],
                [n, 2 * h, 2 * w, c],
                ("ResizeBilinearOptions", {"halfPixelCenters": True}),
                kind,
                xs,
            )
        return given(m, r, y, xs)

    return make


def mean(m, r):
    kind = kind_of(r)
    xs, ys = steps_for(r, kind), steps_for(r, kind)
    x = picture(m, r, kind, xs)
    n, _, _, c = m.shape(x)
    y = m.op(
        "MEAN",
        [x, m.constant([1, 2], "int32")],
        [n, c],
        ("ReducerOptions", {"keepDims": False}),
        kind,
        ys,
    )
    return given(m, r, y, ys)


def requantized(m, r):
    kind = kind_of(r)
    xs, ys = steps_for(r, kind), steps_for(r, kind, 0.02, 0.1)
    x = quantized_input(m, r, [1, 4, 3], kind, xs)
    return given(m, r, m.op("QUANTIZE", [x], m.shape(x), kind=kind, steps=ys), ys)


def rescaled(name):
    def make(m, r):
        kind = kind_of(r)
        xs, ys = steps_for(r, kind), steps_for(r, kind, 0.02, 0.06)
        x = quantized_input(m, r, [1, whole(r, 2, 9)], kind, xs)
        return given(
            m,
            r,
            m.op(
                name,
                [x],
                m.shape(x),
                ("HardSwishOptions", {}) if name == "HARD_SWISH" else None,
                kind,
                ys,
            ),
            ys,
        )

    return make


STEPS = {
    "q CONV_2D": conv("CONV_2D"),
    "q DEPTHWISE_CONV_2D": conv("DEPTHWISE_CONV_2D"),
    "q FULLY_CONNECTED": fully_connected,
    "q ADD": binary("ADD"),
    "q SUB": binary("SUB"),
    "q MUL": binary("MUL"),
    "q SOFTMAX": fixed("SOFTMAX", 1 / 256, -128, ("SoftmaxOptions", {"beta": 1.0})),
    "q LOGISTIC": fixed("LOGISTIC", 1 / 256, -128),
    "q TANH": fixed("TANH", 1 / 128, 0),
    "q MAX_POOL_2D": moved("MAX_POOL_2D"),
    "q AVERAGE_POOL_2D": moved("AVERAGE_POOL_2D"),
    "q RESHAPE": moved("RESHAPE"),
    "q PAD": moved("PAD"),
    "q CONCATENATION": moved("CONCATENATION"),
    "q RESIZE_BILINEAR": moved("RESIZE_BILINEAR"),
    "q MEAN": mean,
    "q QUANTIZE": requantized,
    "q RELU": rescaled("RELU"),
    "q RELU6": rescaled("RELU6"),
    "q HARD_SWISH": rescaled("HARD_SWISH"),
}

"""Random TFLite models of several operators that read each other: images that branch and join, as
in mobile networks, and a head."""

from tflite_draw import ACTS, drawn, pick, sliding, whole, window_out

SAME = ("RELU", "RELU6", "TANH", "LOGISTIC", "HARD_SWISH", "ELU", "ABS", "NEG")


def convolved(m, r, x):
    n, h, w, c = m.shape(x)
    k, s, d, same = sliding(r, h, w)
    s[1] = s[0]
    out = [n, *(window_out(e, k[i], s[i], d[i], same) for i, e in enumerate((h, w)))]
    common = {
        "padding": 0 if same else 1,
        "strideH": s[0],
        "strideW": s[1],
        "dilationHFactor": d[0],
        "dilationWFactor": d[1],
        "fusedActivationFunction": pick(r, ACTS),
    }
    if r.random() < 0.5:
        ins = [x, m.constant(drawn(r, [1, *k, c], 0.5)), m.constant(drawn(r, [c], 0.3))]
        return m.op(
            "DEPTHWISE_CONV_2D",
            ins,
            out + [c],
            ("DepthwiseConv2DOptions", {**common, "depthMultiplier": 1}),
        )
    f = whole(r, 1, 6)
    ins = [x, m.constant(drawn(r, [f, *k, c], 0.5)), m.constant(drawn(r, [f], 0.3))]
    return m.op("CONV_2D", ins, out + [f], ("Conv2DOptions", common))


def squeezed(m, r, x):
    """A mean over the positions, a gate for each channel, and the image times that."""
    n, _, _, c = m.shape(x)
    y = m.op(
        "MEAN",
        [x, m.constant([1, 2], "int32")],
        [n, 1, 1, c],
        ("ReducerOptions", {"keepDims": True}),
    )
    y = m.op(
        "CONV_2D",
        [y, m.constant(drawn(r, [c, 1, 1, c])), m.constant(drawn(r, [c]))],
        [n, 1, 1, c],
        ("Conv2DOptions", {"strideH": 1, "strideW": 1}),
    )
    y = m.op("LOGISTIC", [y], [n, 1, 1, c])
    return m.op("MUL", [x, y], m.shape(x), ("MulOptions", {}))


def step(m, r, values):
    x = pick(r, values)
    n, h, w, c = dims = m.shape(x)
    kind = whole(r, 0, 9)
    if kind <= 2:
        return convolved(m, r, x)
    if kind == 3:
        return m.op(pick(r, SAME), [x], dims)
    if kind == 4:
        alike = [v for v in values if m.shape(v) == dims]
        return m.op(pick(r, ("ADD", "MUL", "MAXIMUM")), [x, pick(r, alike)], dims)
    if kind == 5:
        joined = [v for v in values if m.shape(v)[:3] == dims[:3]]
        other = pick(r, joined)
        return m.op(
            "CONCATENATION",
            [x, other],
            [n, h, w, c + m.shape(other)[3]],
            ("ConcatenationOptions", {"axis": 3}),
        )
    if kind == 6:
        p = [[0, 0], [whole(r, 0, 1), whole(r, 0, 1)], [whole(r, 0, 1), 0], [0, whole(r, 0, 2)]]
        return m.op("PAD", [x, m.constant(p, "int32")], [d + sum(q) for d, q in zip(dims, p)])
    if kind == 7:
        to = [whole(r, 1, 8), whole(r, 1, 8)]
        name = pick(r, ("ResizeBilinear", "ResizeNearestNeighbor"))
        code = "RESIZE_BILINEAR" if name == "ResizeBilinear" else "RESIZE_NEAREST_NEIGHBOR"
        return m.op(
            code,
            [x, m.constant(to, "int32")],
            [n, *to, c],
            (name + "Options", {"halfPixelCenters": r.random() < 0.5}),
        )
    if kind == 8:
        return squeezed(m, r, x)
    return m.op("PRELU", [x, m.constant(drawn(r, [1, 1, c]))], dims)


def head(m, r, x):
    """The head after the images: rows, positions, or the image itself."""
    n, h, w, c = dims = m.shape(x)
    kind = whole(r, 0, 4)
    if kind == 0:
        return x
    if kind == 1:
        y = m.op(
            "MEAN",
            [x, m.constant([1, 2], "int32")],
            [n, c],
            ("ReducerOptions", {"keepDims": False}),
        )
        out = whole(r, 1, 5)
        y = m.op(
            "FULLY_CONNECTED",
            [y, m.constant(drawn(r, [out, c])), -1],
            [n, out],
            ("FullyConnectedOptions", {}),
        )
        return m.op("SOFTMAX", [y], [n, out], ("SoftmaxOptions", {"beta": 1.0}))
    if kind == 2:
        return m.op(
            "RESHAPE",
            [x, m.constant([1, -1, c], "int32")],
            [1, n * h * w, c],
            ("ReshapeOptions", {"newShape": [1, -1, c]}),
        )
    if kind == 3:
        y = m.op("TRANSPOSE", [x, m.constant([0, 3, 1, 2], "int32")], [n, c, h, w])
        return m.op(
            "RESHAPE",
            [y, m.constant([1, c, h * w], "int32")],
            [1, c, h * w],
            ("ReshapeOptions", {"newShape": [1, c, h * w]}),
        )
    return m.op(
        "STRIDED_SLICE",
        [x, *(m.constant(v, "int32") for v in ([0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]))],
        dims[:3],
        ("StridedSliceOptions", {"beginMask": 7, "endMask": 7, "shrinkAxisMask": 8}),
    )


def graph(m, r):
    values = [m.input(drawn(r, [1, whole(r, 3, 10), whole(r, 3, 10), whole(r, 1, 4)], 1))]
    for _ in range(whole(r, 2, 8)):
        made = step(m, r, values)
        if max(m.shape(made)) < 40:
            values.append(made)
    outputs = [head(m, r, values[-1])]
    if outputs[0] == values[0]:
        outputs = [m.op("TANH", [values[0]], m.shape(values[0]))]
    if r.random() < 0.3 and len(values) > 2 and values[-2] not in outputs:
        outputs.append(values[-2])
    return outputs

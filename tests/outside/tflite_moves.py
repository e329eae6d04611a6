"""Random TFLite models around one operator each that moves values, or computes a shape, and of
sequences. MOVES has a row for each."""

import numpy as np

from tflite_draw import any_rank, drawn, picture, pick, whole
from tflite_file import Steps


def reshape(m, r):
    x = any_rank(m, r, 2, 4)
    count = int(np.prod(m.shape(x)))
    rest = [d for d in range(1, count + 1) if count % d == 0]
    d = pick(r, rest)
    shape = pick(r, ([1, count], [1, d, count // d], [1, d, 1, count // d]))
    given = list(shape)
    if r.random() < 0.4:
        given[-1] = -1
    if r.random() < 0.7:
        return m.op(
            "RESHAPE",
            [x, m.constant(given, "int32")],
            shape,
            ("ReshapeOptions", {"newShape": given}),
        )
    return m.op("RESHAPE", [x], shape, ("ReshapeOptions", {"newShape": given}))


def squeeze(m, r):
    x = m.input(drawn(r, [1, whole(r, 2, 5), 1, whole(r, 1, 4)]))
    dims = m.shape(x)
    return m.op(
        "SQUEEZE",
        [x],
        [dims[0], dims[1], dims[3]],
        ("SqueezeOptions", {"squeezeDims": [pick(r, (2, -2))]}),
    )


def expand_dims(m, r):
    x = any_rank(m, r, 2, 3)
    dims = m.shape(x)
    at = whole(r, 1, len(dims))
    return m.op(
        "EXPAND_DIMS",
        [x, m.constant(pick(r, (at, at - len(dims) - 1)), "int32")],
        dims[:at] + [1] + dims[at:],
    )


def transpose(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    order = [0] + [int(i) + 1 for i in r.permutation(len(dims) - 1)]
    return m.op("TRANSPOSE", [x, m.constant(order, "int32")], [dims[i] for i in order])


def concat(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    at = whole(r, 1, len(dims) - 1)
    parts, total = [x], dims[at]
    for _ in range(whole(r, 1, 3)):
        if r.random() < 0.6:
            parts.append(m.op(pick(r, ("TANH", "EXP", "NEG")), [x], dims))
            total += dims[at]
        else:
            other = list(dims)
            other[at] = whole(r, 1, 3)
            parts.append(m.constant(drawn(r, other)))
            total += other[at]
    out = list(dims)
    out[at] = total
    return m.op(
        "CONCATENATION",
        parts,
        out,
        ("ConcatenationOptions", {"axis": pick(r, (at, at - len(dims)))}),
    )


def pad(name):
    def make(m, r):
        x = any_rank(m, r, 2, 4)
        dims = m.shape(x)
        pads = [[0, 0]] + [[whole(r, 0, 2), whole(r, 0, 2)] for _ in dims[1:]]
        options = None
        if name == "MIRROR_PAD":
            mode = whole(r, 0, 1)
            options = ("MirrorPadOptions", {"mode": mode})
            pads = [[min(p, d - (1 - mode)) for p in pair] for pair, d in zip(pads, dims)]
        ins = [x, m.constant(pads, "int32")]
        if name == "PADV2":
            ins.append(m.constant(np.float32(pick(r, (-1.5, 0, 4)))))
        return m.op(name, ins, [d + sum(p) for d, p in zip(dims, pads)], options)

    return make


def slice_(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    begin = [0] + [whole(r, 0, d - 1) for d in dims[1:]]
    size = [dims[0]] + [whole(r, 1, d - b) for d, b in zip(dims[1:], begin[1:])]
    given = [-1 if b + s == d and r.random() < 0.5 else s for b, s, d in zip(begin, size, dims)]
    return m.op("SLICE", [x, m.constant(begin, "int32"), m.constant(given, "int32")], size)


def strided_slice(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    spec, begin, end, step = [slice(None)], [0], [0], [1]
    masks = {"beginMask": 1, "endMask": 1, "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0}
    axis = 1
    while axis < len(dims):
        bit = 1 << len(begin)
        kind = r.random()
        d = dims[axis]
        if kind < 0.12 and len(spec) < 5:
            masks["newAxisMask"] |= bit
            spec.append(None)
            begin.append(0), end.append(0), step.append(1)
            continue
        if kind < 0.2 and masks["ellipsisMask"] == 0:
            masks["ellipsisMask"] |= bit
            spec.append(Ellipsis)
            begin.append(0), end.append(0), step.append(1)
            axis += whole(r, 1, len(dims) - axis)
            continue
        if kind < 0.35:
            p = whole(r, -d, d - 1)
            masks["shrinkAxisMask"] |= bit
            spec.append(p)
            begin.append(p), end.append(p + 1), step.append(1)
        else:
            s = pick(r, (1, 1, 2, -1, -2))
            b, e = sorted((whole(r, 0, d), whole(r, 0, d)))
            if e == b:
                b, e = 0, d
            if s < 0:
                b, e = e - 1, b - 1
                if e < 0:
                    masks["endMask"] |= bit
                spec.append(slice(b, None if e < 0 else e, s))
            else:
                spec.append(slice(b, e, s))
            begin.append(b), end.append(e), step.append(s)
        axis += 1
    out = list(np.zeros(dims, np.int8)[tuple(spec)].shape)
    if not out or 0 in out or len(out) > 4:
        return strided_slice(m, r)
    lists = [m.constant(v, "int32") for v in (begin, end, step)]
    return m.op("STRIDED_SLICE", [x, *lists], out, ("StridedSliceOptions", masks))


def split(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    at = whole(r, 1, len(dims) - 1)
    count = pick(r, [n for n in range(1, dims[at] + 1) if dims[at] % n == 0])
    part = list(dims)
    part[at] //= count
    made = m.op(
        "SPLIT",
        [m.constant(at, "int32"), x],
        [part] * count,
        ("SplitOptions", {"numSplits": count}),
    )
    return made


def split_v(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    at = whole(r, 1, len(dims) - 1)
    cut = sorted({0, dims[at], *(whole(r, 0, dims[at]) for _ in range(2))})
    widths = [b - a for a, b in zip(cut, cut[1:])]
    given = list(widths)
    if r.random() < 0.3:
        given[0] = -1
    shapes = [[w if i == at else d for i, d in enumerate(dims)] for w in widths]
    return m.op(
        "SPLIT_V",
        [x, m.constant(given, "int32"), m.constant(at, "int32")],
        shapes,
        ("SplitVOptions", {"numSplits": len(widths)}),
    )


def pack(m, r):
    x = any_rank(m, r, 1, 3)
    dims = m.shape(x)
    at = whole(r, 1, len(dims))
    parts = [x] + [m.op(pick(r, ("TANH", "NEG")), [x], dims) for _ in range(whole(r, 1, 2))]
    return m.op(
        "PACK",
        parts,
        dims[:at] + [len(parts)] + dims[at:],
        ("PackOptions", {"valuesCount": len(parts), "axis": at}),
    )


def unpack(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    at = whole(r, 1, len(dims) - 1)
    return m.op(
        "UNPACK",
        [x],
        [dims[:at] + dims[at + 1 :]] * dims[at],
        ("UnpackOptions", {"num": dims[at], "axis": at}),
    )


def gather(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    at = whole(r, 1, len(dims) - 1)
    places = r.integers(0, dims[at], [whole(r, 1, 4)] if r.random() < 0.7 else [])
    return m.op(
        "GATHER",
        [x, m.constant(places, "int32")],
        dims[:at] + list(places.shape) + dims[at + 1 :],
        ("GatherOptions", {"axis": at}),
    )


def embedding(m, r):
    vocab, width = whole(r, 2, 20), whole(r, 1, 6)
    ids = m.input(r.integers(0, vocab, [1, whole(r, 1, 6)]).astype(np.int32))
    return m.op(
        "GATHER",
        [m.constant(drawn(r, [vocab, width])), ids],
        m.shape(ids) + [width],
        ("GatherOptions", {"axis": 0}),
    )


def gather_nd(m, r):
    x = any_rank(m, r, 2, 3)
    dims = m.shape(x)
    places = np.stack([r.integers(0, d, 3) for d in dims], 1)
    return m.op("GATHER_ND", [x, m.constant(places, "int32")], [3])


def tile(m, r):
    x = any_rank(m, r, 2, 4)
    dims = m.shape(x)
    times = [1] + [whole(r, 1, 3) for _ in dims[1:]]
    return m.op("TILE", [x, m.constant(times, "int32")], [d * t for d, t in zip(dims, times)])


def broadcast_to(m, r):
    x = m.input(drawn(r, [1, whole(r, 1, 3), 1]))
    dims = m.shape(x)
    to = [dims[0], dims[1], whole(r, 1, 4)]
    return m.op("BROADCAST_TO", [x, m.constant(to, "int32")], to)


def blocks(name):
    def make(m, r):
        b = whole(r, 1, 3)
        c = whole(r, 1, 2)
        if name == "DEPTH_TO_SPACE":
            x = picture(m, r, channels=c * b * b, most=5)
            n, h, w, _ = m.shape(x)
            return m.op(name, [x], [n, h * b, w * b, c], ("DepthToSpaceOptions", {"blockSize": b}))
        x = m.input(drawn(r, [1, b * whole(r, 1, 3), b * whole(r, 1, 3), c]))
        n, h, w, _ = m.shape(x)
        return m.op(
            name, [x], [n, h // b, w // b, c * b * b], ("SpaceToDepthOptions", {"blockSize": b})
        )

    return make


def shape_of(m, r):
    """A reshape to a shape that the model computes from that of its input."""
    x = picture(m, r)
    n, h, w, c = m.shape(x)
    s = m.op("SHAPE", [x], [4], ("ShapeOptions", {"outType": 2}), kind="int32")
    lists = [m.constant([v], "int32") for v in (0, 1, 1)]
    first = m.op(
        "STRIDED_SLICE",
        [s, *lists],
        [],
        ("StridedSliceOptions", {"shrinkAxisMask": 1}),
        kind="int32",
    )
    to = m.op(
        "PACK",
        [first, m.constant(h * w, "int32"), m.constant(c, "int32")],
        [3],
        ("PackOptions", {"valuesCount": 3, "axis": 0}),
        kind="int32",
    )
    return m.op("RESHAPE", [x, to], [n, h * w, c], ("ReshapeOptions", {"newShape": [n, h * w, c]}))


def half_weights(m, r):
    """Weights and biases as float16, which the model converts to floats."""
    x = picture(m, r)
    n, h, w, c = m.shape(x)
    filters = whole(r, 1, 4)
    k = m.op(
        "DEQUANTIZE", [m.constant(drawn(r, [filters, 1, 1, c]), "float16")], [filters, 1, 1, c]
    )
    b = m.op("DEQUANTIZE", [m.constant(drawn(r, [filters]), "float16")], [filters])
    return m.op(
        "CONV_2D", [x, k, b], [n, h, w, filters], ("Conv2DOptions", {"strideW": 1, "strideH": 1})
    )


def byte_weights(m, r):
    """Weights as int8 with a scale each, which the model converts to floats."""
    width, out = whole(r, 1, 6), whole(r, 1, 5)
    x = m.input(drawn(r, [1, width]))
    steps = Steps(0.05)
    k = m.constant(r.integers(-127, 128, [out, width]), "int8", steps)
    k = m.op("DEQUANTIZE", [k], [out, width])
    return m.op("FULLY_CONNECTED", [x, k, -1], [1, out], ("FullyConnectedOptions", {}))


def batch_matmul(m, r):
    x = any_rank(m, r, 3, 3)
    b, rows, inner = m.shape(x)
    columns = whole(r, 1, 5)
    adj_x, adj_y = r.random() < 0.3, r.random() < 0.4
    if adj_x:
        x = m.op("TRANSPOSE", [x, m.constant([0, 2, 1], "int32")], [b, inner, rows])
    other = [columns, inner] if adj_y else [inner, columns]
    other = ([b] if r.random() < 0.5 else []) + other
    if len(other) == 2:
        other = [1] + other
    y = m.constant(drawn(r, other))
    if r.random() < 0.4:
        y = m.input(drawn(r, other))
    return m.op(
        "BATCH_MATMUL",
        [x, y],
        [b, rows, columns],
        ("BatchMatMulOptions", {"adjX": adj_x, "adjY": adj_y}),
    )


def lstm(m, r):
    time, width, n = whole(r, 1, 5), whole(r, 1, 4), whole(r, 1, 4)
    major = r.random() < 0.3
    x = m.input(drawn(r, [time, 1, width] if major else [1, time, width]))
    ins = [x]
    ins += [m.constant(drawn(r, [n, width], 0.6)) for _ in range(4)]
    ins += [m.constant(drawn(r, [n, n], 0.6)) for _ in range(4)]
    ins += [-1] * 3
    ins += [m.constant(drawn(r, [n], 0.6)) for _ in range(4)]
    ins += [-1] * 2
    ins += [m.tensor([1, n], variable=True), m.tensor([1, n], variable=True)]
    ins += [-1] * 4
    return m.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        ins,
        m.shape(x)[:2] + [n],
        ("UnidirectionalSequenceLSTMOptions", {"fusedActivationFunction": 4, "timeMajor": major}),
    )


def both_ways(m, r):
    time, width, n = whole(r, 1, 5), whole(r, 1, 4), whole(r, 1, 4)
    merged = r.random() < 0.5
    x = m.input(drawn(r, [1, time, width]))
    ins = [x]
    for _ in range(2):
        ins += [m.constant(drawn(r, [n, width], 0.6)) for _ in range(4)]
        ins += [m.constant(drawn(r, [n, n], 0.6)) for _ in range(4)]
        ins += [-1] * 3
        ins += [m.constant(drawn(r, [n], 0.6)) for _ in range(4)]
        ins += [-1] * 2
    ins += [m.tensor([1, n], variable=True) for _ in range(4)]
    ins += [-1] * 9
    shapes = [[1, time, 2 * n]] if merged else [[1, time, n]] * 2
    return m.op(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        ins,
        shapes,
        (
            "BidirectionalSequenceLSTMOptions",
            {"fusedActivationFunction": 4, "mergeOutputs": merged, "timeMajor": False},
        ),
    )


def add_n(m, r):
    x = any_rank(m, r)
    return m.op("ADD_N", [x, m.op("TANH", [x], m.shape(x)), x], m.shape(x))


def reverse(m, r):
    x = any_rank(m, r, 2, 4)
    return m.op(
        "REVERSE_V2", [x, m.constant([whole(r, 1, len(m.shape(x)) - 1)], "int32")], m.shape(x)
    )


def cumsum(m, r):
    x = any_rank(m, r, 2, 3)
    return m.op(
        "CUMSUM",
        [x, m.constant(whole(r, 1, len(m.shape(x)) - 1), "int32")],
        m.shape(x),
        ("CumsumOptions", {"exclusive": r.random() < 0.5, "reverse": r.random() < 0.5}),
    )


def top_k(m, r):
    x = any_rank(m, r, 2, 2)
    k = whole(r, 1, m.shape(x)[-1])
    made = m.op("TOPK_V2", [x, m.constant(k, "int32")], [[1, k], [1, k]], kind=["float32", "int32"])
    return made


def one_hot(m, r):
    depth = whole(r, 2, 6)
    ids = m.input(r.integers(0, depth, [1, whole(r, 1, 4)]).astype(np.int32))
    n = m.shape(ids)[1]
    at = pick(r, (-1, 1))
    ins = [ids, m.constant(depth, "int32"), m.constant(np.float32(2)), m.constant(np.float32(-1))]
    return m.op(
        "ONE_HOT",
        ins,
        [1, n, depth] if at == -1 else [1, depth, n],
        ("OneHotOptions", {"axis": at}),
    )


def zeros_like(m, r):
    x = any_rank(m, r)
    z = m.op("ZEROS_LIKE", [x], m.shape(x))
    return m.op("MAXIMUM", [x, z], m.shape(x))


def fill(m, r):
    x = any_rank(m, r, 2, 3)
    f = m.op("FILL", [m.constant(m.shape(x), "int32"), m.constant(np.float32(1.5))], m.shape(x))
    return m.op("SUB", [x, f], m.shape(x), ("SubOptions", {}))


def range_(m, r):
    x = any_rank(m, r, 2, 2)
    n = m.shape(x)[1]
    v = m.op(
        "RANGE",
        [m.constant(np.float32(0)), m.constant(np.float32(n)), m.constant(np.float32(1))],
        [n],
    )
    return m.op("MUL", [x, v], m.shape(x), ("MulOptions", {}))


MOVES = {
    "RESHAPE": reshape,
    "SQUEEZE": squeeze,
    "EXPAND_DIMS": expand_dims,
    "TRANSPOSE": transpose,
    "CONCATENATION": concat,
    "PAD": pad("PAD"),
    "PADV2": pad("PADV2"),
    "MIRROR_PAD": pad("MIRROR_PAD"),
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "PACK": pack,
    "UNPACK": unpack,
    "GATHER": gather,
    "ids": embedding,
    "GATHER_ND": gather_nd,
    "TILE": tile,
    "BROADCAST_TO": broadcast_to,
    "DEPTH_TO_SPACE": blocks("DEPTH_TO_SPACE"),
    "SPACE_TO_DEPTH": blocks("SPACE_TO_DEPTH"),
    "SHAPE": shape_of,
    "float16": half_weights,
    "int8 weights": byte_weights,
    "BATCH_MATMUL": batch_matmul,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "BIDIRECTIONAL_SEQUENCE_LSTM": both_ways,
    "ADD_N": add_n,
    "REVERSE_V2": reverse,
    "CUMSUM": cumsum,
    "TOPK_V2": top_k,
    "ONE_HOT": one_hot,
    "ZEROS_LIKE": zeros_like,
    "FILL": fill,
    "RANGE": range_,
}

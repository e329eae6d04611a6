"""Random ONNX graphs around operators that compare, choose, round and look up, for onnx_ops.py.
Their results contain booleans and integers. Some values are infinities and NaN."""
import numpy as np
from onnx import TensorProto

from onnx_graph import batch, near_shape, sample

COMPARE = ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]


def values(g, least=1, most=3):
    """The input, small integers at times, so that some are equal."""
    r = g.r
    dims = [batch(r)] + sample(r, least, most)
    x = g.input(dims, np.float32)
    if r.chance(0.5):
        x = g.node("Round", [x])
    return x, dims


def wild(r, dims):
    """Values with infinities and NaN among them."""
    v = r.values(dims, np.float32, 2)
    v = np.round(v) if r.chance(0.5) else v
    if r.chance(0.2):
        v = np.where(r.g.random(v.shape) < 0.2, r.pick([np.inf, -np.inf, np.nan]), v)
    return np.asarray(v, np.float32)


def truth(g, x, dims):
    r = g.r
    if r.chance(0.3):
        other = g.node("Mul", [x, g.const(np.asarray(r.pick([-1, 0.5, 1]), np.float32))])
    else:
        other = g.const(wild(r, r.pick([[], dims[1:], near_shape(r, dims)])))
    pair = [x, other]
    if r.chance(0.3):
        pair.reverse()
    return g.node(r.pick(COMPARE), pair)


def logic(op):
    def make(g):
        x, dims = values(g)
        pair = [truth(g, x, dims)] + ([] if op == "Not" else [truth(g, x, dims)])
        y = g.node(op, pair)
        return g.floats(y) if g.r.chance(0.5) else y
    return make


def compare(op):
    def make(g):
        r = g.r
        x, dims = values(g)
        return g.node(op, [x, g.const(wild(r, r.pick([[], dims[1:]])))])
    return make


def where(g):
    r = g.r
    x, dims = values(g)
    test = truth(g, x, dims)
    if r.chance(0.2):
        test = g.const(r.values(dims[1:], np.bool_))
    branch = g.node(r.pick(["Neg", "Exp", "Abs"]), [x])
    other = g.const(wild(r, r.pick([[], dims[1:]])))
    pair = [branch, r.pick([other, x])]
    if r.chance(0.3):
        pair.reverse()
    return g.node("Where", [test] + pair)


def rounding(op, **attributes):
    def make(g):
        r = g.r
        x, dims = g.input([batch(r)] + sample(r, 1, 3), np.float32,
                          scale=r.pick([1.0, 10.0, 1e6, 3e7, 1e20])), None
        if r.chance(0.3):  # halves
            x = g.node("Mul", [g.node("Round", [x]), g.const(np.asarray(0.5, np.float32))])
        given = {k: v(r) for k, v in attributes.items() if r.chance(0.7)}
        return g.node(op, [x], **given)
    return make


def arg(op):
    def make(g):
        r = g.r
        x, dims = values(g)
        rank = len(dims)
        axis = r.pick([None, 1, -1, rank - 1, 0, 7], p=[.1, .3, .3, .2, .05, .05])
        y = g.node(op, [x], axis=axis, keepdims=r.pick([None, 0, 1]),
                   select_last_index=r.pick([None, 0, 1]) if g.opset >= 12 else None)
        return g.floats(y) if r.chance(0.5) else y
    return make


def places(g, count):
    """Computed places [batch, k] below `count`."""
    r = g.r
    x = g.input([batch(r), r.whole(1, 4), count], np.float32)
    at = g.node("ArgMax", [x], axis=2, keepdims=0)
    if r.chance(0.3):
        at = g.node("Sub", [at, g.const(np.asarray(r.pick([count, 1]), np.int64))])
    return x, at


def one_hot(g):
    r = g.r
    count = r.whole(1, 5)
    _, at = places(g, count)
    depth = r.pick([count, count, count + 2, max(count - 1, 1)])
    values_ = np.asarray(r.pick([[0, 1], [0, 1], [-1.5, 2]]), np.float32)
    depth = g.const(np.asarray(depth if r.chance(0.5) else [depth], np.int64))
    return g.node("OneHot", [at, depth, g.const(values_)], axis=r.pick([None, -1, 1, 2, 0, 9]))


def gather(g):
    r = g.r
    count = r.whole(1, 5)
    _, at = places(g, count)
    kind = r.pick([np.float32, np.float32, np.int64])
    table = r.values([count] + r.pick([[], [3], [2, 2]]), kind)
    y = g.node("Gather", [g.const(table), at], axis=r.pick([None, 0, 0, 0, 1]))
    return g.floats(y) if r.chance(0.5) else y


def gather_elements(g):
    r = g.r
    count = r.whole(1, 5)
    x, at = places(g, count)
    return g.node("GatherElements", [x, g.node("Unsqueeze", [at, g.const([2], np.int64)])],
                  axis=r.pick([2, 2, -1, 1]))


def lrn(g):
    r = g.r
    x = g.input([batch(r), r.whole(1, 6)] + r.wholes(1, 4, r.pick([1, 2, 2, 3])), np.float32)
    return g.node("LRN", [x], size=r.whole(1, 5), alpha=r.pick([None, 0.5, 1e-3]),
                  beta=r.pick([None, 0.75, 0.5, 1.0, 0.6]), bias=r.pick([None, 1.0, 2.0]))


def tile(g):
    r = g.r
    x, dims = values(g)
    times = [1] + [r.pick([1, 1, 2, 3]) for _ in dims[1:]]
    if r.chance(0.05):
        times[0] = 2
    return g.node("Tile", [x, g.const(times, np.int64)])


def trilu(g):
    r = g.r
    x = g.input([batch(r)] + r.wholes(1, 4, r.pick([2, 2, 3])), np.float32)
    inputs = [x] + ([g.const(np.asarray(r.whole(-3, 3), np.int64))] if r.chance(0.6) else [])
    return g.node("Trilu", inputs, upper=r.pick([None, 0, 1]))


def resize(g):
    r = g.r
    axes = r.pick([1, 2, 2, 2, 3])
    dims = [batch(r), r.whole(1, 3)] + r.wholes(1, 6, axes)
    x = g.input(dims, np.float32)
    mode = r.pick(["nearest", "linear", "cubic", None], p=[.4, .4, .1, .1])
    inputs = [x, "", "", ""]
    if r.chance(0.5):
        scales = [1, 1] + [r.pick([1, 2, 2, 3, 0.5, 1.5, 0.6]) for _ in range(axes)]
        inputs = [x, "", g.const(np.asarray(scales, np.float32))]
    else:
        inputs[3] = g.const(dims[:2] + r.wholes(1, 9, axes), np.int64)
    return g.node("Resize", inputs, mode=mode,
                  coordinate_transformation_mode=r.pick(
                      [None, "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]),
                  nearest_mode=r.pick([None, None, "floor", "ceil", "round_prefer_ceil"]),
                  exclude_outside=r.pick([None, None, 0, 1]) if mode == "cubic" else None,
                  cubic_coeff_a=r.pick([None, -0.5]) if mode == "cubic" else None)


def to_whole(g):
    r = g.r
    x, dims = values(g)
    y = g.node("Cast", [x], to=r.pick([TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL]))
    return g.floats(y) if r.chance(0.6) else y


def log_sum_exp(g):
    r = g.r
    x, dims = values(g)
    return g.node("ReduceLogSumExp", [x] + ([g.const([r.pick([1, -1])], np.int64)]
                                            if g.opset >= 18 else []),
                  axes=None if g.opset >= 18 else [r.pick([1, -1])], keepdims=r.pick([None, 0, 1]))


OPERATORS = {
    **{op: rounding(op) for op in "Floor Ceil Round Sign Softsign".split()},
    "ThresholdedRelu": rounding("ThresholdedRelu", alpha=lambda r: float(r.pick([0.5, 1, -1, 0]))),
    **{op: logic(op) for op in "And Or Xor Not".split()},
    **{f"{op}, wild": compare(op) for op in COMPARE},
    "Where, wild": where, "ArgMax": arg("ArgMax"), "ArgMin": arg("ArgMin"), "OneHot": one_hot,
    "Gather, computed": gather, "GatherElements": gather_elements, "LRN": lrn, "Tile": tile,
    "Trilu": trilu, "Resize": resize, "Cast, whole": to_whole, "ReduceLogSumExp": log_sum_exp,
}

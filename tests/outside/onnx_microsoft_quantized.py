"""Random cases of the quantized operators of com.microsoft, for onnx_microsoft.py."""

import numpy as np
from onnx import TensorProto, helper

from onnx_microsoft_case import Case

BYTES = (np.uint8, np.int8)


def codes(r, shape, dtype):
    info = np.iinfo(dtype)
    return r.g.integers(info.min, info.max + 1, shape).astype(dtype)


def scale(c, low=0.01, high=0.06):
    return c.constant(np.float32(c.r.g.random() * (high - low) + low))


def zero(c, dtype):
    return c.constant(codes(c.r, [], dtype))


def maybe_zero(c, dtype):
    return zero(c, dtype) if c.r.chance(0.9) else ""


def trimmed(inputs):
    while inputs[-1] == "":
        inputs.pop()
    return inputs


def pairs(r, op):
    c, t = Case(r), r.pick(BYTES)
    dims = r.wholes(1, 5, r.whole(1, 3))
    other = r.pick([dims, dims[-1:], [1] * len(dims)])
    a, b = r.pick([(dims, other), (other, dims)])
    high = 0.06 if op == "QLinearAdd" else 0.02
    c.node(op, trimmed([c.input(codes(r, a, t)), scale(c), maybe_zero(c, t),
                        c.input(codes(r, b, t)), scale(c, 0.01, high), maybe_zero(c, t),
                        scale(c, 0.05, 0.2), maybe_zero(c, t)]), [t])
    return c


def unary(r, op):
    c, t = Case(r), r.pick(BYTES)
    x = codes(r, r.wholes(1, 6, r.whole(1, 4)), t)
    low, high = (0.004, 0.006) if op == "QLinearSigmoid" else (0.02, 0.05)
    # ONNX Runtime ends the process if the last zero point is left out.
    c.node(op, [c.input(x), scale(c), maybe_zero(c, t), scale(c, low, high), zero(c, t)], [t],
           alpha=r.pick([None, 0.3, 0.01]) if op == "QLinearLeakyRelu" else None)
    return c


def softmax(r):
    c, t = Case(r), r.pick(BYTES)
    x = codes(r, r.wholes(1, 6, r.whole(1, 4)), t)
    y_zero = np.asarray(0 if t == np.uint8 else -128, t)
    c.node("QLinearSoftmax", [c.input(x), scale(c), zero(c, t), c.constant(np.float32(1 / 256)),
                              c.constant(y_zero)], [t],
           axis=r.whole(-x.ndim, x.ndim - 1), opset=r.pick([11, 13]))
    return c


def concat(r):
    c, t = Case(r), r.pick(BYTES)
    dims = r.wholes(1, 4, r.whole(1, 4))
    axis = r.whole(0, len(dims) - 1)
    inputs = [scale(c), zero(c, t)]
    for _ in range(r.whole(1, 3)):
        part = list(dims)
        part[axis] = r.whole(1, 3)
        inputs += [c.input(codes(r, part, t)), scale(c), zero(c, t)]
    c.node("QLinearConcat", inputs, [t], axis=axis - r.pick([0, len(dims)]))
    return c


def where(r):
    c, t = Case(r), r.pick(BYTES)
    dims = r.wholes(1, 4, r.whole(1, 3))
    shapes = [dims, r.pick([dims, dims[-1:]]), r.pick([dims, [1]])]
    c.node("QLinearWhere", [c.input(r.values(shapes[0], np.bool_)),
                            c.input(codes(r, shapes[1], t)), scale(c), zero(c, t),
                            c.input(codes(r, shapes[2], t)), scale(c), zero(c, t), scale(c),
                            zero(c, t)], [t])
    return c


def image(r, last):
    space = r.wholes(4, 7, 2)
    n, ch = r.whole(1, 2), r.whole(1, 4)
    return [n] + space + [ch] if last else [n, ch] + space


def average_pool(r):
    c, t, last = Case(r), r.pick(BYTES), r.chance(0.5)
    taps = r.wholes(1, 3, 2)
    pads = [r.whole(0, n - 1) for n in taps + taps]
    c.node("QLinearAveragePool", trimmed([
        c.input(codes(r, image(r, last), t)), scale(c), maybe_zero(c, t), scale(c, 0.03, 0.06),
        zero(c, t)]), [t], kernel_shape=taps, pads=r.pick([None, pads]),
           strides=r.pick([None, [2, 1]]), ceil_mode=r.pick([None, 0, 1]),
           count_include_pad=r.pick([None, 0, 1]), channels_last=int(last))
    return c


def global_pool(r):
    c, t, last = Case(r), r.pick(BYTES), r.chance(0.5)
    c.node("QLinearGlobalAveragePool", [c.input(codes(r, image(r, last), t)), scale(c), zero(c, t),
                                        scale(c, 0.03, 0.06), zero(c, t)], [t],
           channels_last=int(last))
    return c


def nhwc_max_pool(r):
    c, t = Case(r), r.pick(BYTES)
    taps = r.wholes(1, 2, 2)
    pads = [r.whole(0, n - 1) for n in taps + taps]
    c.node("NhwcMaxPool", [c.input(codes(r, image(r, True), t))], [t], kernel_shape=taps,
           pads=r.pick([None, pads]), strides=r.pick([None, [2, 1]]),
           ceil_mode=r.pick([None, 0]), dilations=r.pick([None, [1, 2]]))
    return c


def conv(r):
    c, t, last = Case(r), r.pick(BYTES), r.chance(0.5)
    g, taps = r.pick([1, 1, 2]), r.whole(1, 3)
    channels, filters, size = g * r.whole(1, 2), g * r.whole(1, 3), r.whole(4, 6)
    dims = [1, size, size, channels] if last else [1, channels, size, size]
    w_type = r.pick([np.int8, t]) if t == np.uint8 else np.int8
    w_zero = c.constant(np.zeros([filters], w_type)) if r.chance(0.5) else zero(c, w_type)
    per = c.initializers[-1].dims
    w_scale = c.constant((r.g.random(list(per)) * 0.02 + 0.01).astype(np.float32))
    inputs = [c.input(codes(r, dims, t)), scale(c), zero(c, t),
              c.constant(codes(r, [filters, channels // g, taps, taps], w_type)), w_scale, w_zero,
              scale(c, 0.1, 0.3), zero(c, t)]
    if r.chance(0.5):
        inputs.append(c.constant(r.g.integers(-2000, 2000, [filters]).astype(np.int32)))
    c.node("QLinearConv", inputs, [t], group=g, kernel_shape=[taps, taps],
           strides=r.pick([None, [2, 1]]), pads=r.pick([None, [1, 0, 1, 2]]),
           channels_last=int(last))
    return c


def gemm(r):
    c = Case(r)
    ta, tb = r.whole(0, 1), r.whole(0, 1)
    m, k, n = r.wholes(1, 8, 3)
    t, w = r.pick([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    per = [n] if r.chance(0.5) else []
    b_scale = c.constant((r.g.random(per) * 0.02 + 0.01).astype(np.float32))
    inputs = [c.input(codes(r, [k, m] if ta else [m, k], t)), scale(c), zero(c, t),
              c.input(codes(r, [n, k] if tb else [k, n], w)), b_scale, c.constant(codes(r, per, w))]
    bias = r.pick([None, [n], [m, n]])
    inputs.append("" if bias is None else
                  c.constant(r.g.integers(-2000, 2000, bias).astype(np.int32)))
    out = np.float32
    if r.chance(0.6):
        inputs += [scale(c, 0.1, 0.3), zero(c, t)]
        out = t
    c.node("QGemm", trimmed(inputs), [out], transA=ta, transB=tb,
           alpha=r.pick([None, 1.0, 0.5]))
    return c


def dynamic_matmul(r):
    c = Case(r, rtol=1e-3, atol=2e-3)
    w, k, n = r.pick(BYTES), r.whole(1, 20), r.whole(1, 9)
    per = [n] if r.chance(0.5) else []
    b = c.constant if r.chance(0.6) else c.input
    inputs = [c.input(r.values(r.wholes(1, 3, r.whole(0, 2)) + [r.whole(1, 4), k])),
              b(codes(r, [k, n], w)),
              c.constant((r.g.random(per) * 0.02 + 0.01).astype(np.float32)),
              c.constant(codes(r, per, w)) if r.chance(0.6) else "",
              c.constant(r.values([n])) if r.chance(0.5) else ""]
    c.node("DynamicQuantizeMatMul", trimmed(inputs))
    return c


def integer_to_float(r):
    c = Case(r)
    t, w, k, n = r.pick(BYTES), r.pick(BYTES), r.whole(1, 20), r.whole(1, 9)
    per = [n] if r.chance(0.5) else []
    b = c.constant if r.chance(0.6) else c.input
    inputs = [c.input(codes(r, r.wholes(1, 3, r.whole(0, 2)) + [r.whole(1, 4), k], t)),
              b(codes(r, [k, n], w)), scale(c),
              c.constant((r.g.random(per) * 0.02 + 0.01).astype(np.float32)),
              zero(c, t) if r.chance(0.6) else "",
              c.constant(codes(r, per, w)) if r.chance(0.6) else "",
              c.constant(r.values([n])) if r.chance(0.5) else ""]
    c.node("MatMulIntegerToFloat", trimmed(inputs))
    return c


def integer16(r):
    c = Case(r)
    m, k, n = r.wholes(1, 6, 3)
    c.node("MatMulInteger16", [c.input(r.g.integers(-900, 900, [m, k]).astype(np.int16)),
                               c.input(r.g.integers(-900, 900, [k, n]).astype(np.int16))],
           [np.int32])
    return c


def lstm(r):
    # ONNX Runtime rounds inputs and states to 8 bits as well; Loom rounds weights alone.
    c = Case(r, rtol=0.03, atol=0.03)
    directions = r.whole(1, 2)
    t, b, i, h = r.whole(1, 4), r.whole(1, 3), r.whole(1, 6), r.whole(1, 6)
    w = r.pick(BYTES)
    per = [directions, 4 * h] if r.chance(0.4) else [directions]
    scales = lambda: c.constant((r.g.random(per) * 0.005 + 0.002).astype(np.float32))
    zeros = lambda: c.constant(np.full(per, 128 if w == np.uint8 else 0, w))
    inputs = [c.input(r.values([t, b, i])), c.constant(codes(r, [directions, i, 4 * h], w)),
              c.constant(codes(r, [directions, h, 4 * h], w)),
              c.constant(r.values([directions, 8 * h])) if r.chance(0.6) else "",
              c.input(r.g.integers(1, t + 1, [b]).astype(np.int32)) if r.chance(0.3) else "",
              c.input(r.values([directions, b, h], scale=0.5)) if r.chance(0.4) else "",
              c.input(r.values([directions, b, h], scale=0.5)) if r.chance(0.4) else "",
              c.constant(r.values([directions, 3 * h])) if r.chance(0.3) else "",
              scales(), zeros(), scales(), zeros()]
    c.node("DynamicQuantizeLSTM", inputs, [np.float32] * 3, hidden_size=h,
           direction="bidirectional" if directions == 2 else r.pick([None, "forward", "reverse"]),
           input_forget=r.pick([None, 0]), clip=r.pick([None, 2.0]))
    return c


def q_embed(r):
    c, t = Case(r, rtol=1e-3), np.uint8
    b, s, h = r.whole(1, 3), r.whole(1, 5), r.pick([4, 8])
    words, kinds = 7, 3
    ids = lambda n, shape: c.input(r.g.integers(0, n, shape).astype(np.int32))
    segments, mask = r.chance(0.6), r.chance(0.5)
    table = lambda n: c.constant(codes(r, [n, h], t))
    row = lambda: c.constant(codes(r, [h], t))
    one = lambda: scale(c)
    inputs = [ids(words, [b, s]), ids(kinds, [b, s]) if segments else "", table(words), table(s),
              table(kinds) if segments else "", row(), row(), ids(2, [b, s]) if mask else "",
              one(), one(), one() if segments else "", one(), one(), zero(c, t), zero(c, t),
              zero(c, t) if segments else "", zero(c, t), zero(c, t)]
    c.node("QEmbedLayerNormalization", inputs, [np.float32, np.int32], epsilon=r.pick([None, 0.1]))
    return c


def linear(r):
    c = Case(r)
    t = r.pick([np.uint8, np.int8, np.int16, np.uint16])
    x = r.wholes(1, 5, r.whole(1, 3))
    axis = r.whole(0, len(x) - 1)
    per = [x[axis]] if r.chance(0.5) else []
    s = c.constant((r.g.random(per) * 0.05 + 0.01).astype(np.float32))
    more = {"axis": axis} if per else {}
    z = c.constant(r.g.integers(0, 50, per).astype(t))
    if r.chance(0.5):
        c.node("QuantizeLinear", [c.input(r.values(x)), s, z], [t], **more)
    else:
        inputs = [c.input(codes(r, x, t)), s] + ([z] if r.chance(0.7) else [])
        c.node("DequantizeLinear", inputs, **more)
    return c


QUANTIZED = {
    "QLinearAdd": lambda r: pairs(r, "QLinearAdd"),
    "QLinearMul": lambda r: pairs(r, "QLinearMul"),
    "QLinearSigmoid": lambda r: unary(r, "QLinearSigmoid"),
    "QLinearLeakyRelu": lambda r: unary(r, "QLinearLeakyRelu"),
    "QLinearSoftmax": softmax,
    "QLinearConcat": concat,
    "QLinearWhere": where,
    "QLinearAveragePool": average_pool,
    "QLinearGlobalAveragePool": global_pool,
    "NhwcMaxPool": nhwc_max_pool,
    "QLinearConv": conv,
    "QGemm": gemm,
    "DynamicQuantizeMatMul": dynamic_matmul,
    "MatMulIntegerToFloat": integer_to_float,
    "MatMulInteger16": integer16,
    "DynamicQuantizeLSTM": lstm,
    "QEmbedLayerNormalization": q_embed,
    "QuantizeLinear": linear,
}

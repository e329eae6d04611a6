#!/usr/bin/env python3
"""Operators of com.microsoft, which the optimizer and the quantizers of ONNX Runtime write, in
Loom's evaluator and in ONNX Runtime: a random generator per operator.

  onnx_microsoft.py --program build/dev/tests/evaluate_runner [--count N] [--seed S] [--only OP,OP]
                    [--verbose]

A case is right when types, shapes and values are those of ONNX Runtime: floats within the tolerance
of the case, 8-bit codes within one step for one code in fifty (ties), other integers exactly. A
refusal counts as wrong, except for cases that say so. Exit status 1 if any is wrong.
"""

import argparse
import collections
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from onnx_microsoft_attention import ATTENTION
from onnx_microsoft_quantized import QUANTIZED
from onnx_microsoft_case import Case, Skip
from onnx_standard import load_values, run, save_values



def bias_gelu(r):
    c = Case(r)
    n = r.whole(1, 40)
    c.node("BiasGelu", [c.input(r.values(r.wholes(1, 4, r.whole(0, 3)) + [n])),
                        c.input(r.values([n]))])
    return c


def fast_gelu(r):
    c = Case(r, atol=2e-5)
    n = r.whole(1, 40)
    inputs = [c.input(r.values(r.wholes(1, 4, r.whole(0, 3)) + [n], scale=2.0))]
    if r.chance(0.6):
        inputs.append(c.input(r.values([n])))
    c.node("FastGelu", inputs)
    return c


def quick_gelu(r):
    c = Case(r)
    c.node("QuickGelu", [c.input(r.values(r.wholes(1, 6, r.whole(1, 4))))],
           alpha=r.pick([None, 1.0, 1.702, -0.5, 2.5]))
    return c


def gelu(r):
    c = Case(r)
    c.node("Gelu", [c.input(r.values(r.wholes(1, 6, r.whole(1, 4))))])
    return c


def skip_norm(r, simplified):
    c = Case(r)
    b, s, h = r.whole(1, 3), r.whole(1, 5), r.pick([1, 4, 8, 33])
    x = [b, s, h] if r.chance(0.7) or not simplified else [s, h]
    skips = [x] + ([[1, s, h], [s, h]] if len(x) == 3 else [])
    inputs = [c.input(r.values(x)), c.input(r.values(r.pick(skips))), c.input(r.values([h]))]
    if not simplified:
        inputs.append(c.input(r.values([h])) if r.chance(0.7) else "")
    inputs.append(c.input(r.values([h])) if r.chance(0.5) else "")
    while inputs[-1] == "":
        inputs.pop()
    outputs = [np.float32, None, None, np.float32] if r.chance(0.5) else [np.float32]
    c.node("SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization", inputs,
           outputs, epsilon=r.pick([None, 1e-5, 1e-3, 0.5]))
    return c


def simplified_norm(r):
    c = Case(r)
    x = r.wholes(1, 5, r.whole(1, 3))
    axis = r.whole(-len(x), len(x) - 1)
    outputs = [np.float32, np.float32] if r.chance(0.3) else [np.float32]
    c.node("SimplifiedLayerNormalization",
           [c.input(r.values(x)), c.input(r.values(x[axis % len(x):]))], outputs, domain="",
           axis=r.pick([axis, axis]), epsilon=r.pick([None, 1e-5, 0.1]))
    return c


def embed_norm(r):
    c = Case(r)
    b, s, h = r.whole(1, 3), r.whole(1, 6), r.pick([4, 8, 12])
    words, places, kinds = r.whole(2, 9), r.whole(s, 9), r.whole(1, 3)
    ids = lambda n, shape: c.input(r.g.integers(0, n, shape).astype(np.int32))
    segments = r.chance(0.6)
    inputs = [ids(words, [b, s]), ids(kinds, [b, s]) if segments else "",
              c.input(r.values([words, h])), c.input(r.values([places, h])),
              c.input(r.values([kinds, h])) if segments else "", c.input(r.values([h])),
              c.input(r.values([h]))]
    mask = r.chance(0.5)
    inputs.append(ids(2, [b, s]) if mask else "")
    inputs.append(ids(places, r.pick([[b, s], [1, s]])) if r.chance(0.5) else "")
    while inputs[-1] == "":
        inputs.pop()
    outputs = [np.float32, np.int32 if mask else None]
    if r.chance(0.4):
        outputs.append(np.float32)
    while outputs[-1] is None:
        outputs.pop()
    c.node("EmbedLayerNormalization", inputs, outputs, epsilon=r.pick([None, 1e-5, 0.1]))
    return c


def fused_matmul(r, op="FusedMatMul"):
    c = Case(r)
    rank = r.whole(2, 4)
    batch = r.wholes(1, 3, rank - 2)
    m, k, n = r.wholes(1, 7, 3)
    attributes = {}
    a, b = batch + [m, k], batch + [k, n]
    if rank > 2 and r.chance(0.3):
        b = [k, n]
    if r.chance(0.5):
        attributes["transA"] = 1
        a = a[:-2] + [k, m]
    if r.chance(0.5):
        attributes["transB"] = 1
        b = b[:-2] + [n, k]
    if op == "FusedMatMul" and rank > 2 and len(b) == rank and r.chance(0.3):
        if r.chance(0.7):  # [batch..., M, K] is stored as [M, batch..., K]
            attributes["transBatchA"] = 1
            a = [a[-2]] + a[:-2] + a[-1:]
        if r.chance(0.7):
            attributes["transBatchB"] = 1
            b = [b[-2]] + b[:-2] + b[-1:]
    c.node(op, [c.input(r.values(a)), c.input(r.values(b))],
           alpha=r.pick([None, 0.5, -2.0]), **attributes)
    return c


def fused_gemm(r):
    c = Case(r)
    m, k, n = r.wholes(1, 7, 3)
    ta, tb = r.whole(0, 1), r.whole(0, 1)
    inputs = [c.input(r.values([k, m] if ta else [m, k])),
              c.input(r.values([n, k] if tb else [k, n]))]
    if r.chance(0.6):
        inputs.append(c.input(r.values(r.pick([[n], [m, n], [1, n], [m, 1]]))))
    name, more = r.pick([("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("Softplus", {}),
                         ("LeakyRelu", {"activation_alpha": 0.3}), ("Softsign", {}),
                         ("Elu", {"activation_alpha": 0.7}),
                         ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
                         ("Selu", {"activation_alpha": 1.2, "activation_gamma": 0.8}),
                         ("ThresholdedRelu", {"activation_alpha": 0.4})])
    c.node("FusedGemm", inputs, transA=ta, transB=tb, alpha=r.pick([None, 0.5]),
           beta=r.pick([None, -2.0]), activation=name, **more)
    return c


def fused_conv(r):
    c = Case(r)
    g = r.pick([1, 1, 2])
    channels, filters = g * r.whole(1, 2), g * r.whole(1, 3)
    size, taps = r.whole(4, 7), r.whole(1, 3)
    x = c.input(r.values([r.whole(1, 2), channels, size, size]))
    w = c.constant(r.values([filters, channels // g, taps, taps]))
    strides, pads = r.pick([None, [2, 1]]), r.pick([None, [1, 0, 1, 2]])
    inputs = [x, w, c.constant(r.values([filters])) if r.chance(0.6) else ""]
    name, parameters = r.pick([("Relu", None), ("Tanh", None), ("Sigmoid", None),
                               ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.7]),
                               ("HardSigmoid", [0.3, 0.4])])
    common = dict(group=g, kernel_shape=[taps, taps], strides=strides, pads=pads,
                  dilations=r.pick([None, [1, 1]]))
    if r.chance(0.4):  # a sum, of the shape of the result
        c.nodes.append(helper.make_node("Conv", [x, w], ["plain"], **{
            k: v for k, v in common.items() if v is not None}))
        c.nodes.append(helper.make_node("Sin", ["plain"], ["z"]))
        inputs.append("z")
    while inputs[-1] == "":
        inputs.pop()
    c.node("FusedConv", inputs, activation=name, activation_params=parameters, **common)
    return c


def matmul_nbits(r):
    c = Case(r, rtol=1e-3, atol=1e-3)
    bits, block = r.pick([4, 4, 8, 2]), r.pick([16, 32, 64, 128])
    k, n = r.pick([r.whole(1, 70), block, 3 * block]), r.pick([1, 3, 16, 33])
    blocks = -(-k // block)
    packed = r.g.integers(0, 256, [n, blocks, block * bits // 8]).astype(np.uint8)
    scales = (r.g.random([n, blocks]) * 0.1 + 0.01).astype(np.float32)
    inputs = [c.input(r.values(r.wholes(1, 3, r.whole(0, 2)) + [r.whole(1, 4), k])),
              c.constant(packed), c.constant(scales)]
    kind = r.pick(["none", "packed", "float"])
    if kind == "packed":
        width = -(-blocks * bits // 8)
        inputs.append(c.constant(r.g.integers(0, 256, [n, width]).astype(np.uint8)))
    elif kind == "float":
        inputs.append(c.constant(r.values([n, blocks]) + np.float32(2 ** (bits - 1))))
    else:
        inputs.append("")
    inputs += ["", c.constant(r.values([n])) if r.chance(0.4) else ""]
    while inputs[-1] == "":
        inputs.pop()
    c.node("MatMulNBits", inputs, K=k, N=n, bits=bits, block_size=block,
           accuracy_level=r.pick([None, 0, 1]))
    return c


def matmul_bnb4(r):
    c = Case(r, rtol=1e-3, atol=1e-3)
    block = r.pick([16, 32, 64])
    k, n = r.pick([16, 32, 48, 64]), r.pick([1, 2, 8, 32])
    packed = r.g.integers(0, 256, [(n * k + 1) // 2]).astype(np.uint8)
    scales = (r.g.random([-(-n * k // block)]) + 0.1).astype(np.float32)
    c.node("MatMulBnb4", [c.input(r.values([r.whole(1, 4), k])), c.constant(packed),
                          c.constant(scales)], K=k, N=n, block_size=block,
           quant_type=r.whole(0, 1))
    return c


def gather_block(r):
    c = Case(r)
    rows, block = r.whole(1, 6), r.pick([16, 32])
    cols = r.pick([block, 2 * block, 3 * block])
    bits = r.pick([4, 4, 8])
    scales = (r.g.random([rows, -(-cols // block)]) * 0.1 + 0.01).astype(np.float32)
    data = r.g.integers(0, 256, [rows, cols * bits // 8]).astype(np.uint8)
    inputs = [c.constant(data),
              c.input(r.g.integers(-rows, rows, r.wholes(1, 3, r.whole(0, 2))).astype(
                  r.pick([np.int32, np.int64]))), c.constant(scales)]
    if r.chance(0.5):
        width = -(-scales.shape[1] * bits // 8)
        inputs.append(c.constant(r.g.integers(0, 256, [rows, width]).astype(np.uint8)))
    c.node("GatherBlockQuantized", inputs, block_size=block, bits=bits, gather_axis=0,
           quantize_axis=r.pick([1, -1]))
    return c


def gather_block_int4(r):
    c = Case(r)
    block = 16
    rank = r.whole(2, 3)
    dims = [r.pick([2, 3, 16, 32]) for _ in range(rank)]
    g, q = r.whole(0, rank - 1), r.whole(0, rank - 1)
    low, kind = r.pick([(-8, TensorProto.INT4), (0, TensorProto.UINT4)])
    shape = list(dims)
    shape[q] = -(-dims[q] // block)
    four = lambda d: c.tensor(helper.make_tensor(
        "", kind, d, r.g.integers(low, low + 16, d).flatten().tolist()))
    n = dims[g]
    inputs = [four(dims), c.input(r.g.integers(-n, n, r.wholes(1, 3, r.whole(0, 2)))),
              c.constant((r.g.random(shape) * 0.1 + 0.01).astype(np.float32))]
    if r.chance(0.5):
        inputs.append(four(shape))
    c.node("GatherBlockQuantized", inputs, block_size=block, gather_axis=g - r.pick([0, rank]),
           quantize_axis=q - r.pick([0, rank]))
    return c


def inverse(r):
    c = Case(r, rtol=1e-3, atol=1e-3)
    n = r.whole(1, 5)
    x = r.values(r.wholes(1, 3, r.whole(0, 2)) + [n, n]) + 4 * np.eye(n, dtype=np.float32)
    c.node("Inverse", [c.input(x.astype(np.float32))])
    return c


def ms_pad(r):
    c = Case(r)
    dims = r.wholes(3, 5, r.whole(1, 3))
    pads = np.asarray(r.wholes(-1, 2, 2 * len(dims)), np.int64)
    mode = r.pick([None, "constant", "reflect", "edge"])
    if mode in ("reflect", "edge"):
        pads = np.abs(pads)
    if r.chance(0.3):
        pads = pads[None]
    inputs = [c.input(r.values(dims)), c.constant(pads)]
    if mode in (None, "constant") and r.chance(0.5):
        inputs.append(c.input(r.values(r.pick([[], [1]]))))
    c.node("Pad", inputs, mode=mode)
    return c


def ms_range(r):
    c = Case(r)
    dtype = r.pick([np.float32, np.int32, np.int64])
    shape = r.pick([(), (1,)])
    numbers = [np.full(shape, v).astype(dtype)
               for v in (r.whole(-3, 3), r.whole(4, 9), r.whole(1, 3))]
    c.node("Range", [c.input(v) for v in (numbers if r.chance(0.6) else numbers[:2])], [dtype])
    return c


def plain_kin(r):
    """Operators that are one of the standard under another name."""
    c = Case(r)
    kind = r.pick(["ExpandDims", "Trilu", "GatherND", "Unique", "GridSample"])
    if kind == "ExpandDims":
        x = r.values(r.wholes(1, 4, r.whole(1, 3)))
        c.node(kind, [c.input(x), c.constant(np.int32(r.whole(-x.ndim - 1, x.ndim)))])
    elif kind == "Trilu":
        k = [c.input(np.int64(r.whole(-2, 2)))] if r.chance(0.6) else []
        c.node(kind, [c.input(r.values(r.wholes(1, 5, r.whole(2, 3))))] + k,
               upper=r.pick([None, 0, 1]))
    elif kind == "GatherND":
        x = r.values([3, 4, 2])
        depth = r.whole(1, 3)
        at = np.stack([r.g.integers(0, n, [2, 3]) for n in x.shape[:depth]], axis=-1)
        c.node(kind, [c.input(x), c.input(at.astype(np.int64))])
    elif kind == "Unique":
        x = r.g.integers(0, 5, [r.whole(1, 12)]).astype(np.float32)
        c.node(kind, [c.input(x)], [np.float32, np.int64, np.int64])
    else:
        x, grid = r.values([2, 2, 4, 5]), (r.g.random([2, 3, 3, 2]) * 2.4 - 1.2).astype(np.float32)
        c.node(kind, [c.input(x), c.input(grid)],
               mode=r.pick([None, "bilinear", "nearest", "bicubic"]),
               padding_mode=r.pick([None, "zeros", "border", "reflection"]),
               align_corners=r.pick([None, 0, 1]))
    return c


def cdist(r):
    c = Case(r)
    n = r.whole(1, 6)
    c.node("CDist", [c.input(r.values([r.whole(1, 5), n])), c.input(r.values([r.whole(1, 5), n]))],
           metric=r.pick([None, "sqeuclidean", "euclidean"]))
    return c


OPERATORS = {
    "BiasGelu": bias_gelu,
    "FastGelu": fast_gelu,
    "QuickGelu": quick_gelu,
    "Gelu": gelu,
    "SkipLayerNormalization": lambda r: skip_norm(r, False),
    "SkipSimplifiedLayerNormalization": lambda r: skip_norm(r, True),
    "SimplifiedLayerNormalization": simplified_norm,
    "EmbedLayerNormalization": embed_norm,
    "FusedMatMul": fused_matmul,
    "TransposeMatMul": lambda r: fused_matmul(r, "TransposeMatMul"),
    "FusedGemm": fused_gemm,
    "FusedConv": fused_conv,
    "MatMulNBits": matmul_nbits,
    "MatMulBnb4": matmul_bnb4,
    "GatherBlockQuantized": gather_block,
    "GatherBlockQuantized4": gather_block_int4,
    "Inverse": inverse,
    "Pad": ms_pad,
    "Range": ms_range,
    "kin": plain_kin,
    "CDist": cdist,
    **ATTENTION,
    **QUANTIZED,
}


def same(got, want, c):
    """The error of a value; empty if there is none."""
    if got is None or got.shape != want.shape:
        return f"shape {None if got is None else got.shape}, not {want.shape}"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, not {want.dtype}"
    if want.dtype in (np.uint8, np.int8):
        off = np.abs(got.astype(int) - want.astype(int))
        few = max(1, want.size // 50)
        return "" if off.size == 0 or (off.max() <= 1 and (off > 0).sum() <= few) else \
            f"{(off > 0).sum()} of {off.size} codes differ, by {off.max()}"
    if want.dtype.kind in "iub":
        return "" if np.array_equal(got, want) else "other integers"
    a, b = got.astype(np.float64), want.astype(np.float64)
    if np.allclose(a, b, rtol=c.rtol, atol=c.atol * max(1.0, c.scale(b)), equal_nan=True):
        return ""
    return f"off by {np.nanmax(np.abs(a - b)):.3g} of {np.nanmax(np.abs(b)):.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=4, help="cases of each operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true", help="a line per operator")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    names = [n for n in OPERATORS if not args.only or n in args.only.split(",")]
    counts, broken = collections.defaultdict(collections.Counter), 0
    with tempfile.TemporaryDirectory() as folder:
        jobs, known = [], []
        for name in names:
            for i in range(args.count):
                try:
                    c = Case.drawn(OPERATORS[name], name, args.seed, i)
                    want = c.reference()
                except Skip as why:
                    counts[name]["skipped"] += 1
                    if args.verbose:
                        print(f"skipped: {name} {i}: {why}")
                    continue
                path = os.path.join(folder, f"{len(jobs)}")
                onnx.save(c.model(), path + ".onnx")
                assert save_values([v for _, v in c.inputs], path + ".in")
                jobs.append(path)
                known.append((name, i, c, want))
        for path, (name, i, c, want), answer in zip(jobs, known, run(args.program, jobs)):
            why = answer
            if answer == "ok":
                got = load_values(path + ".out")
                why = next((w for g, v in zip(got, want) if (w := same(g, v, c))), "")
            counts[name]["wrong" if why else "right"] += 1
            if why:
                broken += 1
                print(f"wrong: {name} {i}: {c.said()}: {why}")
    for name in names if args.verbose else []:
        print(name, dict(counts[name]))
    total = collections.Counter()
    for n in counts.values():
        total.update(n)
    print(f"{total['right']} passed, {total['wrong']} failed, {total['skipped']} skipped")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Random networks of layers that Loom writes as ONNX, run in ONNX Runtime and compared with Loom.
These are layers of Loom that do not result from importing an ONNX file (onnx_random.py has the
others).

  export LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python
  tests/outside/onnx_layers.py --count 300

The last line counts them. Exit status 1 when a value differs; 77 when numpy or onnxruntime is not
there.
"""
import argparse
import json
import random
import sys

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    print(f"onnx_layers: {error}", file=sys.stderr)
    sys.exit(77)

import loom


def per_axis(r, low, high, axes):
    return [r.randint(low, high) for _ in range(axes)]


def pool(r, shape):
    axes = len(shape) - 1
    kind = r.choice(("max", "average", "lp"))
    layer = {"type": "Pool", "kind": kind}
    if kind == "lp":
        layer["p"] = r.choice((1, 2))
    if r.random() < 0.4:
        return {**layer, "output": [r.randint(1, n) for n in shape[1:]]}
    kernel = [r.randint(1, min(3, n)) for n in shape[1:]]
    layer.update(kernel=kernel, stride=per_axis(r, 1, 3, axes), ceil=r.random() < 0.5,
                 padding=[r.randint(0, k - 1) for k in kernel + kernel])
    if kind == "average":
        layer["include_padding"] = r.random() < 0.5
    return layer


def upsample(r, shape):
    layer = {"type": "Upsample", "mode": r.choice(("nearest", "linear"))}
    if layer["mode"] == "linear":
        layer["align_corners"] = r.random() < 0.5
    if r.random() < 0.5:
        return {**layer, "factor": per_axis(r, 1, 3, len(shape) - 1)}
    return {**layer, "output": per_axis(r, 1, 9, len(shape) - 1)}


def pad(r, shape):
    mode = r.choice(("constant", "reflect", "edge", "wrap"))
    most = [n - 1 if mode == "reflect" else n for n in shape[1:]]
    layer = {"type": "Pad", "mode": mode, "before": [r.randint(0, m) for m in most],
             "after": [r.randint(0, m) for m in most]}
    return {**layer, "value": r.uniform(-2, 2)} if mode == "constant" else layer


def shuffle(r, shape):
    return {"type": "PixelShuffle", "factor": r.choice((2, 3)), "inverse": r.random() < 0.5}


def norm(r, shape):
    layer = {"type": r.choice(("GroupNorm", "InstanceNorm")), "channels": shape[0],
             "affine": r.random() < 0.5, "eps": r.choice((1e-5, 1e-2))}
    if layer["type"] == "GroupNorm":
        layer["groups"] = r.choice([g for g in range(1, shape[0] + 1) if shape[0] % g == 0])
    return layer


def permute(r, shape):
    return {"type": "Permute", "axes": r.sample(range(len(shape)), len(shape))}


def reduce(r, shape):
    axes = sorted(r.sample(range(1, len(shape) + 1), r.randint(1, len(shape))))
    return {"type": "Reduce", "axes": axes, "keep": r.random() < 0.5,
            "function": r.choice(("sum", "mean", "max", "min", "sum_squares", "l1", "l2"))}


def sequence_block(r, steps, width):
    heads = r.choice([h for h in range(1, width + 1) if width % h == 0])
    cross = {"type": "CrossAttention", "width": width, "context": width, "heads": heads}
    recurrent = {"type": "RecurrentStack", "kind": r.choice(("rnn", "lstm", "gru")), "in": width,
                 "hidden": r.randint(1, 4), "layers": r.randint(1, 2),
                 "bidirectional": r.random() < 0.5, "return_sequence": r.random() < 0.5}
    return r.choice((
        {"type": "Positions", "length": steps, "width": width,
         "kind": r.choice(("learned", "sinusoidal"))},
        {"type": "BiasedAttention", "width": width, "heads": heads, "length": steps,
         "bias": r.choice(("alibi", "relative", "none")), "causal": r.random() < 0.5},
        {"type": "Graph", "nodes": [{**cross, "from": ["input", "input"]}]},
        recurrent,
        {"type": "WeightNormDense", "in": width, "out": r.randint(1, 5), "activation": "tanh"},
        {"type": "Mamba", "width": width, "state": r.randint(1, 4), "expand": r.randint(1, 2),
         "kernel": r.randint(1, 4), "rank": r.randint(1, 3)},
    ))


def block(r, shape):
    axes = len(shape) - 1
    if axes == 1 and r.random() < 0.7:
        return sequence_block(r, *shape)
    if r.random() < 0.5:
        return {"type": "SqueezeExcite", "channels": shape[0], "hidden": r.randint(1, 4),
                "axes": axes}
    return {"type": "SeparableConv", "channels": shape[0], "filters": r.randint(1, 5),
            "axes": axes, "kernel": per_axis(r, 1, 3, axes), "stride": per_axis(r, 1, 2, axes),
            "padding": per_axis(r, 0, 2, axes), "activation": "tanh"}


LAYERS = (pool, upsample, pad, shuffle, norm, permute, reduce, block, block, block)


def drawn(r):
    """A network of one layer, as its description, and the shape of a sample; None: it has none."""
    make = r.choice(LAYERS)
    axes = r.randint(1, 2) if make is shuffle else r.randint(1, 3)
    shape = [r.choice((1, 2, 4, 6, 9))] + per_axis(r, 2, 6, axes)
    layer = make(r, shape)
    try:
        text = json.dumps({"loom": 1, "input": shape, "layers": [layer]})
        net = loom.Network.load(text.encode(), name="net.json")
    except loom.LoomError:
        return layer, shape, None  # a window without room, extents that do not divide
    for name, extents, _ in net.parameters():
        # Gains of 1 and biases of 0 would hide a swap.
        net.set_parameter(name, np.array([r.gauss(0, 1) for _ in range(int(np.prod(extents)))],
                                         np.float32).reshape(extents))
    return layer, shape, net


def difference(r, net, shape):
    x = np.random.default_rng(r.randint(0, 1 << 30)).normal(0, 1, [3, *shape]).astype(np.float32)
    ours = np.asarray(net.predict(x))
    session = onnxruntime.InferenceSession(net.save_bytes("onnx"),
                                           providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"input": x})[0]
    if ours.size != theirs.size:
        return f"{theirs.shape}, must be {ours.shape}"
    off = np.abs(ours.reshape(-1) - theirs.reshape(-1)).max(initial=0)
    return "" if off <= 2e-5 * max(1.0, np.abs(ours).max(initial=0)) else f"off by {off}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    passed = failed = none = 0
    for seed in range(args.seed * 100000, args.seed * 100000 + args.count):
        r = random.Random(seed)
        layer, shape, net = drawn(r)
        if net is None:
            none += 1
            continue
        try:
            why = difference(r, net, shape)
        except Exception as error:  # pylint: disable=broad-except
            why = str(error)[:300]
        if why:
            print(f"WRONG {seed}: {layer} of {shape}: {why}")
        failed += bool(why)
        passed += not why
    if passed < args.count / 2:
        print(f"{none} of {args.count} are not a network: too few were compared")
        failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

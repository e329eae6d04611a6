"""Random networks of Loom: layers of all kinds with fields away from their defaults, by a seed.

network(seed) draws a kind of input and some layers that fit each other. They are in a row, in
parallel, in a Graph, or linked over the grid.
"""

import random

import loom
import numpy as np

ACTIVATIONS = ("linear", "relu", "leaky_relu", "relu2", "silu", "gelu_tanh", "gelu_erf", "tanh",
               "sigmoid", "mish", "softplus", "elu", "hard_swish")  # fmt: skip


class Draw(random.Random):
    def maybe(self, share=0.5):
        return self.random() < share

    def act(self):
        return self.choice(ACTIVATIONS)

    def list(self, low, high, axes):
        return [self.randint(low, high) for _ in range(self.choice((1, axes)))]


def dense(d, shape):
    return {"type": "Dense", "in": shape[-1], "out": d.randint(1, 6), "bias": d.maybe(),
            "activation": d.act(), "soft_cap": d.choice((0, 2.5))}  # fmt: skip


def whole(d, shape):
    return {"type": "Dense", "in": int(np.prod(shape)), "out": d.randint(1, 6)}


def swiglu(d, shape):
    return {"type": "SwiGLU", "width": shape[-1], "inner": d.randint(1, 7), "bias": d.maybe(),
            "activation": d.act(), "sub_norm": d.maybe(), "sub_norm_eps": 0.01}  # fmt: skip


def norm(d, shape):
    kind = d.choice(("RMSNorm", "LayerNorm"))
    return {"type": kind, "width": shape[-1], "eps": d.choice((1e-6, 0.1))}


def softmax(d, shape):
    n, variant = shape[-1], d.choice(("standard", "grid", "hierarchical", "temperature", "gumbel",
                                      "masked", "sparse", "adaptive", "mixture", "entmax"))
    out = {"type": "Softmax", "variant": variant, "temperature": d.choice((1, 0.5, 3))}
    if variant == "grid" and n % 2 == 0 and d.maybe():
        out.update(rows=2, cols=n // 2)
    if variant == "hierarchical":
        out["levels"] = d.choice(([2, n // 2], [n], [2, 2], [2, 1, 2]))
    if variant == "entmax":
        out["alpha"] = d.choice((1, 1.5, 2, 1.3))
    if variant == "masked":
        out["mask"] = [1] + [d.randint(0, 1) for _ in range(n - 1)]
    if variant == "gumbel":
        out["hard"] = d.maybe()
    if variant == "adaptive":
        out.update(kappa=d.choice((1, 4.0)), target_entropy=d.random())
    if variant == "mixture":
        rows = d.randint(1, 3)
        out.update(rows=rows, cols=max(1, d.choice((n // rows, (n - rows) // rows))))
    return out


def unary(d, shape):
    more = ("exp", "neg", "abs", "square", "step")
    return {"type": "Unary", "function": d.choice(more + ACTIVATIONS)}


def kmeans(d, shape):
    return {"type": "KMeans", "clusters": d.randint(1, 4), "width": shape[-1],
            "temperature": d.choice((1, 2.0)), "mode": d.choice(("probabilities", "features")),
            "activation": d.act()}  # fmt: skip


def dropout(d, shape):
    form = d.choice(("elementwise", "alpha") + (("channel",) if len(shape) > 1 else ()))
    return {"type": "Dropout", "rate": 0.3, "form": form}


def residual(d, shape):
    return {"type": "Residual", "children": [
        {"type": "Dense", "in": shape[-1], "out": 5, "activation": d.act()},
        {"type": "Dense", "in": 5, "out": shape[-1]}]}  # fmt: skip


def bare_residual(d, shape):
    return {"type": "Sequential", "children": [
        {"type": "Dense", "in": shape[-1], "out": shape[-1], "activation": d.act()},
        {"type": "Residual", "disabled": d.maybe(0.2)}, norm(d, shape)]}  # fmt: skip


def parallel(d, shape):
    combine = d.choice(("concat", "add", "avg", "grid_scatter", "filter", "mixed"))
    count, width = d.randint(1, 4), d.randint(1, 4)
    flat = len(shape) == 1
    children = [{"type": "Dense", "in": shape[-1], "out": width, "activation": d.act()}
                for _ in range(count)]  # fmt: skip
    if flat and d.maybe(0.3):
        children[0] = {"type": "SwiGLU", "width": shape[-1], "inner": 3}
    out = {"type": "Parallel", "combine": combine, "children": children}
    if combine == "grid_scatter" and d.maybe(0.7):
        cells = d.sample([(r, c) for r in range(2) for c in range(3)], count)
        out.update(rows=2, cols=3, targets=[n for cell in cells for n in cell])
    if combine == "filter":
        size = int(np.prod(shape))
        children.append({"type": "Dense", "in": size, "out": count})
        out.update(top_k=d.randint(0, count))
    return out


def graph(d, shape):
    width = d.randint(1, 5)
    def layer(w):
        return {"type": "Dense", "in": shape[-1], "out": w, "activation": d.act()}
    nodes = [{"name": "a", "from": ["input"], **layer(width)},
             {"name": "b", "from": ["input"], **layer(width)},
             {"name": "c", "from": ["a", "b"], "type": "Binary",
              "function": d.choice(("add", "sub", "mul", "max", "min"))}]  # fmt: skip
    last = "c"
    if d.maybe():
        nodes.append({"name": "k", "from": [], "type": "Constant", "shape": [1, width],
                      "trained": d.maybe()})  # fmt: skip
        nodes.append({"name": "d", "from": [last, "k"], "type": "Binary", "function": "mul"})
        last = "d"
    if d.maybe():
        nodes.append({"name": "e", "from": ["a", last], "type": "Concat", "axis": -1})
        last = "e"
    if d.maybe():
        nodes.append({"name": "s", "from": ["input"], "shared_with": "a", **nodes[0]})
        nodes[-1].update(name="s")
        nodes.append({"name": "t", "from": [last, "s"], "type": "Concat", "axis": -1})
        last = "t"
    if d.maybe(0.3):
        port = {"type": "Input", "input": d.choice(("more", "class")), "shape": [width]}
        nodes.append({"name": "i", "from": ["input"], **port})
        if len(shape) == 1:
            nodes.append({"name": "j", "from": [last, "i"], "type": "Concat", "axis": -1})
            last = "j"
    outputs = [last] + (["a"] if d.maybe(0.2) else [])
    return {"type": "Graph", "inputs": ["input"], "nodes": nodes, "outputs": outputs}


def moves(d, shape):
    rank = len(shape)
    kind = d.randrange(6)
    if kind == 0:
        return {"type": "Flatten", "first": d.randint(1, max(1, rank))}
    if kind == 1:
        axes = list(range(rank))
        d.shuffle(axes)
        return {"type": "Permute", "axes": axes}
    if kind == 2:
        size = int(np.prod(shape))
        parts = [n for n in range(1, size + 1) if size % n == 0]
        first = d.choice(parts)
        return {"type": "Reshape", "shape": d.choice(([first, size // first], [-1], [first, -1]))}
    if kind == 3:
        mode = d.choice(("constant", "reflect", "edge", "wrap"))
        most = min(2, min(shape) - 1)
        ends = [[d.randint(0, most) for _ in range(rank)] for _ in range(2)]
        return {"type": "Pad", "before": ends[0], "after": ends[1], "mode": mode, "value": 0.5}
    if kind == 4:
        axis = d.randint(1, rank)
        step = d.choice((1, 2, -1))
        first, last = (0, d.choice((shape[axis - 1], -1))) if step > 0 else (-1, -100)
        return {"type": "Slice", "starts": [first], "ends": [last], "axes": [axis], "steps": [step]}
    function = d.choice(("sum", "mean", "max", "min", "sum_squares", "l1", "l2"))
    axes = d.choice(([], [d.randint(1, rank)], [-1]))
    return {"type": "Reduce", "function": function, "axes": axes, "keep": d.maybe()}


def attention(d, shape):
    heads = d.choice((1, 2, 4))
    dim = d.choice((2, 4, 6))
    out = {"type": "MultiHeadAttention", "width": shape[-1], "heads": heads,
           "kv_heads": d.choice([k for k in (1, 2, 4) if heads % k == 0]), "head_dim": dim,
           "bias": d.maybe(), "out_bias": d.maybe(), "qk_norm": d.maybe(0.3), "qk_norm_eps": 0.01,
           "causal": d.maybe(), "window": d.choice((0, 0, 2)), "rope": d.maybe(),
           "scale": d.choice((0, 0.3)), "soft_cap": d.choice((0, 3.0)), "sub_norm": d.maybe(0.3),
           "sub_norm_eps": 0.01}  # fmt: skip
    if out["rope"]:
        out.update(rope_theta=d.choice((10000.0, 50.0)), rope_width=d.choice((0, 2)),
                   rope_scaling=d.choice(("", "linear", "llama3")), rope_factor=d.choice((1, 4.0)),
                   rope_original=d.choice((8, 8192)))  # fmt: skip
    return out


def recurrent(d, shape):
    kind = d.choice(("RNN", "LSTM", "GRU"))
    out = {"type": kind, "in": shape[-1], "hidden": d.randint(1, 5), "return_sequence": d.maybe()}
    if kind == "RNN":
        out["activation"] = d.choice(("tanh", "relu", "sigmoid", "elu", "softplus", "linear"))
    if kind != "GRU":
        out["state_bias"] = d.maybe()
    return out


def positions_of(d, shape):
    return len(shape) - 1


def conv(d, shape):
    axes = positions_of(d, shape)
    groups = d.choice([g for g in range(1, shape[0] + 1) if shape[0] % g == 0])
    out = {"type": f"CNN{axes}", "channels": shape[0], "filters": groups * d.randint(1, 3),
           "kernel": d.list(1, 3, axes), "stride": d.list(1, 2, axes),
           "padding": d.list(0, 2, axes), "dilation": d.list(1, 2, axes), "groups": groups,
           "bias": d.maybe(), "activation": d.act()}  # fmt: skip
    if d.maybe(0.3):
        out["type"] = f"ConvTransposed{axes}D"
        out["output_padding"] = d.list(0, 1, axes)
    return out


def map_norm(d, shape):
    kind = d.choice(("BatchNorm", "GroupNorm", "InstanceNorm"))
    out = {"type": kind, "channels": shape[0], "eps": d.choice((1e-5, 0.1)), "affine": d.maybe()}
    if kind == "GroupNorm":
        out["groups"] = d.choice([g for g in range(1, shape[0] + 1) if shape[0] % g == 0])
    if kind == "BatchNorm":
        out["momentum"] = 0.3
    return out


def pool(d, shape):
    axes = positions_of(d, shape)
    out = {"type": "Pool", "kind": d.choice(("max", "average", "lp")), "p": d.choice((1, 2))}
    if d.maybe(0.3):
        return {**out, "output": d.list(1, 3, axes)}
    return {**out, "kernel": d.list(1, 3, axes), "stride": d.list(0, 3, axes),
            "padding": [d.randint(0, 1) for _ in range(d.choice((1, axes, 2 * axes)))],
            "dilation": d.list(1, 2, axes), "ceil": d.maybe(),
            "include_padding": d.maybe()}  # fmt: skip


def upsample(d, shape):
    axes = positions_of(d, shape)
    out = {"type": "Upsample", "mode": d.choice(("nearest", "linear")), "align_corners": d.maybe()}
    if d.maybe():
        return {**out, "output": d.list(1, 7, axes)}
    return {**out, "factor": d.list(1, 3, axes)}


def shuffle(d, shape):
    return {"type": "PixelShuffle", "factor": 2, "inverse": d.maybe()}


def conv_lstm(d, shape):
    return {"type": "ConvLSTM", "channels": shape[1], "filters": d.randint(1, 3),
            "kernel": d.choice(([3], [1, 3])), "return_sequence": d.maybe()}  # fmt: skip


def embedding(d, vocab, time):
    return {"type": "Embedding", "vocab": vocab, "width": d.choice((2, 4, 6)),
            "padding_id": d.choice((-1, 1)), "activation": d.act(), "sparse": d.maybe(0.2),
            "scale": d.choice((1, 2.0)), "positions": d.choice((0, time, time + 2))}  # fmt: skip


ROWS = (dense, dense, swiglu, norm, softmax, unary, kmeans, dropout, residual, bare_residual,
        parallel, parallel, graph, moves)  # fmt: skip
SEQUENCES = ROWS + (attention, attention, recurrent, recurrent, whole)
MAPS = (conv, conv, conv, map_norm, map_norm, pool, pool, upsample, shuffle, dropout, moves, unary,
        whole)  # fmt: skip


def made(layers, shape, seed):
    return loom.Network.from_json(
        {"loom": 1, "input": list(shape), "layers": layers}, seed=seed
    )


def network(seed):
    """A network, and whether its input is ids below that number."""
    d = Draw(seed)
    kind = d.choice(("row", "row", "sequence", "sequence", "ids", "map", "map", "film"))
    layers, vocab = [], 0
    if kind == "row":
        shape, table = (d.randint(1, 8),), ROWS
    elif kind == "film":
        shape, table = (d.randint(1, 3), d.randint(1, 3), d.randint(3, 5), d.randint(3, 5)), ()
        layers = [conv_lstm(d, shape)]
    elif kind == "map":
        axes = d.choice((1, 2, 2, 3))
        shape, table = (d.choice((1, 2, 4, 8)), *(d.randint(3, 7) for _ in range(axes))), MAPS
    else:
        shape, table = (d.randint(1, 5), d.choice((2, 4, 6))), SEQUENCES
    if kind == "ids":
        vocab, shape = d.randint(2, 9), shape[:1]
        layers = [embedding(d, vocab, shape[0])]
    net = made(layers, shape, seed) if layers else None
    for _ in range(d.randint(1, 5)):
        now = net.info["output"] if net is not None else shape
        options = table if len(now) == len(shape) + (kind == "ids") else ROWS
        if not now:
            break
        layer = d.choice(options or ROWS)(d, now)
        try:
            net = made([*layers, layer], shape, seed)
            layers.append(layer)
        except loom.LoomError:
            continue
    if net is None:
        layers = [dense(d, shape)]
    return shaken(linked(d, layers, shape, seed), seed), vocab


def linked(d, layers, shape, seed):
    """The row, now and then as a grid with a layer that reads an earlier one."""
    net = made(layers, shape, seed)
    if not d.maybe(0.25):
        return net
    import json

    text = json.loads(net.json())
    cells = text["cells"]
    if len(cells) > 1:
        cells[-1]["link"] = {"from": d.choice(cells[:-1])["at"], "feedback": d.maybe(0.1)}
    if d.maybe(0.4):
        cells.append({**cells[-1], "at": [0, 0, len(cells), 0], "shared_with": cells[-1]["at"]})
        text["grid"][2] += 1
    try:
        return loom.Network.from_json(text, seed=seed)
    except loom.LoomError:
        return net


def shaken(net, seed):
    """With other parameters than it began with, so that no norm is 1 and no bias 0."""
    rng = np.random.default_rng(seed)
    for name, shape, _ in net.parameters():
        values = net.parameter(name)
        moved = values + 0.2 * rng.standard_normal(values.shape).astype(np.float32)
        net.set_parameter(name, np.abs(moved) + 0.1 if name.endswith("running_var") else moved)
    return net


def inputs_of(net, seed, samples=3):
    """Random inputs by name."""
    rng, out = np.random.default_rng(seed), {}
    for port in net.inputs:
        shape = (samples, *port.shape) if port.batched else port.shape
        if port.ids:
            out[port.name] = rng.integers(0, port.ids, shape).astype(np.int32)
        else:
            out[port.name] = rng.standard_normal(shape).astype(np.float32)
    return out

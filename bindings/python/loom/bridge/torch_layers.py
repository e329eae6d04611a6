"""Layers of rows and sequences in PyTorch; containers and Graphs."""

import math
import warnings
from typing import Any, Dict, List, Optional

import numpy as np

from .torch_free import Builder, Layer, Value, rule

# ---- functions of single numbers -----------------------------------------------------------------


def activate(b: Builder, c: Layer, x: Value, function: str) -> Value:
    f = b.functions
    if function == "linear":
        return x
    if function == "relu2":
        return b(b.torch.square, b(f.relu, x))
    plain = {"leaky_relu": f.leaky_relu, "elu": f.elu, "gelu_erf": f.gelu, "relu": f.relu,
             "silu": f.silu, "tanh": b.torch.tanh, "sigmoid": b.torch.sigmoid, "mish": f.mish,
             "softplus": f.softplus, "hard_swish": f.hardswish}  # fmt: skip
    if function == "gelu_tanh":
        return b(f.gelu, x, approximate="tanh")
    if function not in plain:
        raise c.refuse(f"PyTorch has no function '{function}'")
    return b(plain[function], x)


@rule("Unary")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t, function = b.torch, c["function"]
    plain = {"exp": t.exp, "log": t.log, "sqrt": t.sqrt, "neg": t.neg, "abs": t.abs,
             "square": t.square, "reciprocal": t.reciprocal}  # fmt: skip
    if function == "step":
        return b(t.Tensor.type_as, b(t.ge, xs[0], 0), xs[0])
    return b(plain[function], xs[0]) if function in plain else activate(b, c, xs[0], function)


@rule("Binary")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t = b.torch
    functions = {"add": t.add, "sub": t.sub, "mul": t.mul, "div": t.div, "max": t.maximum,
                 "min": t.minimum}  # fmt: skip
    y, function = xs[0], functions[c["function"]]
    for x in xs[1:]:
        y = b(function, y, x)
    return y


def soft_cap(b: Builder, x: Value, cap: float) -> Value:
    if cap == 0:
        return x
    return b(b.torch.mul, b(b.torch.tanh, b(b.torch.div, x, cap)), cap)


# ---- products and norms --------------------------------------------------------------------------


def product(b: Builder, c: Layer, x: Value, weight: str, bias: str, biased: bool) -> Value:
    return b(b.functions.linear, x, c.parameter(weight), c.parameter(bias) if biased else None)


@rule("Dense")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    c.skip("out")  # the weight has it
    x = xs[0]
    if len(x.shape) > 2 and x.shape[-1] != c["in"]:
        x = b.reshape(x, c["in"])
    c.skip("in")
    y = activate(b, c, product(b, c, x, "weight", "bias", c["bias"]), c["activation"])
    return soft_cap(b, y, c["soft_cap"])


def rms(b: Builder, x: Value, gamma: Value, eps: float) -> Value:
    t = b.torch
    mean = b(t.mean, b(t.square, x), -1, keepdim=True)
    return b(t.mul, b(t.div, x, b(t.sqrt, b(t.add, mean, eps))), gamma)


@rule("RMSNorm")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    c.skip("width")
    return rms(b, xs[0], c.parameter("gamma"), c["eps"])


@rule("LayerNorm")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    scale, shift = c.parameter("gamma"), c.parameter("beta")
    return b(b.functions.layer_norm, xs[0], [c["width"]], scale, shift, c["eps"])


@rule("SwiGLU")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    c.skip("width", "inner")
    biased = c["bias"]
    gate = product(b, c, xs[0], "gate", "gate_bias", biased)
    up = product(b, c, xs[0], "up", "up_bias", biased)
    y = b(b.torch.mul, activate(b, c, gate, c["activation"]), up)
    if c["sub_norm"]:
        y = rms(b, y, c.parameter("sub_norm"), c["sub_norm_eps"])
    c.skip("sub_norm_eps")
    return product(b, c, y, "down", "down_bias", biased)


@rule("MatMul")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t = b.torch
    turned = [
        b(t.transpose, x, -1, -2) if c[field] else x
        for x, field in zip(xs, ("transpose_a", "transpose_b"))
    ]
    return b(t.matmul, *turned)


@rule("Embedding")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x = xs[0]
    c.skip("vocab")
    if len(x.shape) != 2:
        x = b.reshape(x)
    padding = c["padding_id"] if c["padding_id"] >= 0 else None
    weight = c.parameter("weight")
    y = b(b.functions.embedding, x, weight, padding, sparse=bool(c["sparse"]))
    if c["scale"] != 1:
        y = b(b.torch.mul, y, c["scale"])
    if c["positions"] > 0:
        if len(x.shape) != 2 or x.shape[1] > c["positions"]:
            raise c.refuse_field("positions", f"ids are {x.shape}; they must be [batch, time]")
        rows = slice(None, x.shape[1])
        y = b(b.torch.add, y, b(b.torch.Tensor.__getitem__, c.parameter("positions"), rows))
    c.skip("width")
    return activate(b, c, y, c["activation"])


@rule("KMeans")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t = b.torch
    c.skip("clusters", "width")
    centres = c.parameter("centres")
    apart = b(t.sub, b(t.unsqueeze, xs[0], -2), centres)
    squares = b(t.sum, b(t.square, apart), -1)
    y = b(t.softmax, b(t.mul, squares, -0.5 / c["temperature"] ** 2), -1)
    if c["mode"] == "features":
        y = b(t.matmul, y, centres)
    return activate(b, c, y, c["activation"])


@rule("SpectralNorm")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    made = getattr(b.torch.nn.utils.parametrizations, "_SpectralNorm", None)
    if made is None:
        raise c.refuse("this PyTorch has no form for this kind of layer")
    weight = b.torch.ones(c["rows"], c["cols"])
    norm = made(weight, c["iterations"], 0, c["eps"])
    y = b.module(c, norm, [xs[0]], {"_u": "u", "_v": "v"})
    for name in ("_u", "_v"):  # of length 1, as outside of training they are made to be
        vector = getattr(norm, name)
        vector.copy_(b.functions.normalize(vector, dim=0, eps=c["eps"]))
    with b.torch.no_grad():
        return Value(y.node, norm(xs[0].shown))


# ---- attention -----------------------------------------------------------------------------------


def _frequency(c: Layer, j: int, width: int) -> float:
    plain = math.exp(-2.0 * j / width * math.log(c["rope_theta"]))
    scaling, factor = c["rope_scaling"], float(c["rope_factor"])
    if scaling not in ("", "linear", "llama3"):
        raise c.refuse_field("rope_scaling", "it has no form in PyTorch")
    if scaling == "linear":
        return plain / factor
    low, high, original = (float(c[f"rope_{n}"]) for n in ("low_freq", "high_freq", "original"))
    if scaling != "llama3":
        return plain
    length = 2 * math.pi / plain
    if length < original / high:
        return plain
    if length > original / low:
        return plain / factor
    smooth = (original / length - low) / (high - low)
    return (1 - smooth) * plain / factor + smooth * plain


def _rotated(b: Builder, c: Layer, x: Value, time: int) -> Value:
    """The halves (a, b) of what rotates of each head to (a cos - b sin, a sin + b cos)."""
    t, dim = b.torch, x.shape[-1]
    width = c["rope_width"] or dim
    half = width // 2
    speeds = np.array([_frequency(c, j, width) for j in range(half)], dtype=np.float32)
    angles = (np.arange(time, dtype=np.float32)[:, None] * speeds)[:, None, :].astype(np.float64)
    cos = b.constant(c, "cos", np.cos(angles).astype(np.float32))
    sin = b.constant(c, "sin", np.sin(angles).astype(np.float32))
    first, second = b(t.narrow, x, -1, 0, half), b(t.narrow, x, -1, half, half)
    low = b(t.sub, b(t.mul, first, cos), b(t.mul, second, sin))
    high = b(t.add, b(t.mul, first, sin), b(t.mul, second, cos))
    rest = [b(t.narrow, x, -1, width, dim - width)] if width < dim else []
    return b(t.cat, [low, high, *rest], -1)


def _mask(b: Builder, c: Layer, time: int) -> Optional[Value]:
    causal, window = c["causal"], c["window"]
    if not causal and window == 0:
        return None
    far = np.arange(time)[:, None] - np.arange(time)[None, :]
    seen = np.ones((time, time), dtype=bool)
    if causal:
        seen &= far >= 0
    if window:
        seen &= np.abs(far) < window
    return b.constant(c, "mask", np.where(seen, 0, -np.inf).astype(np.float32))


@rule("MultiHeadAttention")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t, x = b.torch, xs[0]
    if len(x.shape) != 3:
        raise c.refuse(f"its input {x.shape} is not [batch, time, width]")
    c.skip("width")
    time, heads, groups, dim = x.shape[1], c["heads"], c["kv_heads"], c["head_dim"]
    parts = []
    for name, count in (("q", heads), ("k", groups), ("v", groups)):
        part = b.reshape(product(b, c, x, name, f"{name}_bias", c["bias"]), time, count, dim)
        if name != "v" and c["qk_norm"]:
            part = rms(b, part, c.parameter(f"{name}_norm"), c["qk_norm_eps"])
        if name != "v" and c["rope"]:
            part = _rotated(b, c, part, time)
        if count != heads:
            part = b(t.repeat_interleave, part, heads // groups, 2)
        parts.append(b(t.transpose, part, 1, 2))
    c.skip("qk_norm_eps", *(name for name in c.fields if name.startswith("rope_")))
    scores = b(t.matmul, parts[0], b(t.transpose, parts[1], -1, -2))
    scores = soft_cap(b, b(t.mul, scores, c["scale"] or 1 / math.sqrt(dim)), c["soft_cap"])
    mask = _mask(b, c, time)
    if mask is not None:
        scores = b(t.add, scores, mask)
    y = b(t.matmul, b(t.softmax, scores, -1), parts[2])
    y = b.reshape(b(t.transpose, y, 1, 2), time, heads * dim)
    if c["sub_norm"]:
        y = rms(b, y, c.parameter("sub_norm"), c["sub_norm_eps"])
    c.skip("sub_norm_eps")
    return product(b, c, y, "o", "o_bias", c["out_bias"])


# ---- softmaxes -----------------------------------------------------------------------------------


def _pieces(b: Builder, x: Value, width: int) -> Value:
    """[.., n] as [.., n / width, width]."""
    return b(b.torch.unflatten, x, -1, [x.shape[-1] // width, width])


def _hierarchical(b: Builder, c: Layer, z: Value) -> Value:
    t, levels = b.torch, list(c["levels"])
    leaves = math.prod(levels)
    if z.shape[-1] == leaves:
        return b(t.flatten, b(t.softmax, _pieces(b, z, levels[-1]), -1), -2)
    path: Optional[Value] = None
    first, nodes = 0, 1
    for children in levels:
        count = nodes * children
        logits = _pieces(b, b(t.narrow, z, -1, first, count), children)
        p = b(t.softmax, logits, -1)
        if path is not None:
            p = b(t.mul, p, b(t.unsqueeze, path, -1))
        path = b(t.flatten, p, -2)
        first, nodes = first + count, count
    assert path is not None
    return path


def _gumbel(b: Builder, c: Layer, x: Value, scale: float) -> Value:
    t = b.torch
    drawn = b(t.rand_like, x)
    noise = b(t.neg, b(t.log, b(t.neg, b(t.log, b(t.clamp, drawn, 1e-20, 1 - 1e-7)))))
    if not c["noise"]:
        noise = b(t.mul, noise, b.training)
    soft = b(t.softmax, b(t.mul, b(t.add, x, noise), scale), -1)
    if not c["hard"]:
        return soft
    best = b(t.argmax, soft, -1, keepdim=True)
    chosen = b(t.scatter, b(t.zeros_like, soft), -1, best, 1.0)
    return b(t.add, soft, b(t.detach, b(t.sub, chosen, soft)))


def _sparse(b: Builder, z: Value) -> Value:
    """Sparsemax (Martins and Astudillo, 2016): z - tau, cut at 0, that sums to 1."""
    t, n = b.torch, z.shape[-1]
    ordered = b(t.sort, z, -1, descending=True)
    ordered = b.parts(ordered)[0]
    sums = b(t.sub, b(t.cumsum, ordered, -1), 1.0)
    counts = b(t.arange, 1, n + 1)
    kept = b(t.gt, b(t.mul, ordered, counts), sums)
    size = b(t.sum, kept, -1, keepdim=True)
    tau = b(t.div, b(t.gather, sums, -1, b(t.sub, size, 1)), size)
    return b(t.clamp, b(t.sub, z, tau), 0)


def _entmax15(b: Builder, z: Value) -> Value:
    """Entmax of alpha 1.5 in closed form (Peters, Niculae and Martins, 2019)."""
    t, n = b.torch, z.shape[-1]
    half = b(t.div, z, 2)
    ordered = b.parts(b(t.sort, half, -1, descending=True))[0]
    counts = b(t.arange, 1, n + 1)
    mean = b(t.div, b(t.cumsum, ordered, -1), counts)
    squares = b(t.div, b(t.cumsum, b(t.square, ordered), -1), counts)
    spread = b(t.mul, counts, b(t.sub, squares, b(t.square, mean)))
    delta = b(t.div, b(t.sub, 1.0, spread), counts)
    taus = b(t.sub, mean, b(t.sqrt, b(t.clamp, delta, 0)))
    size = b(t.sum, b(t.le, taus, ordered), -1, keepdim=True)
    tau = b(t.gather, taus, -1, b(t.sub, size, 1))
    return b(t.square, b(t.clamp, b(t.sub, half, tau), 0))


def _entmax(b: Builder, c: Layer, z: Value, alpha: float) -> Value:
    if alpha == 2:
        return _sparse(b, z)
    if alpha == 1.5:
        return _entmax15(b, z)
    if alpha == 1:
        return b(b.torch.softmax, z, -1)
    raise c.refuse_field("alpha", "PyTorch has a form for 1, 1.5 and 2")


def _adaptive(b: Builder, c: Layer, x: Value, tau: float) -> Value:
    t, n = b.torch, x.shape[-1]
    p = b(t.clamp, b(t.softmax, x, -1), 1.17549435e-38)
    entropy = b(t.sum, b(t.mul, p, b(t.log, p)), -1, keepdim=True)
    kappa, target = c["kappa"], c["target_entropy"]
    slope = tau * kappa / (math.log(n) if n > 1 else 1.0)
    heat = b(t.add, b(t.mul, entropy, slope), tau * (1 + kappa * target))
    fixed = b(t.detach, b(t.clamp, heat, tau / 4, tau * 4))
    return b(t.softmax, b(t.div, x, fixed), -1)


def _mixture(b: Builder, c: Layer, z: Value) -> Value:
    t, rows, cols = b.torch, c["rows"], c["cols"]
    p = b(t.softmax, _pieces(b, b(t.narrow, z, -1, 0, rows * cols), cols), -1)
    if z.shape[-1] == rows * cols:
        return b(t.mean, p, -2)
    gates = b(t.softmax, b(t.narrow, z, -1, rows * cols, rows), -1)
    return b(t.sum, b(t.mul, p, b(t.unsqueeze, gates, -1)), -2)


@rule("Softmax")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t, x, variant, tau = b.torch, xs[0], c["variant"], c["temperature"]
    # Fields of one variant have no meaning for the others.
    c.skip("rows", "cols", "levels", "alpha", "mask", "noise", "kappa", "target_entropy", "hard")
    if variant == "gumbel":
        return _gumbel(b, c, x, 1 / tau)
    if variant == "adaptive":
        return _adaptive(b, c, x, tau)
    if variant == "masked":
        keep = np.zeros(x.shape[-1], dtype=np.float32)
        keep[np.flatnonzero(np.asarray(c["mask"]) == 0)] = -np.inf
        x = b(t.add, x, b.constant(c, "mask", keep))
    z = x if tau == 1 else b(t.mul, x, 1 / tau)
    if variant == "grid" and c["rows"] * c["cols"] > 0:
        return b(t.flatten, b(t.softmax, _pieces(b, z, c["cols"]), -1), -2)
    if variant == "hierarchical":
        return _hierarchical(b, c, z)
    if variant == "mixture":
        return _mixture(b, c, z)
    if variant in ("sparse", "entmax"):
        return _entmax(b, c, z, 2 if variant == "sparse" else c["alpha"])
    if variant not in ("standard", "temperature", "masked", "grid"):
        raise c.refuse_field("variant", "PyTorch has no form for it")
    return b(t.softmax, z, -1)


# ---- recurrences ---------------------------------------------------------------------------------


def _module_of(b: Builder, c: Layer, kind: str) -> Any:
    options = {"batch_first": True}
    if kind == "RNN":
        options["nonlinearity"] = c["activation"]
    made = getattr(b.torch.nn, kind)(c["in"], c["hidden"], **options)
    if not c.has("bias_hh"):  # one bias of the two: the other is zero, and does not train
        with b.torch.no_grad():
            made.bias_hh_l0.zero_()
        made.bias_hh_l0.requires_grad_(False)
    return made


def _any_rnn(b: Builder, c: Layer, x: Value, h: Optional[Value]) -> List[Value]:
    """An RNN of an activation that nn.RNN does not have: step after step."""
    t = b.torch
    bias = c.parameter("bias")
    if c.has("bias_hh"):
        bias = b(t.add, bias, c.parameter("bias_hh"))
    given = b(b.functions.linear, x, c.parameter("wih"), bias)
    states: List[Value] = []
    for step in range(x.shape[1]):
        z = b(t.select, given, 1, step)
        if h is not None:
            z = b(t.add, z, b(b.functions.linear, h, c.parameter("whh")))
        h = activate(b, c, z, c["activation"])
        states.append(h)
    return [b(t.stack, states, 1), states[-1]]


@rule("RNN", "LSTM", "GRU")
def _(b: Builder, c: Layer, xs: List[Value]) -> List[Value]:
    t, x, kind = b.torch, xs[0], c.type
    if len(x.shape) != 3:
        raise c.refuse(f"its input {x.shape} is not [batch, time, width]")
    c.skip("state_bias", "in", "hidden")
    begin = xs[1:] if c["initial_state"] else []
    if kind == "RNN" and c["activation"] not in ("tanh", "relu"):
        y, *last = _any_rnn(b, c, x, begin[0] if begin else None)
    else:
        first = [b(t.unsqueeze, s, 0) for s in begin]
        given = [x, *([tuple(first)] if kind == "LSTM" and first else first)]
        names = {"weight_ih_l0": "wih", "weight_hh_l0": "whh", "bias_ih_l0": "bias"}
        if c.has("bias_hh"):
            names["bias_hh_l0"] = "bias_hh"
        y, state = b.parts(b.module(c, _module_of(b, c, kind), given, names))
        states = b.parts(state) if kind == "LSTM" else [state]
        last = [b(t.squeeze, s, 0) for s in states]
    out = y if c["return_sequence"] else last[0]
    return [out, *(last if c["final_state"] else [])]


@rule("Scan")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t = b.torch
    c.skip("width")
    states: List[Value] = []
    for step in range(xs[0].shape[1]):
        y = b(t.select, xs[1], 1, step)
        if states:
            y = b(t.add, b(t.mul, b(t.select, xs[0], 1, step), states[-1]), y)
        states.append(y)
    return b(t.stack, states, 1)


# ---- containers ----------------------------------------------------------------------------------


@rule("Sequential")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    return b.sequence(c, xs[0])


@rule("Residual")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    other = xs[1] if len(xs) > 1 else b.sequence(c, xs[0])
    return b(b.torch.add, xs[0], other)


def _flat(b: Builder, x: Value) -> Value:
    return x if len(x.shape) == 2 else b(b.torch.flatten, x, 1)


def _gate(b: Builder, c: Layer, x: Value, count: int) -> Value:
    """The weight of each branch for each sample, [batch, branches]."""
    t = b.torch
    p = b(t.softmax, _flat(b, b.child(c, count, x, x)), -1)
    if c["top_k"] == 0:
        return p
    if c["balance"] > 0:
        warnings.warn(
            f"cell {c.path}, {c.type}: 'balance' adds to the loss of training, which the module "
            "does not know",
            stacklevel=2,
        )
    order = b.parts(b(t.sort, p, dim=-1, descending=True, stable=True))[1]
    best = b(t.narrow, order, -1, 0, c["top_k"])
    some = b(t.mul, p, b(t.scatter, b(t.zeros_like, p), -1, best, 1.0))
    return b(t.div, some, b(t.sum, some, -1, keepdim=True))


def _scattered(b: Builder, c: Layer, parts: List[Value]) -> Value:
    t, rows, cols, targets = b.torch, c["rows"], c["cols"], c["targets"]
    cells: Dict[int, Value] = {
        targets[2 * i] * cols + targets[2 * i + 1]: part for i, part in enumerate(parts)
    }
    zeros = b(t.zeros_like, parts[0])
    joined = b(t.stack, [cells.get(at, zeros) for at in range(rows * cols)], 1)
    return b.reshape(joined, rows, cols, parts[0].shape[-1])


@rule("Parallel")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t, x, combine = b.torch, xs[0], c["combine"]
    c.skip("top_k", "balance", "rows", "cols", "targets")  # of one way to combine
    count = len(c.fields["children"]) - (combine == "filter")
    made = [b.child(c, i, x, x) for i in range(count)]
    parts = [_flat(b, y) for y in made]
    if combine == "grid_scatter" and c["rows"] * c["cols"] > 0:
        return _scattered(b, c, parts)
    if combine in ("concat", "grid_scatter"):
        return b(t.cat, parts, 1) if count > 1 else parts[0]
    if combine == "filter":
        weights = _gate(b, c, x, count)
        parts = [b(t.mul, y, b(t.narrow, weights, 1, i, 1)) for i, y in enumerate(parts)]
    if combine == "mixed":
        shares = b(t.softmax, c.parameter("alpha"), 0)
        parts = [b(t.mul, y, b(t.select, shares, 0, i)) for i, y in enumerate(parts)]
    y = parts[0]
    for part in parts[1:]:
        y = b(t.add, y, part)
    if combine == "avg":
        y = b(t.div, y, float(count))
    return y if len(made[0].shape) == 2 else b.reshape(y, *made[0].shape[1:])


@rule("Graph")
def _(b: Builder, c: Layer, xs: List[Value]) -> List[Value]:
    known: Dict[str, List[Value]] = {n: [x] for n, x in zip(c.fields["inputs"], xs)}
    owners: Dict[str, str] = {}
    for i, node in enumerate(c.fields["nodes"]):
        name = node.get("name", str(i))
        read = [_value(known, text) for text in node["from"]]
        owners[name] = owners[str(i)] = owners.get(node.get("shared_with", ""), f"{c.owner}/{i}")
        # A node that reads nothing, as a Constant, is shown the input.
        given = read or xs[:1]
        made = b.layer(node, f"{c.path}/{i}", owners[name], given, given[-1])
        known[name] = known[str(i)] = made
    return [_value(known, text) for text in c.fields["outputs"]]


def _value(known: Dict[str, List[Value]], text: str) -> Value:
    name, _, output = text.rpartition(":")
    return known[name][int(output)] if name in known else known[text][0]


@rule("Input")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    c.skip("shape", "batched", "ids")  # the placeholder has them
    return b.inputs[c["input"]]


@rule("Constant")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    c.skip("fill", "factor")  # of new weights
    names = [n for n in b.parameters if n.startswith(f"{c.owner}/")]
    return c.parameter(names[0].rpartition("/")[2], *c["shape"], trains=c["trained"])

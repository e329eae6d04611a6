"""The definitions of Loom's layers in PyTorch: nn modules and nn.functional if they have the layer,
otherwise composed by hand. Gradients are always autograd's.

A layer is {"kind": name, "fields": {...}, "children": [...]}, as in the index of the goldens.
param_shapes() names its parameters as Loom does, children as "0/weight"; Run.forward() computes it.
Matrices have Loom's layout: [rows, columns], the taps of convolutions flattened into the columns.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
    "relu2": lambda x: F.relu(x) ** 2,
    "silu": F.silu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "mish": F.mish,
    "softplus": F.softplus,
    "elu": F.elu,
    "hard_swish": F.hardswish,
}

CONVOLUTIONS = {"CNN1": F.conv1d, "CNN2": F.conv2d, "CNN3": F.conv3d}
TRANSPOSED = {
    "ConvTransposed1D": F.conv_transpose1d,
    "ConvTransposed2D": F.conv_transpose2d,
    "ConvTransposed3D": F.conv_transpose3d,
}
AXES = {name: i % 3 + 1 for i, name in enumerate([*CONVOLUTIONS, *TRANSPOSED])}
RECURRENT = {"RNN": (1, nn.RNN), "LSTM": (4, nn.LSTM), "GRU": (3, nn.GRU)}  # gates, module

_CONV = {"kernel": 3, "stride": 1, "padding": 0, "dilation": 1, "groups": 1, "output_padding": 0}
_ROPE = {"rope_theta": 10000, "rope_scaling": "", "rope_factor": 1, "rope_low_freq": 1}
_ROPE |= {"rope_high_freq": 4, "rope_original": 8192, "rope_width": 0}
_SUB_NORM = {"sub_norm": False, "sub_norm_eps": 1e-6}
DEFAULTS = {
    "Dense": {"bias": True, "activation": "linear", "soft_cap": 0},
    "Embedding": {"padding_id": -1, "activation": "linear", "scale": 1},
    "RMSNorm": {"eps": 1e-6},
    "LayerNorm": {"eps": 1e-5},
    "SwiGLU": {"bias": False, "activation": "silu"} | _SUB_NORM,
    "KMeans": {"temperature": 1, "mode": "probabilities", "activation": "linear"},
    "MultiHeadAttention": {"bias": False, "out_bias": False, "qk_norm": False, "qk_norm_eps": 1e-6}
    | {"causal": True, "window": 0, "rope": True, "scale": 0, "soft_cap": 0}
    | _ROPE
    | _SUB_NORM,
    "Softmax": {"variant": "standard", "temperature": 1, "rows": 0, "cols": 0, "levels": []}
    | {"alpha": 1.5, "mask": [], "kappa": 1, "target_entropy": 0.5},
    "Parallel": {"combine": "concat", "top_k": 0, "balance": 0, "rows": 0, "cols": 0},
    "GroupNorm": {"eps": 1e-5, "affine": True, "groups": 1},
    "InstanceNorm": {"eps": 1e-5, "affine": False},
    "Sequential": {},
    "Residual": {},
    "Pool": {"kind": "max", "kernel": 2, "stride": 0, "padding": 0, "dilation": 1, "ceil": False}
    | {"include_padding": False, "p": 2, "output": []},
    "Flatten": {"first": 1},
    "Reshape": {},
    "Permute": {},
    "Pad": {"mode": "constant", "value": 0.0},
    "Upsample": {"mode": "nearest", "factor": 2, "output": [], "align_corners": False},
    "PixelShuffle": {"factor": 2, "inverse": False},
}
DEFAULTS |= {name: _CONV | {"bias": True, "activation": "linear"} for name in AXES}
DEFAULTS |= {name: {"return_sequence": True, "activation": "tanh"} for name in RECURRENT}


def fields(layer):
    return DEFAULTS[layer["kind"]] | layer["fields"]


def per_axis(value, axes):
    return list(value) if isinstance(value, list) else [value] * axes


# ---- Parameters ----------------------------------------------------------------------------------


def _own_shapes(kind, f):
    """Parameters of one layer without its children: name -> shape."""
    if kind == "Dense":
        return {"weight": [f["out"], f["in"]]} | ({"bias": [f["out"]]} if f["bias"] else {})
    if kind == "Embedding":
        return {"weight": [f["vocab"], f["width"]]}
    if kind == "KMeans":
        return {"centres": [f["clusters"], f["width"]]}
    if kind in ("RMSNorm", "LayerNorm"):
        beta = {"beta": [f["width"]]} if kind == "LayerNorm" else {}
        return {"gamma": [f["width"]]} | beta
    if kind in ("GroupNorm", "InstanceNorm"):
        return {name: [f["channels"]] for name in ("gamma", "beta") if f["affine"]}
    if kind == "SwiGLU":
        width, inner = f["width"], f["inner"]
        shapes = {"gate": [inner, width], "up": [inner, width], "down": [width, inner]}
        if f["bias"]:
            shapes |= {"gate_bias": [inner], "up_bias": [inner], "down_bias": [width]}
        return shapes | ({"sub_norm": [inner]} if f["sub_norm"] else {})
    if kind in AXES:
        rows, others = f["filters"], f["channels"]
        if kind in TRANSPOSED:
            rows, others = others, rows
        taps = math.prod(per_axis(f["kernel"], AXES[kind]))
        bias = {"bias": [f["filters"]]} if f["bias"] else {}
        return {"weight": [rows, others // f["groups"] * taps]} | bias
    if kind in RECURRENT:
        width, hidden = RECURRENT[kind][0] * f["hidden"], f["hidden"]
        shapes = {"wih": [width, f["in"]], "whh": [width, hidden], "bias": [width]}
        return shapes | ({"bias_hh": [width]} if kind == "GRU" else {})
    if kind == "MultiHeadAttention":
        return _attention_shapes(f)
    return {}


def _attention_shapes(f):
    width, q, kv = f["width"], f["heads"] * f["head_dim"], f["kv_heads"] * f["head_dim"]
    shapes = {"q": [q, width], "k": [kv, width], "v": [kv, width], "o": [width, q]}
    if f["bias"]:
        shapes |= {"q_bias": [q], "k_bias": [kv], "v_bias": [kv]}
    if f["out_bias"]:
        shapes |= {"o_bias": [width]}
    if f["qk_norm"]:
        shapes |= {"q_norm": [f["head_dim"]], "k_norm": [f["head_dim"]]}
    if f["sub_norm"]:
        shapes |= {"sub_norm": [q]}
    return shapes


def param_shapes(layer, prefix=""):
    shapes = {prefix + k: v for k, v in _own_shapes(layer["kind"], fields(layer)).items()}
    for i, child in enumerate(layer.get("children", [])):
        shapes |= param_shapes(child, f"{prefix}{i}/")
    return shapes


# ---- Layers of their own -------------------------------------------------------------------------


def capped(f, x):
    return f["soft_cap"] * torch.tanh(x / f["soft_cap"]) if f["soft_cap"] else x


def sub_normed(f, p, x):
    return F.rms_norm(x, x.shape[-1:], p["sub_norm"], f["sub_norm_eps"]) if f["sub_norm"] else x


def dense(f, p, x):
    if x.shape[-1] != f["in"]:
        x = x.flatten(1)
    y = ACTIVATIONS[f["activation"]](F.linear(x, p["weight"], p.get("bias")))
    return capped(f, y)


def embedding(f, p, x):
    padding = f["padding_id"] if f["padding_id"] >= 0 else None
    rows = F.embedding(x, p["weight"], padding_idx=padding)
    return ACTIVATIONS[f["activation"]](f["scale"] * rows)


def swiglu(f, p, x):
    gate = F.linear(x, p["gate"], p.get("gate_bias"))
    up = F.linear(x, p["up"], p.get("up_bias"))
    inner = sub_normed(f, p, ACTIVATIONS[f["activation"]](gate) * up)
    return F.linear(inner, p["down"], p.get("down_bias"))


def kmeans(f, p, x):
    squared = ((x.unsqueeze(-2) - p["centres"]) ** 2).sum(-1)
    y = F.softmax(-squared / (2 * f["temperature"] ** 2), dim=-1)
    if f["mode"] == "features":
        y = y @ p["centres"]
    return ACTIVATIONS[f["activation"]](y)


def convolution(kind, f, p, x):
    axes = AXES[kind]
    options = {k: per_axis(f[k], axes) for k in ("stride", "padding", "dilation")}
    options["groups"] = f["groups"]
    taps = per_axis(f["kernel"], axes)
    others = f["filters"] if kind in TRANSPOSED else f["channels"]
    weight = p["weight"].reshape(-1, others // f["groups"], *taps)
    if kind in TRANSPOSED:
        options["output_padding"] = per_axis(f["output_padding"], axes)
    y = (CONVOLUTIONS | TRANSPOSED)[kind](x, weight, p.get("bias"), **options)
    return ACTIVATIONS[f["activation"]](y)


def recurrent(kind, f, p, x):
    if kind == "RNN" and f["activation"] not in ("tanh", "relu"):
        y = _any_rnn(f, p, x)
    else:
        options = {"nonlinearity": f["activation"]} if kind == "RNN" else {}
        module = RECURRENT[kind][1](
            f["in"], f["hidden"], batch_first=True, dtype=x.dtype, **options
        )
        # RNN and LSTM of Loom have one bias: the other of PyTorch is 0.
        other = p["bias_hh"] if kind == "GRU" else torch.zeros_like(p["bias"])
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        values = dict(zip(names, (p["wih"], p["whh"], p["bias"], other)))
        y, _ = functional_call(module, values, (x,))
    return y if f["return_sequence"] else y[:, -1]


def _any_rnn(f, p, x):
    h, states = x.new_zeros(x.shape[0], f["hidden"]), []
    for t in range(x.shape[1]):
        h = F.linear(x[:, t], p["wih"], p["bias"]) + F.linear(h, p["whh"])
        h = ACTIVATIONS[f["activation"]](h)
        states.append(h)
    return torch.stack(states, dim=1)


# ---- Attention -----------------------------------------------------------------------------------


def _frequencies(f):
    """theta^(-2j/D), stretched: "linear", or "llama3" as in Llama 3.1."""
    width = f["rope_width"] or f["head_dim"]
    j = torch.arange(0, width, 2, dtype=torch.float64)
    plain = f["rope_theta"] ** (-j / width)
    stretched = plain / f["rope_factor"]
    if f["rope_scaling"] == "linear":
        plain = stretched
    if f["rope_scaling"] == "llama3":
        low, high, original = f["rope_low_freq"], f["rope_high_freq"], f["rope_original"]
        length = 2 * math.pi / plain
        smooth = (original / length - low) / (high - low)
        blended = (1 - smooth) * stretched + smooth * plain
        blended = torch.where(length > original / low, stretched, blended)
        plain = torch.where(length < original / high, plain, blended)
    return plain


def _rotated(f, x):
    """x [B, H, T, D]: halves (a, b) of each head, or of its first rope_width values
    -> (a cos - b sin, a sin + b cos)."""
    angles = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * _frequencies(f)
    width = f["rope_width"] or f["head_dim"]
    a, b = x[..., :width].chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos, x[..., width:]], dim=-1)


def _seen(f, length, mask):
    """Which positions (columns) each row may see: [B or 1, 1, T, T]."""
    row, column = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")
    seen = column <= row if f["causal"] else torch.ones(length, length, dtype=torch.bool)
    if f["window"] > 0:
        seen = seen & ((row - column).abs() < f["window"])
    seen = seen[None, None]
    return seen if mask is None else seen & (mask != 0)[:, None, None, :]


def _module_attention(f, p, x, mask):
    module = nn.MultiheadAttention(
        f["width"], f["heads"], bias=f["bias"], batch_first=True, dtype=x.dtype
    )
    values = {"in_proj_weight": torch.cat([p["q"], p["k"], p["v"]]), "out_proj.weight": p["o"]}
    if f["bias"]:
        values["in_proj_bias"] = torch.cat([p["q_bias"], p["k_bias"], p["v_bias"]])
        values["out_proj.bias"] = p["o_bias"]
    options = {"need_weights": False}
    if f["causal"]:
        options["attn_mask"] = ~_seen(f, x.shape[1], None)[0, 0]
    if mask is not None:
        options["key_padding_mask"] = mask == 0
    return functional_call(module, values, (x, x, x), options)[0]


def attention(f, p, x, mask):
    plain = f["heads"] == f["kv_heads"] and f["heads"] * f["head_dim"] == f["width"]
    extras = f["rope"] or f["qk_norm"] or f["window"] > 0 or f["sub_norm"]
    extras = extras or f["scale"] or f["soft_cap"]
    if plain and not extras and f["bias"] == f["out_bias"]:
        return _module_attention(f, p, x, mask)
    batch, length, _ = x.shape

    def heads(name, count):
        y = F.linear(x, p[name], p.get(name + "_bias"))
        y = y.view(batch, length, count, f["head_dim"]).transpose(1, 2)
        if name == "v":
            return y
        if f["qk_norm"]:
            y = F.rms_norm(y, (f["head_dim"],), p[name + "_norm"], f["qk_norm_eps"])
        return _rotated(f, y) if f["rope"] else y

    q, k, v = heads("q", f["heads"]), heads("k", f["kv_heads"]), heads("v", f["kv_heads"])
    seen = _seen(f, length, mask)
    if f["soft_cap"]:
        scale = f["scale"] or f["head_dim"] ** -0.5
        k, v = (t.repeat_interleave(f["heads"] // f["kv_heads"], dim=1) for t in (k, v))
        scores = capped(f, scale * q @ k.transpose(2, 3))
        y = F.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1) @ v
    else:
        grouped, scale = f["heads"] != f["kv_heads"], f["scale"] or None
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=seen, enable_gqa=grouped, scale=scale
        )
    y = sub_normed(f, p, y.transpose(1, 2).reshape(batch, length, -1))
    return F.linear(y, p["o"], p.get("o_bias"))


# ---- Softmax -------------------------------------------------------------------------------------


def _hierarchical(f, x):
    tau, levels = f["temperature"], f["levels"]
    if x.shape[-1] == math.prod(levels):
        return F.softmax(x.unflatten(-1, (-1, levels[-1])) / tau, dim=-1).flatten(-2)
    path, first, nodes = x.new_ones(*x.shape[:-1], 1), 0, 1
    for children in levels:
        logits = x[..., first : first + nodes * children].unflatten(-1, (nodes, children))
        path = (path.unsqueeze(-1) * F.softmax(logits / tau, dim=-1)).flatten(-2)
        first, nodes = first + nodes * children, nodes * children
    return path


def _mixture(f, x):
    rows, cols, tau = f["rows"], f["cols"], f["temperature"]
    p = F.softmax(x[..., : rows * cols].unflatten(-1, (rows, cols)) / tau, dim=-1)
    pi = x[..., rows * cols :]
    gates = F.softmax(pi / tau, dim=-1) if pi.shape[-1] else x.new_full((rows,), 1 / rows)
    return (p * gates.unsqueeze(-1)).sum(-2)


def _sparsemax(x):
    """Martins and Astudillo, 2016."""
    z, _ = x.sort(dim=-1, descending=True)
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    count = (1 + k * z > z.cumsum(-1)).sum(-1, keepdim=True)
    tau = (z.cumsum(-1).gather(-1, count - 1) - 1) / count
    return (x - tau).clamp(min=0)


def _entmax15(x):
    """1.5-entmax by sorting (Peters, Niculae and Martins, 2019)."""
    z, _ = (x / 2).sort(dim=-1, descending=True)
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    mean, square = z.cumsum(-1) / k, (z**2).cumsum(-1) / k
    tau = mean - ((1 - k * (square - mean**2)) / k).clamp(min=0).sqrt()
    count = (tau <= z).sum(-1, keepdim=True)
    return (x / 2 - tau.gather(-1, count - 1)).clamp(min=0) ** 2


def _adaptive(f, x):
    p = F.softmax(x, dim=-1)
    entropy = -(p * p.log()).sum(-1, keepdim=True) / math.log(x.shape[-1])
    tau = f["temperature"]
    eff = tau * (1 + f["kappa"] * (f["target_entropy"] - entropy))
    return F.softmax(x / eff.clamp(tau / 4, tau * 4).detach(), dim=-1)


def softmax(f, x):
    variant, tau = f["variant"], f["temperature"]
    if variant == "grid":
        return F.softmax(x.unflatten(-1, (f["rows"], f["cols"])) / tau, dim=-1).flatten(-2)
    if variant == "masked":
        keep = torch.tensor(f["mask"] + [1] * (x.shape[-1] - len(f["mask"]))) != 0
        return F.softmax(x.masked_fill(~keep, -math.inf) / tau, dim=-1)
    if variant == "entmax":
        assert f["alpha"] == 1.5
        return _entmax15(x / tau)
    others = {"hierarchical": _hierarchical, "mixture": _mixture, "adaptive": _adaptive}
    if variant in others:
        return others[variant](f, x)
    return _sparsemax(x / tau) if variant == "sparse" else F.softmax(x / tau, dim=-1)


# ---- Everything ----------------------------------------------------------------------------------


# ---- Pooling, and values that move ---------------------------------------------------------------

MAX_POOLS = [F.max_pool1d, F.max_pool2d, F.max_pool3d]
AVERAGE_POOLS = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d]
NORM_POOLS = [F.lp_pool1d, F.lp_pool2d, F.lp_pool3d]
ADAPTIVE_MAX = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d]
ADAPTIVE_AVERAGE = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]


def pool(f, x):
    axes = x.dim() - 2
    if f["output"]:
        pools = ADAPTIVE_MAX if f["kind"] == "max" else ADAPTIVE_AVERAGE
        return pools[axes - 1](x, per_axis(f["output"], axes))
    kernel, padding = per_axis(f["kernel"], axes), per_axis(f["padding"], axes)
    stride = [s or k for s, k in zip(per_axis(f["stride"], axes), kernel)]
    if f["kind"] == "max":
        dilation = per_axis(f["dilation"], axes)
        return MAX_POOLS[axes - 1](x, kernel, stride, padding, dilation, ceil_mode=f["ceil"])
    if f["kind"] == "lp":  # PyTorch's p = 1 is a sum of signed values
        signed = x.abs() if f["p"] == 1 else x
        if axes == 1:
            kernel, stride = kernel[0], stride[0]
        return NORM_POOLS[axes - 1](signed, f["p"], kernel, stride, ceil_mode=f["ceil"])
    counted = f["include_padding"]
    return AVERAGE_POOLS[axes - 1](x, kernel, stride, padding, f["ceil"], counted)


def pad(f, x):
    pairs = [n for ends in zip(f["before"][::-1], f["after"][::-1]) for n in ends]
    if f["mode"] == "constant":
        return F.pad(x, pairs, value=f["value"])
    return F.pad(x, pairs, {"edge": "replicate", "wrap": "circular"}.get(f["mode"], f["mode"]))


def upsample(f, x):
    axes = x.dim() - 2
    size = per_axis(f["output"], axes) if f["output"] else None
    factor = None if size else [float(n) for n in per_axis(f["factor"], axes)]
    if f["mode"] == "nearest":
        return F.interpolate(x, size, factor)
    mode = ["linear", "bilinear", "trilinear"][axes - 1]
    return F.interpolate(x, size, factor, mode, f["align_corners"])


def pixel_shuffle(f, x):
    if x.dim() == 3:  # PyTorch has it in two dimensions alone
        r = f["factor"]
        if f["inverse"]:
            return x.unflatten(2, (-1, r)).transpose(2, 3).flatten(1, 2)
        return x.unflatten(1, (-1, r)).transpose(2, 3).flatten(2)
    return (F.pixel_unshuffle if f["inverse"] else F.pixel_shuffle)(x, f["factor"])


def moved(kind, f, x):
    if kind == "Flatten":
        return x.flatten(f["first"])
    if kind == "Reshape":
        return x.reshape(x.shape[0], *f["shape"])
    if kind == "Permute":
        return x.permute(0, *(axis + 1 for axis in f["axes"]))
    functions = {"Pool": pool, "Pad": pad, "Upsample": upsample, "PixelShuffle": pixel_shuffle}
    return functions[kind](f, x)


MOVED = ("Pool", "Flatten", "Reshape", "Permute", "Pad", "Upsample", "PixelShuffle")


class Run:
    """One pass of a layer tree. `added`: the losses that layers add."""

    def __init__(self, params, mask=None):
        self.params = params
        self.mask = mask
        self.added = 0.0

    def forward(self, layer, x, prefix="", skip=None):
        kind, f, children = layer["kind"], fields(layer), layer.get("children", [])
        p = {name: self.params[prefix + name] for name in _own_shapes(kind, f)}
        if kind == "Sequential":
            return self._sequence(children, x, prefix)
        if kind == "Residual":
            return x + (self._sequence(children, x, prefix) if children else skip)
        if kind == "Parallel":
            return self._parallel(f, children, x, prefix)
        if kind == "MultiHeadAttention":
            return attention(f, p, x, self.mask)
        if kind in AXES:
            return convolution(kind, f, p, x)
        if kind in RECURRENT:
            return recurrent(kind, f, p, x)
        if kind == "RMSNorm":
            return F.rms_norm(x, (f["width"],), p["gamma"], f["eps"])
        if kind == "LayerNorm":
            return F.layer_norm(x, (f["width"],), p["gamma"], p["beta"], f["eps"])
        if kind == "GroupNorm":
            return F.group_norm(x, f["groups"], p.get("gamma"), p.get("beta"), f["eps"])
        if kind == "InstanceNorm":
            return F.instance_norm(x, None, None, p.get("gamma"), p.get("beta"), eps=f["eps"])
        if kind == "Softmax":
            return softmax(f, x)
        if kind in MOVED:
            return moved(kind, f, x)
        return {"Dense": dense, "Embedding": embedding, "SwiGLU": swiglu, "KMeans": kmeans}[kind](
            f, p, x
        )

    def _sequence(self, children, x, prefix):
        before = x
        for i, child in enumerate(children):
            x, before = self.forward(child, x, f"{prefix}{i}/", before), x
        return x

    def _parallel(self, f, children, x, prefix):
        parts = [self.forward(c, x, f"{prefix}{i}/", x) for i, c in enumerate(children)]
        mode = f["combine"]
        if mode == "concat":
            return torch.cat([part.flatten(1) for part in parts], dim=-1)
        if mode == "grid_scatter":
            flat = [torch.zeros_like(parts[0])] * (f["rows"] * f["cols"])
            for i, part in enumerate(parts):
                flat[f["targets"][2 * i] * f["cols"] + f["targets"][2 * i + 1]] = part
            return torch.stack(flat, dim=1).unflatten(1, (f["rows"], f["cols"]))
        if mode == "filter":
            weights = self._gate(f, parts.pop())
            return (torch.stack(parts, dim=-1) * weights.unsqueeze(-2)).sum(-1)
        total = torch.stack(parts).sum(0)
        return total / len(parts) if mode == "avg" else total

    def _gate(self, f, logits):
        p = F.softmax(logits, dim=-1)
        if f["top_k"] == 0:
            return p
        kept = (p >= p.topk(f["top_k"], dim=-1).values[..., -1:]).to(p.dtype)
        share, weight = kept.mean(0), p.mean(0)
        self.added = self.added + f["balance"] * p.shape[-1] * (share * weight).sum()
        return p * kept / (p * kept).sum(-1, keepdim=True)

"""Operators of onnx_torch.py: convolutions, pools, norms, recurrences and sizes."""
import torch
import torch.nn.functional as F
from onnx_torch import Unsupported, operator

SPATIAL = {1: (F.conv1d, F.conv_transpose1d), 2: (F.conv2d, F.conv_transpose2d),
           3: (F.conv3d, F.conv_transpose3d)}


def paddings(c, sizes, kernel, strides, dilations):
    """[before], [after] of each axis."""
    rank, how = len(kernel), c.get("auto_pad", "NOTSET")
    if how in ("NOTSET", "VALID"):
        pads = c.get("pads", [0] * 2 * rank) if how == "NOTSET" else [0] * 2 * rank
        return list(pads[:rank]), list(pads[rank:])
    total = [max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
             for n, k, s, d in zip(sizes, kernel, strides, dilations)]
    half = [t // 2 for t in total]
    other = [t - h for t, h in zip(total, half)]
    return (half, other) if how == "SAME_UPPER" else (other, half)


def enlarged(x, before, after, value=0.0):
    flat = [n for pair in zip(before[::-1], after[::-1]) for n in pair]
    return F.pad(x, flat, value=value) if any(flat) else x


@operator("Conv")
def conv(c, x, w, bias=None):
    rank = x.dim() - 2
    strides, dilations = c.get("strides", [1] * rank), c.get("dilations", [1] * rank)
    x = enlarged(x, *paddings(c, x.shape[2:], w.shape[2:], strides, dilations))
    return SPATIAL[rank][0](x, w, bias, tuple(strides), 0, tuple(dilations), c.get("group", 1))


@operator("ConvTranspose")
def conv_transpose(c, x, w, bias=None):
    rank = x.dim() - 2
    strides, dilations = c.get("strides", [1] * rank), c.get("dilations", [1] * rank)
    extra = c.get("output_padding", [0] * rank)
    whole = SPATIAL[rank][1](x, w, bias, tuple(strides), 0, 0, c.get("group", 1), tuple(dilations))
    before, after = transpose_cuts(c, x, w, strides, dilations, extra)
    for i in range(rank):
        size = whole.shape[2 + i] - before[i] - after[i] + extra[i]
        whole = whole.narrow(2 + i, before[i], whole.shape[2 + i] - before[i])
        if whole.shape[2 + i] < size:
            raise Unsupported("ConvTranspose whose output is larger than its windows")
        whole = whole.narrow(2 + i, 0, size)
    return whole


def transpose_cuts(c, x, w, strides, dilations, extra):
    rank = len(strides)
    if c.get("output_shape") is None and c.get("auto_pad", "NOTSET") in ("NOTSET", "VALID"):
        pads = c.get("pads", [0] * 2 * rank)
        return list(pads[:rank]), list(pads[rank:])
    sizes = c.get("output_shape") or [n * s for n, s in zip(x.shape[2:], strides)]
    total = [max(s * (n - 1) + e + (k - 1) * d + 1 - size, 0) for s, n, e, k, d, size in
             zip(strides, x.shape[2:], extra, w.shape[2:], dilations, sizes)]
    half = [t // 2 for t in total]
    other = [t - h for t, h in zip(total, half)]
    return (other, half) if c.get("auto_pad") == "SAME_LOWER" else (half, other)


def windows(c, x, value):
    """The padded x, what is counted in it, and the parameters of its windows."""
    rank, kernel = x.dim() - 2, c.get("kernel_shape")
    strides, dilations = c.get("strides", [1] * rank), c.get("dilations", [1] * rank)
    before, after = paddings(c, x.shape[2:], kernel, strides, dilations)
    counted = enlarged(torch.ones_like(x), before, after, float(c.get("count_include_pad", 0)))
    if c.get("ceil_mode", 0):
        span = [d * (k - 1) + 1 for k, d in zip(kernel, dilations)]
        extra = []
        for n, b, a, k, s in zip(x.shape[2:], before, after, span, strides):
            count = -(-(n + b + a - k) // s) + 1
            count -= (count - 1) * s >= n + b
            extra.append(max((count - 1) * s + k - (n + b + a), 0))
        counted = enlarged(counted, [0] * rank, extra)
        after = [a + e for a, e in zip(after, extra)]
    return enlarged(x, before, after, value), counted, kernel, strides, dilations


@operator("MaxPool")
def max_pool(c, x):
    if c.outputs > 1:
        raise Unsupported("MaxPool with indices")
    x, _, kernel, strides, dilations = windows(c, x, -float("inf"))
    by = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1]
    return by(x, tuple(kernel), tuple(strides), 0, tuple(dilations))


@operator("AveragePool")
def average_pool(c, x):
    x, counted, kernel, strides, dilations = windows(c, x, 0.0)
    channels, ones = x.shape[1], torch.ones(x.shape[1], 1, *kernel, dtype=x.dtype)
    total = [SPATIAL[len(kernel)][0](v, ones, None, tuple(strides), 0, tuple(dilations), channels)
             for v in (x, counted)]
    return total[0] / total[1]


@operator("GlobalAveragePool")
def global_average(c, x):
    return x.mean(tuple(range(2, x.dim())), keepdim=True)


@operator("GlobalMaxPool")
def global_max(c, x):
    return x.amax(tuple(range(2, x.dim())), keepdim=True)


# ---- norms ---------------------------------------------------------------------------------------


@operator("BatchNormalization")
def batch_norm(c, x, scale, bias, mean, variance):
    """By the statistics of the batch, as in training."""
    return F.batch_norm(x, None, None, scale, bias, True, 0.0, c.get("epsilon", 1e-5))


@operator("LayerNormalization")
def layer_norm(c, x, scale, bias=None):
    axis = c.get("axis", -1) % x.dim()
    out = F.layer_norm(x, x.shape[axis:], None, None, c.get("epsilon", 1e-5)) * scale
    return out if bias is None else out + bias


@operator("InstanceNormalization")
def instance_norm(c, x, scale, bias):
    return F.instance_norm(x, None, None, scale, bias, True, 0.0, c.get("epsilon", 1e-5))


@operator("GroupNormalization")
def group_norm(c, x, scale, bias):
    if len(scale) != x.shape[1]:
        raise Unsupported("GroupNormalization with a scale for each group")
    return F.group_norm(x, c.get("num_groups"), scale, bias, c.get("epsilon", 1e-5))


@operator("LpNormalization")
def lp_norm(c, x):
    return x / x.norm(c.get("p", 2), c.get("axis", -1), keepdim=True)


# ---- recurrences ---------------------------------------------------------------------------------


ACTIVATIONS = {"Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Relu": torch.relu}


def step_lstm(c, by, z, h, cell, r, b):
    i, o, f, g = (z + h @ r.T + b).chunk(4, -1)
    cell = by[0](f) * cell + by[0](i) * by[1](g)
    return by[0](o) * by[2](cell), cell


def step_gru(c, by, z, h, cell, r, b):
    zu, zr, zh = z.chunk(3, -1)
    (ru, rr, rh), (bu, br, bh) = r.chunk(3), b.chunk(3, -1)
    update, reset = by[0](zu + h @ ru.T + bu), by[0](zr + h @ rr.T + br)
    back = reset * (h @ rh.T + bh) if c.get("linear_before_reset", 0) else (reset * h) @ rh.T + bh
    return (1 - update) * by[1](zh + back) + update * h, cell


def step_rnn(c, by, z, h, cell, r, b):
    return by[0](z + h @ r.T + b), cell


STEPS = {"LSTM": (4, step_lstm, ["Sigmoid", "Tanh", "Tanh"]),
         "GRU": (3, step_gru, ["Sigmoid", "Tanh"]), "RNN": (1, step_rnn, ["Tanh"])}


def activations(c, ways, usual):
    names = [n.decode() if isinstance(n, bytes) else n for n in c.get("activations", usual * ways)]
    if any(n not in ACTIVATIONS for n in names):
        raise Unsupported(f"{c.node.op_type} with {names}")
    found = [ACTIVATIONS[n] for n in names]
    return [found[i * len(usual):(i + 1) * len(usual)] for i in range(ways)]


@operator(*STEPS)
def recurrence(c, x, w, r, bias=None, lengths=None, h0=None, c0=None, peepholes=None):
    gates, step, usual = STEPS[c.node.op_type]
    if c.get("layout", 0) or c.get("clip") or c.get("input_forget", 0) or peepholes is not None:
        raise Unsupported(f"{c.node.op_type} with a layout, a clip or peepholes")
    if lengths is not None and (lengths != x.shape[0]).any():
        raise Unsupported(f"{c.node.op_type} of lengths")
    ways, hidden = w.shape[0], r.shape[-1]
    outputs, last, cells = [], [], []
    for i, by in enumerate(activations(c, ways, usual)):
        back = c.get("direction", "forward") == "reverse" or i == 1
        zeros = torch.zeros(x.shape[1], hidden, dtype=x.dtype)
        state, cell = (zeros if s is None else s[i] for s in (h0, c0))
        none = torch.zeros(2 * gates * hidden, dtype=x.dtype)
        bw, br = (none if bias is None else bias[i]).split(gates * hidden)
        steps, made = (reversed(range(x.shape[0])) if back else range(x.shape[0])), {}
        for t in steps:
            state, cell = step(c, by, x[t] @ w[i].T + bw, state, cell, r[i], br)
            made[t] = state
        outputs.append(torch.stack([made[t] for t in range(x.shape[0])]))
        last.append(state)
        cells.append(cell)
    return torch.stack(outputs, 1), torch.stack(last), torch.stack(cells)


# ---- sizes ---------------------------------------------------------------------------------------


@operator("Resize", "Upsample")
def resize(c, x, *rest):
    if c.node.op_type == "Upsample" or c.opset < 11:
        rest = (None, rest[0] if rest else torch.tensor(c.get("scales")), None)
    scales, sizes = (list(rest) + [None] * 3)[1:3]
    scales = None if scales is None or scales.numel() == 0 else scales.tolist()
    sizes = sizes.tolist() if sizes is not None else \
        [int(n * s + 1e-9) for n, s in zip(x.shape, scales)]
    way = c.get("coordinate_transformation_mode",
                "half_pixel" if c.opset >= 11 else "asymmetric")
    for axis, (n, m) in enumerate(zip(x.shape, sizes)):
        if n != m:
            scale = scales[axis] if scales else m / n
            x = resized(c, x, axis, m, places(way, n, m, scale, x.dtype))
    return x


def places(way, n, m, scale, dtype):
    at = torch.arange(m, dtype=dtype)
    if way == "align_corners":
        return at * (n - 1) / max(m - 1, 1)
    if way == "asymmetric":
        return at / scale
    if way in ("half_pixel", "pytorch_half_pixel"):
        return (at + 0.5) / scale - 0.5 if m > 1 or way == "half_pixel" else at * 0
    raise Unsupported(f"Resize with {way}")


def resized(c, x, axis, m, at):
    n, mode = x.shape[axis], c.get("mode", "nearest")
    if mode == "nearest":
        how = c.get("nearest_mode", "round_prefer_floor" if c.opset >= 11 else "floor")
        by = {"floor": torch.floor, "ceil": torch.ceil, "round_prefer_ceil":
              lambda v: torch.floor(v + 0.5), "round_prefer_floor": lambda v: torch.ceil(v - 0.5)}
        return x.index_select(axis, by[how](at).long().clamp(0, n - 1))
    if mode != "linear":
        raise Unsupported(f"Resize of mode {mode}")
    at = at.clamp(0, n - 1)
    low = at.floor().long()
    share = (at - low).reshape([-1 if i == axis else 1 for i in range(x.dim())])
    high = (low + 1).clamp(max=n - 1)
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share


@operator("DepthToSpace")
def depth_to_space(c, x):
    b, n, (s, d, h, w) = c.get("blocksize"), x.shape[1], x.shape
    if c.get("mode", "DCR") == "CRD":
        x = x.reshape(s, n // b**2, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    else:
        x = x.reshape(s, b, b, n // b**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return x.reshape(s, d // b**2, h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(c, x):
    b, (s, d, h, w) = c.get("blocksize"), x.shape
    x = x.reshape(s, d, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
    return x.reshape(s, d * b**2, h // b, w // b)

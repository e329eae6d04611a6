"""Layers of maps [batch, channels, extents] in PyTorch, and layers that move values."""

from itertools import product as all_of
from typing import Any, List, Sequence, Tuple

import numpy as np

from .torch_free import Builder, Layer, Value, rule
from .torch_layers import activate

# ---- convolutions --------------------------------------------------------------------------------


@rule("CNN1", "CNN2", "CNN3")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    axes = len(xs[0].shape) - 2
    groups = c["groups"]
    shape = [c["filters"], c["channels"] // groups, *c.per_axis("kernel", axes)]
    conv = getattr(b.functions, f"conv{axes}d")
    y = b(conv, xs[0], c.parameter("weight", *shape), c.parameter("bias") if c["bias"] else None,
          c.per_axis("stride", axes), c.per_axis("padding", axes), c.per_axis("dilation", axes),
          groups)  # fmt: skip
    return activate(b, c, y, c["activation"])


@rule("ConvTransposed1D", "ConvTransposed2D", "ConvTransposed3D")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    axes = len(xs[0].shape) - 2
    groups, stride = c["groups"], c.per_axis("stride", axes)
    more, dilation = c.per_axis("output_padding", axes), c.per_axis("dilation", axes)
    shape = [c["channels"], c["filters"] // groups, *c.per_axis("kernel", axes)]
    conv = getattr(b.functions, f"conv_transpose{axes}d")
    y = b(conv, xs[0], c.parameter("weight", *shape), c.parameter("bias") if c["bias"] else None,
          stride, c.per_axis("padding", axes), more, groups, dilation)  # fmt: skip
    return activate(b, c, y, c["activation"])


@rule("ConvLSTM")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t, x, filters = b.torch, xs[0], c["filters"]
    kernel = c.per_axis("kernel", 2)
    pads = [k // 2 for k in kernel]
    conv = b.functions.conv2d
    wx = c.parameter("wx", 4 * filters, c["channels"], *kernel)
    wh = c.parameter("wh", 4 * filters, filters, *kernel)
    bias = c.parameter("bias")
    states: List[Value] = []
    cell: Any = None
    for step in range(x.shape[1]):
        gates = b(conv, b(t.select, x, 1, step), wx, bias, 1, pads)
        if states:
            gates = b(t.add, gates, b(conv, states[-1], wh, None, 1, pads))
        i, f, g, o = (b(t.narrow, gates, 1, k * filters, filters) for k in range(4))
        new = b(t.mul, b(t.sigmoid, i), b(t.tanh, g))
        cell = new if cell is None else b(t.add, b(t.mul, b(t.sigmoid, f), cell), new)
        states.append(b(t.mul, b(t.sigmoid, o), b(t.tanh, cell)))
    return b(t.stack, states, 1) if c["return_sequence"] else states[-1]


# ---- norms, dropout ------------------------------------------------------------------------------


@rule("BatchNorm")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    axes = len(xs[0].shape) - 2
    affine = c["affine"]
    make = getattr(b.torch.nn, f"BatchNorm{max(1, axes)}d", None)
    if make is None:
        raise c.refuse(f"its input {xs[0].shape} has more axes than PyTorch's norms")
    made = make(c["channels"], c["eps"], c["momentum"], affine)
    names = {"running_mean": "running_mean", "running_var": "running_var"}
    if affine:
        names.update({"weight": "gamma", "bias": "beta"})
    return b.module(c, made, xs, names)


@rule("GroupNorm", "InstanceNorm")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    groups = c["groups"] if c.type == "GroupNorm" else c["channels"]
    c.skip("channels")
    affine = [c.parameter("gamma"), c.parameter("beta")] if c["affine"] else [None, None]
    return b(b.torch.group_norm, xs[0], groups, *affine, c["eps"])


@rule("Dropout")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    axes = len(xs[0].shape) - 2
    kinds = {"elementwise": "Dropout", "alpha": "AlphaDropout", "channel": f"Dropout{axes}d"}
    made = getattr(b.torch.nn, kinds[c["form"]], None)
    if made is None:
        raise c.refuse_field("form", f"PyTorch has no form for an input of {xs[0].shape}")
    return b.module(c, made(c["rate"]), xs, {})


# ---- pools ---------------------------------------------------------------------------------------


class _Windows:
    """Where the windows of a Pool are."""

    def __init__(self, c: Layer, extents: Sequence[int]) -> None:
        self.axes = len(extents)
        self.kernel, self.stride = c.per_axis("kernel", self.axes), c.per_axis("stride", self.axes)
        self.stride = [s or k for s, k in zip(self.stride, self.kernel)]
        self.dilation = c.per_axis("dilation", self.axes)
        padding = list(c["padding"])
        ends = padding if len(padding) == 2 * self.axes else c.per_axis("padding", self.axes) * 2
        self.before, self.after = ends[: self.axes], ends[self.axes :]
        self.pads: List[int] = []  # as functional.pad() takes them
        for i in reversed(range(self.axes)):
            reach = self.dilation[i] * (self.kernel[i] - 1) + 1
            room = extents[i] + self.before[i] + self.after[i] - reach
            out = (room + (self.stride[i] - 1 if c["ceil"] else 0)) // self.stride[i] + 1
            if c["ceil"] and (out - 1) * self.stride[i] >= extents[i] + self.before[i]:
                out -= 1
            missing = (out - 1) * self.stride[i] + reach - extents[i] - self.before[i]
            self.pads += [self.before[i], missing]

    def counts(self, extents: Sequence[int], padding: bool) -> Any:
        """How many places each window has, with or without the padding, [1, 1, ..]."""
        out = np.ones([1] * (self.axes + 2), dtype=np.float32)
        for i in range(self.axes):
            pads = self.pads[2 * (self.axes - 1 - i) :][:2]
            line = np.zeros(sum(pads) + extents[i], dtype=np.float32)
            first = 0 if padding else pads[0]
            last = pads[0] + extents[i] + (self.after[i] if padding else 0)
            line[first:last] = 1
            reach = self.dilation[i] * (self.kernel[i] - 1) + 1
            starts = range(0, len(line) - reach + 1, self.stride[i])
            sums = [line[s : s + reach : self.dilation[i]].sum() for s in starts]
            shape = [1] * (self.axes + 2)
            shape[2 + i] = len(sums)
            out = out * np.array(sums, dtype=np.float32).reshape(shape)
        return out


def _sums(b: Builder, c: Layer, x: Value, windows: _Windows) -> Value:
    """Sums over the windows of each channel: a convolution with ones."""
    conv = getattr(b.functions, f"conv{windows.axes}d")
    flat = b(b.torch.flatten, x, 0, 1)
    ones = b.constant(c, "ones", np.ones([1, 1, *windows.kernel], dtype=np.float32))
    padded = b(b.functions.pad, b(b.torch.unsqueeze, flat, 1), windows.pads)
    y = b(conv, padded, ones, None, windows.stride, 0, windows.dilation)
    return b.reshape(y, x.shape[1], *y.shape[2:])


def _powers(b: Builder, x: Value, p: int) -> Value:
    return b(b.torch.abs, x) if p == 1 else b(b.torch.square, x)


def _root(b: Builder, x: Value, p: int) -> Value:
    return x if p == 1 else b(b.torch.sqrt, x)


def _adaptive(b: Builder, c: Layer, x: Value, output: List[int]) -> Value:
    axes, kind = len(output), c["kind"]
    c.skip("kernel", "stride", "padding", "dilation", "ceil", "include_padding", "p")
    mean = getattr(b.functions, f"adaptive_avg_pool{axes}d")
    if kind == "max":
        return b(getattr(b.functions, f"adaptive_max_pool{axes}d"), x, output)
    if kind == "average":
        return b(mean, x, output)
    counts = np.ones([1, 1, *output], dtype=np.float32)
    for at in all_of(*map(range, output)):
        for o, n, extent in zip(at, output, x.shape[2:]):
            counts[(0, 0, *at)] *= -(-(o + 1) * extent // n) - o * extent // n
    sums = b(b.torch.mul, b(mean, _powers(b, x, c["p"]), output), b.constant(c, "counts", counts))
    return _root(b, sums, c["p"])


@rule("Pool")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x, kind = xs[0], c["kind"]
    axes, extents = len(x.shape) - 2, x.shape[2:]
    if c["output"]:
        return _adaptive(b, c, x, c.per_axis("output", axes))
    windows = _Windows(c, extents)
    c.skip("p", "include_padding")  # of one kind
    if kind == "max":
        padded = b(b.functions.pad, x, windows.pads, value=float("-inf"))
        pool = getattr(b.functions, f"max_pool{axes}d")
        return b(pool, padded, windows.kernel, windows.stride, 0, windows.dilation)
    if kind == "lp":
        return _root(b, _sums(b, c, _powers(b, x, c["p"]), windows), c["p"])
    counts = windows.counts(extents, c["include_padding"])
    return b(b.torch.div, _sums(b, c, x, windows), b.constant(c, "counts", counts))


# ---- extents -------------------------------------------------------------------------------------


def _picked(b: Builder, c: Layer, x: Value, axis: int, places: Sequence[int]) -> Value:
    """The values at these places of an axis."""
    if list(places) == list(range(x.shape[axis])):
        return x
    index = b.constant(c, f"places{axis}", np.array(places, dtype=np.int64))
    return b(b.torch.index_select, x, axis, index)


@rule("Upsample")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x = xs[0]
    axes, extents = len(x.shape) - 2, x.shape[2:]
    factor = c.per_axis("factor", axes)
    size = c.per_axis("output", axes) if c["output"] else [e * f for e, f in zip(extents, factor)]
    c.skip("align_corners")  # of linear
    if c["mode"] == "linear":
        mode = ("linear", "bilinear", "trilinear")[axes - 1]
        corners = bool(c["align_corners"])
        return b(b.functions.interpolate, x, size, mode=mode, align_corners=corners)
    for i, (extent, out) in enumerate(zip(extents, size)):
        x = _picked(b, c, x, 2 + i, [o * extent // out for o in range(out)])
    return x


@rule("PixelShuffle")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x, r = xs[0], c["factor"]
    channels, *extents = x.shape[1:]
    axes = len(extents)
    if not c["inverse"]:
        split = [channels // r**axes, *[r] * axes, *extents]
        order = [0, 1, *(a for i in range(axes) for a in (2 + axes + i, 2 + i))]
        shape = [split[0], *(e * r for e in extents)]
    else:
        split = [channels, *(n for e in extents for n in (e // r, r))]
        order = [0, 1, *(3 + 2 * i for i in range(axes)), *(2 + 2 * i for i in range(axes))]
        shape = [channels * r**axes, *(e // r for e in extents)]
    return b.reshape(b(b.torch.permute, b.reshape(x, *split), order), *shape)


def _place(mode: str, i: int, n: int) -> int:
    """The index inside [0, n) whose value an outside index has."""
    if mode == "edge":
        return min(max(i, 0), n - 1)
    if mode == "wrap" or n == 1:
        return i % n
    i %= 2 * (n - 1)
    return i if i < n else 2 * (n - 1) - i


@rule("Pad")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x, mode = xs[0], c["mode"]
    before, after, rank = list(c["before"]), list(c["after"]), len(x.shape)
    ends = [([0] * (rank - len(e)) + e) for e in (before, after)]
    c.skip("value")  # of constant
    if mode == "constant":
        pads = [n for low, high in zip(reversed(ends[0]), reversed(ends[1])) for n in (low, high)]
        return b(b.functions.pad, x, pads, value=c["value"])
    for axis, (low, high) in enumerate(zip(*ends)):
        n = x.shape[axis]
        x = _picked(b, c, x, axis, [_place(mode, i, n) for i in range(-low, n + high)])
    return x


# ---- moves ---------------------------------------------------------------------------------------


@rule("Flatten")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    first = c["first"]
    return xs[0] if first >= len(xs[0].shape) else b(b.torch.flatten, xs[0], first)


@rule("Reshape")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    known = [n for n in c["shape"] if n != -1]
    left = int(np.prod(xs[0].shape[1:])) // max(1, int(np.prod(known)))
    return b.reshape(xs[0], *(left if n == -1 else n for n in c["shape"]))


@rule("View")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x = xs[0]
    shape = [
        n if n else b.batch_of(x) if i == 0 else x.shape[i] for i, n in enumerate(c["shape"])
    ]
    return b(b.torch.reshape, x, shape)


@rule("Permute")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    return b(b.torch.permute, xs[0], [0, *(a + 1 for a in c["axes"])])


@rule("Transpose")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    rank = len(xs[0].shape)
    axes = [a % rank for a in c["axes"]] or list(reversed(range(rank)))
    return b(b.torch.permute, xs[0], axes)


@rule("Concat")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    return b(b.torch.cat, list(xs), c["axis"])


@rule("Expand")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x, shape = xs[0], list(c["shape"])
    rank = max(len(shape), len(x.shape))
    own = [1] * (rank - len(x.shape)) + x.shape
    wanted = [1] * (rank - len(shape)) + shape
    out: List[Any] = [w if w != 1 else -1 for w in wanted]  # -1 means as in the input
    out = [1 if o == -1 and i < rank - len(x.shape) else o for i, o in enumerate(out)]
    if len(xs) > 1 and own[0] == 1 and wanted[0] == 1:
        out[0] = b.batch_of(xs[1])
    return b(b.torch.Tensor.expand, x, out)


@rule("Slice")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    x, starts, ends = xs[0], c["starts"], c["ends"]
    axes = c["axes"] or range(len(starts))
    steps = c.per_axis("steps", len(starts))
    for axis, start, end, step in zip(axes, starts, ends, steps):
        axis %= len(x.shape)
        if step > 0:
            x = b(b.torch.Tensor.__getitem__, x, _slices(axis, slice(start, end, step)))
        elif axis == 0:
            raise c.refuse_field("steps", "PyTorch does not turn the batch")
        else:
            x = _picked(b, c, x, axis, range(x.shape[axis])[start:end:step])
    return x


def _slices(axis: int, part: slice) -> Tuple[slice, ...]:
    return (*[slice(None)] * axis, part)


@rule("Reduce")
def _(b: Builder, c: Layer, xs: List[Value]) -> Value:
    t, x = b.torch, xs[0]
    axes = list(c["axes"]) or list(range(1, len(x.shape)))
    functions = {"sum": t.sum, "mean": t.mean, "max": t.amax, "min": t.amin, "l1": t.sum,
                 "sum_squares": t.sum, "l2": t.sum}  # fmt: skip
    function, keep = c["function"], bool(c["keep"])
    if function == "l1":
        x = b(t.abs, x)
    if function in ("sum_squares", "l2"):
        x = b(t.square, x)
    y = b(functions[function], x, axes, keepdim=keep) if axes else x
    y = b(t.sqrt, y) if function == "l2" else y
    return y if y.shape else b(t.reshape, y, (1,))

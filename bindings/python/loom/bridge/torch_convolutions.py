"""Rules for PyTorch's convolutions, of parameters and of functions of them."""

from typing import Any, List

import numpy as np

from .torch_graph import Graph, pairs, rule

_MAX_TAPS = 64


def _convolution(
    g: Graph, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> str:
    if weight not in g.arrays:
        return _computed(g, x, weight, bias, stride, padding, dilation, groups)
    w = g.array(weight)
    rank = w.ndim - 2
    pads = _same_pads(w, dilation, rank, padding) if isinstance(padding, str) else None
    if pads is None:
        pads = pairs(padding, rank) * 2
    inputs = [g.name(x), g.plan.constant(w)]
    if bias is not None:
        inputs.append(g.plan.constant(g.array(bias)))
    return g.plan.op(
        "Conv",
        *inputs,
        kernel_shape=list(w.shape[2:]),
        strides=pairs(stride, rank),
        pads=pads,
        dilations=pairs(dilation, rank),
        group=int(groups),
    )


def _computed(
    g: Graph, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> str:
    """With filters that are functions of parameters: the products of each tap, added up."""
    filters, channels, *kernel = (int(n) for n in g.shape(weight))
    taps, rank = int(np.prod(kernel)), len(kernel)
    if groups != 1 or isinstance(padding, str) or taps > _MAX_TAPS:
        raise NotImplementedError(
            f"filters that are computed, with groups, named padding or more than {_MAX_TAPS} taps"
        )
    steps, gaps = pairs(stride, rank), pairs(dilation, rank)
    pads = [0, 0, *pairs(padding, rank)]
    padded = g.op("Pad", x, g.ints(*pads, *pads), g.number(0))
    places = list(range(1, rank + 1))
    last = g.op("Transpose", padded, perm=[0, *range(2, rank + 2), 1])
    rows = g.op("Reshape", weight, g.ints(filters, channels, taps))
    out = [g.fixed(g.node, 2 + i) for i in range(rank)]
    total: Any = None
    for tap, at in enumerate(np.ndindex(*kernel)):
        first = [a * d for a, d in zip(at, gaps)]
        ends = [f + (n - 1) * s + 1 for f, n, s in zip(first, out, steps)]
        under = g.op("Slice", last, *(g.ints(*v) for v in (first, ends, places, steps)))
        one = g.op("Slice", rows, g.ints(tap), g.ints(tap + 1), g.ints(2))
        matrix = g.op("Transpose", g.op("Reshape", one, g.ints(filters, channels)), perm=[1, 0])
        part = g.op("MatMul", under, matrix)
        total = part if total is None else g.op("Add", total, part)
    y = total if bias is None else g.op("Add", total, bias)
    return g.op("Transpose", y, perm=[0, rank + 1, *places])


def _same_pads(w: Any, dilation: Any, rank: int, padding: str) -> List[int]:
    if padding == "valid":
        return [0] * (2 * rank)
    total = [d * (k - 1) for d, k in zip(pairs(dilation, rank), w.shape[2:])]
    low = [t // 2 for t in total]
    return low + [t - b for t, b in zip(total, low)]


@rule("aten.conv1d", "aten.conv2d", "aten.conv3d")
def _(
    g: Graph,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> str:
    return _convolution(g, x, weight, bias, stride, padding, dilation, groups)


@rule("aten.convolution.default")
def _(
    g: Graph,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> str:
    if transposed:
        more = (bias, stride, padding, output_padding, groups, dilation)
        return str(_transposed(g, x, weight, *more))
    return _convolution(g, x, weight, bias, stride, padding, dilation, groups)


@rule("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def _transposed(
    g: Graph,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> str:
    w = g.array(weight)
    rank = w.ndim - 2
    inputs = [g.name(x), g.plan.constant(w)]
    if bias is not None:
        inputs.append(g.plan.constant(g.array(bias)))
    return g.plan.op(
        "ConvTranspose",
        *inputs,
        kernel_shape=list(w.shape[2:]),
        strides=pairs(stride, rank),
        pads=pairs(padding, rank) * 2,
        output_padding=pairs(output_padding, rank),
        dilations=pairs(dilation, rank),
        group=int(groups),
    )


@rule("aten._weight_norm.default", "aten._weight_norm_interface.default")
def _(g: Graph, v: Any, length: Any, dim: int = 0) -> str:
    axes = [a for a in range(g.rank(v)) if a != dim % g.rank(v)]
    norm = g.op("ReduceL2", v, g.ints(*axes), keepdims=1)
    return g.op("Mul", v, g.op("Div", length, norm))

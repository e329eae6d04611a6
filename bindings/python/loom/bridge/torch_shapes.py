"""Rules for PyTorch's changes of shape, reductions, pooling and resizing."""

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from .torch_graph import Graph, pairs, rule
from .torch_order import place_of_extreme
from .torch_places import along

# ---- shapes --------------------------------------------------------------------------------------


@rule(
    "aten.view.default",
    "aten.reshape.default",
    "aten.flatten.using_ints",
    "aten._unsafe_view.default",
    "aten.unflatten.int",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.squeeze.default",
    "aten.unsqueeze.default",
    "aten.view_as.default",
)
def _(g: Graph, x: Any, *rest: Any) -> str:
    return g.shaped_as_output(g.name(x))


@rule("aten.permute.default")
def _(g: Graph, x: Any, dims: Sequence[int]) -> str:
    return g.op("Transpose", x, perm=[d % g.rank(x) for d in dims])


@rule("aten.transpose.int", "aten.t.default")
def _(g: Graph, x: Any, a: int = 0, b: int = 1) -> str:
    perm = list(range(g.rank(x)))
    perm[a], perm[b] = perm[b], perm[a]
    return g.op("Transpose", x, perm=perm)


@rule(
    "aten.contiguous.default",
    "aten.clone.default",
    "aten.dropout.default",
    "aten.dropout_.default",
    "aten.feature_dropout.default",
    "aten.alpha_dropout.default",
    "aten.detach.default",
    "aten.detach_.default",
    "aten.alias.default",
    "aten.to.dtype",
    "aten._to_copy.default",
    "aten.lift_fresh_copy.default",
    "aten.type_as.default",
    "aten.to.dtype_layout",
    "aten._assert_tensor_metadata.default",
)
def _(g: Graph, x: Any, *rest: Any, **options: Any) -> Any:
    if "assert" in str(g.node.target):
        return None
    value = g.node.meta["val"]
    if value.is_floating_point() != x.meta["val"].is_floating_point():
        return g.op("Cast", x, to=1 if value.is_floating_point() else 7)
    return g.name(x)


@rule("aten.cat.default", "aten.concat.default")
def _(g: Graph, parts: Sequence[Any], dim: int = 0) -> str:
    return g.op("Concat", *parts, axis=int(dim))


@rule("aten.stack.default")
def _(g: Graph, parts: Sequence[Any], dim: int = 0) -> str:
    axis = g.ints(dim % g.rank(g.node))
    return g.op("Concat", *(g.op("Unsqueeze", p, axis) for p in parts), axis=dim % g.rank(g.node))


@rule(
    "aten.split.Tensor", "aten.split_with_sizes.default", "aten.chunk.default", "aten.split.sizes"
)
def _(g: Graph, x: Any, how: Any, dim: int = 0) -> List[str]:
    sizes = [int(v.shape[dim]) for v in g.node.meta["val"]]
    return g.plan.ops("Split", g.name(x), g.ints(*sizes), outputs=len(sizes), axis=int(dim))


@rule("aten.unbind.int")
def _(g: Graph, x: Any, dim: int = 0) -> List[str]:
    count = g.fixed(x, dim)
    parts = g.plan.ops("Split", g.name(x), g.ints(*[1] * count), outputs=count, axis=int(dim))
    return [g.op("Squeeze", p, g.ints(dim)) for p in parts]


def _is_part(g: Graph, x: Any) -> bool:
    """Whether x is a parameter of which no other part is read. Cut, the rest of it would be lost:
    it stays whole, and a product picks the part."""
    return x in g.arrays and g.trains(x) and len(x.users) == 1


@rule("aten.slice.Tensor")
def _slice(
    g: Graph, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> str:
    if g.shape(x) == g.shape(g.node):
        return g.name(x)
    if _is_part(g, x):
        n = g.fixed(x, dim)
        kept = range(n)[slice(start, end if isinstance(end, int) else None, step)]
        return along(g, x, dim, np.eye(n)[:, list(kept)])
    first = 0 if start is None else start
    last = 2**31 - 1 if end is None or not isinstance(end, int) else min(end, 2**31 - 1)
    return g.op("Slice", x, g.ints(first), g.ints(last), g.ints(dim), g.ints(step))


@rule("aten.narrow.default")
def _(g: Graph, x: Any, dim: int, start: int, length: int) -> str:
    return _slice(g, x, dim, start, start + length)


@rule("aten.select.int")
def _(g: Graph, x: Any, dim: int, index: int) -> str:
    if _is_part(g, x) and g.fixed(x, dim) > 1:
        n = g.fixed(x, dim)
        picked = np.eye(n)[:, [index % n]]
        return g.shaped_as_output(along(g, x, dim, picked))
    return g.op("Gather", x, g.plan.constant(np.array(index, dtype=np.int64)), axis=int(dim))


@rule("aten.expand.default", "aten.expand_as.default")
def _(g: Graph, x: Any, *rest: Any, **options: Any) -> Optional[str]:
    source, target = g.shape(x), g.shape(g.node)
    if source == target:
        return g.name(x)
    if x in g.arrays and not x.meta["val"].is_floating_point():
        return None  # constant indices: who reads them looks at what they are made of
    aligned = [1] * (len(target) - len(source)) + source
    dims = [t if isinstance(t, int) else 1 for t in target]
    over = [i for i, (s, t) in enumerate(zip(aligned, target)) if isinstance(t, str) and s == 1]
    wider = any(s != t for s, t in zip(aligned, target) if isinstance(t, int))
    y = g.op("Expand", x, g.ints(*dims)) if wider or not over else g.name(x)
    return _over_the_batch(g, y, over[0], len(target)) if over else y


def _over_the_batch(g: Graph, x: str, axis: int, rank: int) -> str:
    """One sample for each of the batch, along an axis: added to the zeros that an input gives."""
    first = next(n for n in g.names if n.op == "placeholder")
    rows = g.plan.op("Flatten", g.names[first], axis=1)
    if not first.meta["val"].is_floating_point():
        rows = g.plan.op("Cast", rows, to=1)
    low = g.plan.op("ReduceMin", rows, g.ints(1), keepdims=1)
    zero = g.plan.op("Mul", low, g.number(0))
    shape = [1] * rank
    shape[axis] = -1
    return g.plan.op("Add", g.plan.op("Reshape", zero, g.ints(*shape)), x)


@rule("aten.repeat.default")
def _(g: Graph, x: Any, repeats: Sequence[Any]) -> str:
    source, target = g.shape(x), g.shape(g.node)
    open_axes = [i for i, n in enumerate(repeats) if not isinstance(n, int)]
    ones = [1] * (len(target) - len(source))
    if len(open_axes) > 1 or any([*ones, *source][i] != 1 for i in open_axes):
        raise NotImplementedError("a repetition over the open batch of several samples")
    counts = [n if isinstance(n, int) else 1 for n in repeats]
    y = g.op("Reshape", x, g.ints(*ones, *source)) if ones and x in g.arrays else g.name(x)
    if any(n != 1 for n in counts):
        y = g.op("Tile", y, g.ints(*counts))
    return _over_the_batch(g, y, open_axes[0], len(target)) if open_axes else y


@rule("aten.pad.default", "aten.constant_pad_nd.default")
def _(g: Graph, x: Any, pad: Sequence[int], mode: Any = "constant", value: Any = None) -> str:
    if not isinstance(mode, str):
        mode, value = "constant", mode
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    rank = g.rank(x)
    low, high = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    fill = [g.number(value or 0)] if mode == "constant" else []
    return g.op("Pad", x, g.ints(*low, *high), *fill, mode=names[mode])


@rule("aten.repeat_interleave.self_int")
def _(g: Graph, x: Any, repeats: int, dim: int = 0, **options: Any) -> str:
    places = np.repeat(np.arange(g.fixed(x, dim)), repeats)
    return g.op("Gather", x, g.ints(*(int(p) for p in places)), axis=int(dim))


@rule("aten.index.Tensor")
def _(g: Graph, x: Any, indices: Sequence[Any]) -> str:
    given = [axis for axis, index in enumerate(indices) if index is not None]
    if len(given) != 1:
        raise NotImplementedError("indices along several axes at once")
    places = g.array(indices[given[0]])
    if places.dtype.kind not in "iu" or places.ndim != 1:
        raise NotImplementedError("indices other than a list of places")
    extent = g.fixed(x, given[0])
    return g.op("Gather", x, g.ints(*(int(p) % extent for p in places)), axis=given[0])


@rule("aten.flip.default")
def _(g: Graph, x: Any, dims: Sequence[int]) -> str:
    n = len(dims)
    return g.op(
        "Slice", x, g.ints(*[-1] * n), g.ints(*[-(2**31)] * n), g.ints(*dims), g.ints(*[-1] * n)
    )


@rule("aten.pixel_shuffle.default")
def _(g: Graph, x: Any, factor: int) -> str:
    return g.op("DepthToSpace", x, blocksize=int(factor), mode="CRD")


# ---- reductions, pooling, resizing ---------------------------------------------------------------

_REDUCE = {"mean": "ReduceMean", "sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin"}
for _torch_name, _onnx_name in _REDUCE.items():

    @rule(
        f"aten.{_torch_name}.dim", f"aten.{_torch_name}.dim_IntList", f"aten.{_torch_name}.default"
    )
    def _(
        g: Graph,
        x: Any,
        dims: Any = None,
        keep: bool = False,
        _name: str = _onnx_name,
        **options: Any,
    ) -> str:
        axes = range(g.rank(x)) if dims is None or dims == [] else dims
        axes = [axes] if isinstance(axes, int) else list(axes)
        return g.op(_name, x, g.ints(*axes), keepdims=int(keep))


@rule("aten.max.dim", "aten.min.dim")
def _(g: Graph, x: Any, dim: int, keep: bool = False) -> List[Any]:
    largest = ".max." in str(g.node.target)
    kind = "ReduceMax" if largest else "ReduceMin"
    values = g.op(kind, x, g.ints(int(dim)), keepdims=int(keep))
    return [values, lambda: place_of_extreme(g, x, int(dim), largest, keep)]


@rule("aten.max.other", "aten.min.other")
def _(g: Graph, a: Any, b: Any) -> str:
    return g.op("Max" if ".max." in str(g.node.target) else "Min", a, b)


@rule("aten.logsumexp.default")
def _(g: Graph, x: Any, dims: Any, keep: bool = False) -> str:
    axes = g.ints(*([dims] if isinstance(dims, int) else dims))
    top = g.op("ReduceMax", x, axes, keepdims=1)
    total = g.op("ReduceSum", g.op("Exp", g.op("Sub", x, top)), axes, keepdims=1)
    y = g.op("Add", g.op("Log", total), top)
    return y if keep else g.shaped_as_output(y)


@rule("aten.var.correction", "aten.var.dim", "aten.std.correction", "aten.std.dim")
def _(
    g: Graph, x: Any, dims: Any = None, unbiased: Any = True, keep: Any = False, **options: Any
) -> str:
    keep = bool(options.get("keepdim", keep))
    correction = options.get("correction", 1 if unbiased is True else 0)
    axes = [dims] if isinstance(dims, int) else dims
    if not axes:
        raise NotImplementedError("a variance over all axes, the batch among them")
    count = int(np.prod([g.fixed(x, a) for a in axes]))
    correction = 1 if correction is None else correction
    apart = g.op("Sub", x, g.op("ReduceMean", x, g.ints(*axes), keepdims=1))
    total = g.op("ReduceSum", g.op("Mul", apart, apart), g.ints(*axes), keepdims=int(keep))
    y = g.op("Mul", total, g.number(1 / (count - correction)))
    return g.op("Sqrt", y) if ".std." in str(g.node.target) else y


@rule("aten.tril.default", "aten.triu.default")
def _(g: Graph, x: Any, diagonal: int = 0) -> str:
    cut = np.tril if "tril" in str(g.node.target) else np.triu
    kept = cut(np.ones((g.fixed(x, -2), g.fixed(x, -1))), diagonal)
    return g.op("Mul", x, g.plan.constant(kept, parameter=False))


@rule(
    "aten.max_pool1d.default",
    "aten.max_pool2d.default",
    "aten.max_pool3d.default",
    "aten.max_pool2d_with_indices.default",
)
def _(
    g: Graph,
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: bool = False,
) -> Any:
    rank = g.rank(x) - 2
    window = pairs(kernel, rank)
    y = g.op(
        "MaxPool",
        x,
        kernel_shape=window,
        strides=pairs(stride, rank) if stride else window,
        pads=pairs(padding, rank) * 2,
        dilations=pairs(dilation, rank),
        ceil_mode=int(ceil),
    )
    return [y] if "indices" in str(g.node.target) else y


@rule("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def _(
    g: Graph,
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: bool = False,
    count_pad: bool = True,
    divisor: Any = None,
) -> str:
    if divisor is not None:
        raise NotImplementedError("a divisor of one's own")
    rank = g.rank(x) - 2
    window = pairs(kernel, rank)
    return g.op(
        "AveragePool",
        x,
        kernel_shape=window,
        strides=pairs(stride, rank) if stride else window,
        pads=pairs(padding, rank) * 2,
        ceil_mode=int(ceil),
        count_include_pad=int(count_pad),
    )


@rule(
    "aten.adaptive_avg_pool1d.default",
    "aten.adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool3d.default",
    "aten._adaptive_avg_pool2d.default",
)
def _(g: Graph, x: Any, size: Any) -> str:
    return _adaptive(g, x, size, "AveragePool", "GlobalAveragePool")


@rule("aten.adaptive_max_pool1d.default", "aten.adaptive_max_pool2d.default")
def _(g: Graph, x: Any, size: Any) -> List[str]:
    return [_adaptive(g, x, size, "MaxPool", "GlobalMaxPool")]


def _adaptive(g: Graph, x: Any, size: Any, pool: str, whole: str) -> str:
    rank = g.rank(x) - 2
    sizes = pairs(size, rank)
    if all(s == 1 for s in sizes):
        return g.op(whole, x)
    extents = [g.fixed(x, 2 + i) for i in range(rank)]
    if any(e % s for e, s in zip(extents, sizes)):
        raise NotImplementedError("windows of different sizes")
    window = [e // s for e, s in zip(extents, sizes)]
    return g.op(pool, x, kernel_shape=window, strides=window)


@rule(
    "aten.upsample_nearest1d.vec",
    "aten.upsample_nearest2d.vec",
    "aten.upsample_nearest2d.default",
    "aten.upsample_bilinear2d.vec",
    "aten.upsample_bilinear2d.default",
    "aten.upsample_linear1d.vec",
    "aten.upsample_bicubic2d.vec",
)
def _(g: Graph, x: Any, size: Any = None, *rest: Any) -> str:
    name = str(g.node.target)
    corners = "nearest" not in name and bool(rest and rest[0])
    before, after = g.shape(x)[2:], g.shape(g.node)[2:]
    scales = [1.0, 1.0] + [int(b) / int(a) for a, b in zip(before, after)]
    mode = "nearest" if "nearest" in name else "cubic" if "cubic" in name else "linear"
    where = "asymmetric" if mode == "nearest" else "align_corners" if corners else "half_pixel"
    options: Dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        options["nearest_mode"] = "floor"
    if mode == "cubic":
        options["cubic_coeff_a"] = -0.75
    empty = ""
    return g.plan.op(
        "Resize", g.name(x), empty, g.plan.constant(np.array(scales), parameter=False), **options
    )

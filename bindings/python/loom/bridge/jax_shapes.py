"""Rules for JAX's changes of shape, reductions, windows and tables."""

from typing import Any, List, Sequence

import numpy as np

from .jax_graph import JaxGraph, Value, extents, rule


@rule("broadcast_in_dim")
def _(g: JaxGraph, x: Value, *rest: Any, broadcast_dimensions: Any = (), **params: Any) -> Value:
    target = [1] * len(g.shape)
    for i, axis in enumerate(broadcast_dimensions):
        target[axis] = x.shape[i]
    if x.note == ("ids",) and target[:-1] == x.shape:
        return x._replace(shape=target, note=("places", x))  # as gather takes them
    if x.array is not None:
        return Value(target, array=np.asarray(x.array).reshape(target))
    return Value(target, name=x.name if target == x.shape else g.reshaped(x.name, target))


@rule("reshape", "squeeze", "expand_dims")
def _(g: JaxGraph, x: Value, *rest: Any, **params: Any) -> Value:
    return g.made(g.reshaped(g.name(x), g.shape))


@rule("transpose")
def _(g: JaxGraph, x: Value, permutation: Sequence[int] = (), **params: Any) -> Value:
    note = x.note
    return g.transposed(x, permutation)._replace(note=note)


@rule("tile")
def _(g: JaxGraph, x: Value, reps: Sequence[Any] = (), **params: Any) -> Value:
    if all(r == 1 or s == 1 for r, s in zip(extents(reps), x.shape)):
        return x  # what is repeated stays one
    if any(isinstance(r, str) for r in extents(reps)):
        raise NotImplementedError("several rows repeated over the open batch")
    return g.made(g.op("Tile", x, g.ints(*reps)))


@rule("rev")
def _(g: JaxGraph, x: Value, dimensions: Sequence[int] = (), **params: Any) -> Value:
    n = len(dimensions)
    whole = (g.ints(*[-1] * n), g.ints(*[-(2**31)] * n), g.ints(*dimensions), g.ints(*[-1] * n))
    return g.made(g.op("Slice", x, *whole))


@rule("concatenate")
def _(g: JaxGraph, *parts: Value, dimension: int = 0, **params: Any) -> Value:
    return g.made(g.op("Concat", *parts, axis=int(dimension)))


@rule("pad")
def _(g: JaxGraph, x: Value, fill: Value, padding_config: Any = (), **params: Any) -> Value:
    if any(inner for _, _, inner in padding_config):
        raise NotImplementedError("zeros between elements")
    value = float(g.known(fill, "a number to pad with"))
    low, high = [p[0] for p in padding_config], [p[1] for p in padding_config]
    name = g.name(x)
    if any(p > 0 for p in low + high):
        wide = g.ints(*(max(p, 0) for p in low + high))
        name = g.op("Pad", name, wide, g.number(max(value, -1e30)), mode="constant")
    for axis, (a, b) in enumerate(zip(low, high)):
        if a < 0 or b < 0:
            ends = (g.ints(max(-a, 0)), g.ints(b if b < 0 else 2**31 - 1))
            name = g.op("Slice", name, *ends, g.ints(axis), g.ints(1))
    return g.made(name)


@rule("slice")
def _(
    g: JaxGraph,
    x: Value,
    start_indices: Sequence[int] = (),
    limit_indices: Sequence[Any] = (),
    strides: Any = None,
    **params: Any,
) -> Value:
    steps = strides or [1] * len(start_indices)
    axes = [
        i
        for i, (a, b, s) in enumerate(zip(start_indices, limit_indices, steps))
        if a != 0 or s != 1 or extents([b]) != [x.shape[i]]
    ]
    if any(isinstance(x.shape[i], str) for i in axes):
        raise NotImplementedError("a part of the open batch")
    bounds = [[int(v[i]) for i in axes] for v in (start_indices, limit_indices)]
    if not axes:
        return x
    more = (g.ints(*axes), g.ints(*(int(steps[i]) for i in axes)))
    return g.made(g.op("Slice", x, g.ints(*bounds[0]), g.ints(*bounds[1]), *more))


@rule("split")
def _(g: JaxGraph, x: Value, sizes: Sequence[int] = (), axis: int = 0, **params: Any) -> Any:
    if x.shape[axis] == 1:
        x = g.full(x, [*x.shape[:axis], int(sum(sizes)), *x.shape[axis + 1 :]])
    counts = g.ints(*sizes)
    names = g.plan.ops("Split", g.name(x), counts, outputs=len(sizes), axis=int(axis))
    shapes = [[*x.shape[:axis], int(s), *x.shape[axis + 1 :]] for s in sizes]
    return [Value(s, name=n) for s, n in zip(shapes, names)]


@rule("dynamic_slice")
def _(g: JaxGraph, x: Value, *starts: Value, slice_sizes: Sequence[int] = (), **p: Any) -> Value:
    first = [int(g.known(s, "a place to begin")) for s in starts]
    axes = [i for i, d in enumerate(slice_sizes) if extents([d]) != [x.shape[i]]]
    ends = [first[i] + int(slice_sizes[i]) for i in axes]
    if not axes:
        return x
    return g.made(g.op("Slice", x, g.ints(*(first[i] for i in axes)), g.ints(*ends), g.ints(*axes)))


# ---- reductions and windows ----------------------------------------------------------------------

_REDUCE = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}
for _jax_name, _onnx_name in _REDUCE.items():

    @rule(_jax_name)
    def _(g: JaxGraph, x: Value, axes: Any = (), _name: str = _onnx_name, **params: Any) -> Value:
        return g.made(g.op(_name, x, g.ints(*axes), keepdims=0))


def _pooled(kind: str) -> Any:
    def made(
        g: JaxGraph,
        x: Value,
        window_dimensions: Sequence[int] = (),
        window_strides: Sequence[int] = (),
        padding: Any = (),
        base_dilation: Sequence[int] = (),
        window_dilation: Sequence[int] = (),
        **params: Any,
    ) -> Value:
        if any(d != 1 for d in base_dilation):
            raise NotImplementedError("a window over zeros between elements")
        rank = len(window_dimensions)
        moved = [
            i
            for i in range(1, rank)
            if window_dimensions[i] != 1 or window_strides[i] != 1 or any(padding[i])
        ]
        still = [i for i in range(rank) if i not in moved]
        while len(still) > 2:  # windows of one element
            moved = sorted([*moved, still.pop(1)])
        if len(still) != 2:
            raise NotImplementedError("a window over the batch or over all other axes")
        order = [*still, *moved]
        x = g.transposed(x, order)
        window = [int(window_dimensions[i]) for i in moved]
        pads = [int(padding[i][0]) for i in moved] + [int(padding[i][1]) for i in moved]
        options = {"kernel_shape": window, "strides": [int(window_strides[i]) for i in moved]}
        if kind == "max":
            dilations = [int(window_dilation[i]) for i in moved]
            name = g.op("MaxPool", x, pads=pads, dilations=dilations, **options)
        else:
            if any(d != 1 for d in window_dilation):
                raise NotImplementedError("a sum over a dilated window")
            name = g.op("AveragePool", x, pads=pads, count_include_pad=1, **options)
            name = g.op("Mul", name, g.number(float(np.prod(window))))
        shape = [g.shape[i] for i in order]
        return g.transposed(Value(shape, name=name), np.argsort(order).tolist())

    return made


rule("reduce_window_sum")(_pooled("sum"))
rule("reduce_window_max")(_pooled("max"))


def _part(g: JaxGraph, x: Value, place: Any, numbers: Any, sizes: List[Any]) -> Value:
    """x[:, 2:5, -1] and the like, where an axis is open."""
    axes = [i for i in numbers.start_index_map if sizes[i] != x.shape[i]]
    first = [int(p) for i, p in zip(numbers.start_index_map, place) if i in axes]
    if any(isinstance(x.shape[i], str) for i in axes):
        raise NotImplementedError("a part of the open batch")
    name = g.name(x)
    if axes:
        ends = [f + int(sizes[i]) for i, f in zip(axes, first)]
        name = g.op("Slice", name, g.ints(*first), g.ints(*ends), g.ints(*axes))
    kept = [s for i, s in enumerate(sizes) if i not in numbers.collapsed_slice_dims]
    return Value(kept, name=name if kept == sizes else g.reshaped(name, kept))


# ---- tables --------------------------------------------------------------------------------------


@rule("gather")
def _(
    g: JaxGraph,
    table: Value,
    places: Value,
    dimension_numbers: Any = None,
    slice_sizes: Sequence[int] = (),
    **params: Any,
) -> Value:
    """Rows of a table, as jnp.take(table, ids, axis=0) has them, or one part at a known place."""
    numbers = dimension_numbers
    if places.array is not None and len(places.shape) == 1:
        return _part(g, table, np.asarray(places.array), numbers, extents(slice_sizes))
    rows = (
        tuple(numbers.collapsed_slice_dims) == (0,)
        and tuple(numbers.start_index_map) == (0,)
        and not getattr(numbers, "operand_batching_dims", ())
        and extents(slice_sizes)[1:] == table.shape[1:]
    )
    known = places.array is not None
    axes = tuple(numbers.start_index_map)
    along = axes == tuple(numbers.collapsed_slice_dims) and len(axes) == 1
    if known and along and len(places.shape) == 2 and axes[0] not in numbers.offset_dims:
        index = g.plan.constant(np.asarray(places.array)[:, 0].astype(np.int64))
        return g.made(g.op("Gather", table, index, axis=int(axes[0])))
    if not rows or not (known or (places.note is not None and places.note[0] == "places")):
        raise NotImplementedError("a gather that is not a look-up of rows by ids of the input")
    if known:
        array = np.asarray(places.array)
        if array.shape[-1] != 1:
            raise NotImplementedError("places of several axes")
        index = g.plan.constant(array[..., 0].astype(np.int64))
    else:
        index = places.noted().name
    return g.made(g.op("Gather", table, index, axis=0))

"""Rules for what PyTorch reads or writes at places that depend on an input: sorts, gathers, grids.

An order is a mask: which value of a row has which rank. A read at computed indices is a sum over
all indices, with weights that are mostly 0. Masks pass no gradient on, so that the gradient
reaches the values that were chosen, and of grids the weights, as in PyTorch. The masks of a row of
n values have n * n elements.
"""

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from .torch_graph import Graph, rule

MAX_VALUES = 1024  # of a row that is sorted

# ---- a row is the last axis ----------------------------------------------------------------------


def _row_last(rank: int, dim: int) -> List[int]:
    return [i for i in range(rank) if i != dim % rank] + [dim % rank]


def _rows(g: Graph, x: Any, dim: int) -> str:
    """x with an axis as the last one."""
    rank = g.rank(x)
    if dim % rank == rank - 1:
        return g.name(x)
    return g.op("Transpose", x, perm=_row_last(rank, dim))


def _from_rows(g: Graph, y: str, rank: int, dim: int) -> str:
    order = _row_last(rank, dim)
    back = [order.index(i) for i in range(rank)]
    return y if back == list(range(rank)) else g.op("Transpose", y, perm=back)


def _line(g: Graph, n: int) -> str:
    return g.plan.constant(np.arange(n, dtype=np.float64), parameter=False)


def _over(g: Graph, x: str, axis: int) -> str:
    return g.op("Unsqueeze", x, g.ints(axis))


def _sum(g: Graph, x: str, axis: int) -> str:
    return g.op("ReduceSum", x, g.ints(axis), keepdims=0)


def _chosen(g: Graph, mask: str, values: str, rank: int) -> str:
    """The sum over the last axis of values [.., n] where mask [.., k, n] is true."""
    return _sum(g, g.op("Where", mask, _over(g, values, rank - 1), g.number(0)), rank)


# ---- orders --------------------------------------------------------------------------------------


def _ranks(g: Graph, rows: str, n: int, rank: int, largest: bool) -> str:
    """How many values of its row come before each; among equal values, the first one comes
    first."""
    own, other = _over(g, rows, rank), _over(g, rows, rank - 1)
    before = np.tri(n, k=-1)
    total = None
    for name, where in (("OrEqual", before), ("", before.T)):
        found = g.op(("Greater" if largest else "Less") + name, other, own)
        counted = g.op(
            "Mul", g.op("Cast", found, to=1), g.plan.constant(where, parameter=False)
        )
        total = counted if total is None else g.op("Add", total, counted)
    return _sum(g, str(total), rank)


def _ordered(
    g: Graph, x: Any, dim: int, ranks: Sequence[int], largest: bool
) -> List[Callable[[], str]]:
    """The values of each row that have these ranks, and their places; each made if it is read."""
    rank, n = g.rank(x), g.fixed(x, dim)
    if n > MAX_VALUES:
        raise NotImplementedError(f"a row of {n} values to sort; at most {MAX_VALUES} are sorted")
    rows = _rows(g, x, dim)
    wanted = g.plan.constant(np.array(ranks, dtype=np.float64)[:, None], parameter=False)
    mask = g.op("Equal", _over(g, _ranks(g, rows, n, rank, largest), rank - 1), wanted)

    def values() -> str:
        return _from_rows(g, _chosen(g, mask, rows, rank), rank, dim)

    def places() -> str:
        found = g.op("MatMul", g.op("Cast", mask, to=1), _over(g, _line(g, n), 1))
        return _from_rows(g, g.op("Squeeze", found, g.ints(rank)), rank, dim)

    return [values, places]


@rule("aten.topk.default")
def _(
    g: Graph, x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> List[Any]:
    return list(_ordered(g, x, dim, range(k), largest))


@rule("aten.sort.default", "aten.sort.stable")
def _(g: Graph, x: Any, *rest: Any, **options: Any) -> List[Any]:
    dim, descending = _sort_options(g, rest, options)
    return list(_ordered(g, x, dim, range(g.fixed(x, dim)), descending))


@rule("aten.argsort.default", "aten.argsort.stable")
def _(g: Graph, x: Any, *rest: Any, **options: Any) -> str:
    dim, descending = _sort_options(g, rest, options)
    return _ordered(g, x, dim, range(g.fixed(x, dim)), descending)[1]()


def _sort_options(g: Graph, rest: Sequence[Any], options: Any) -> Tuple[int, bool]:
    given = {**dict(zip(("dim", "descending"), rest)), **options}
    return int(given.get("dim", -1)), bool(given.get("descending", False))


@rule("aten.kthvalue.default", "aten.median.dim")
def _(g: Graph, x: Any, *rest: Any, **options: Any) -> List[Any]:
    """One value of each row by its rank."""
    names = ("k", "dim", "keepdim") if "kthvalue" in str(g.node.target) else ("dim", "keepdim")
    given = {**dict(zip(names, rest)), **options}
    dim, keep = int(given.get("dim", -1)), bool(given.get("keepdim", False))
    at = int(given["k"]) - 1 if "k" in given else (g.fixed(x, dim) - 1) // 2
    parts = _ordered(g, x, dim, [at], largest=False)

    def without(part: Callable[[], str]) -> Callable[[], str]:
        return part if keep else lambda: g.op("Squeeze", part(), g.ints(dim % g.rank(x)))

    return [without(part) for part in parts]


def place_of_extreme(g: Graph, x: Any, dim: int, largest: bool, keep: bool) -> str:
    """Where the largest or smallest value of a row is: the first of equal ones."""
    n, rank, rows = g.fixed(x, dim), g.rank(x), _rows(g, x, dim)
    kind = "ReduceMax" if largest else "ReduceMin"
    extreme = g.op(kind, rows, g.ints(rank - 1), keepdims=1)
    own = g.op("Where", g.op("Equal", rows, extreme), _line(g, n), g.number(n - 1))
    place = _from_rows(g, g.op("ReduceMin", own, g.ints(rank - 1), keepdims=1), rank, dim)
    return place if keep else g.op("Squeeze", place, g.ints(dim % rank))


@rule("aten.argmax.default", "aten.argmin.default")
def _(g: Graph, x: Any, dim: Optional[int] = None, keepdim: bool = False) -> str:
    if dim is None:
        raise NotImplementedError("a place among the values of all axes, the batch among them")
    return place_of_extreme(g, x, dim, "argmax" in str(g.node.target), keepdim)


# ---- computed places -----------------------------------------------------------------------------


def computed(g: Graph, index: Any) -> bool:
    """Whether places depend on an input."""
    return index in g.names and index not in g.arrays


def _at(g: Graph, index: Any, n: int, dim: int) -> str:
    """[.., k, n], the axis as the last two: whether the place of a row is the i-th."""
    rows = _rows(g, index, dim)
    if index.op == "placeholder":
        rows = g.op("Cast", rows, to=1)
    return g.op("Equal", _over(g, rows, g.rank(index)), _line(g, n))


def _same_rows(g: Graph, x: Any, index: Any, dim: int) -> None:
    """Only the axis of the places may have another extent."""
    rank = g.rank(x)
    pairs = [(a, b) for i, (a, b) in enumerate(zip(g.shape(x), g.shape(index))) if i != dim % rank]
    if any(a != b for a, b in pairs):
        raise NotImplementedError("places of other extents than what they are taken from")


def gather_computed(g: Graph, x: Any, dim: int, index: Any) -> str:
    _same_rows(g, x, index, dim)
    rank = g.rank(x)
    mask = _at(g, index, g.fixed(x, dim), dim)
    return _from_rows(g, _chosen(g, mask, _rows(g, x, dim), rank), rank, dim)


@rule("aten.take_along_dim.default")
def _(g: Graph, x: Any, index: Any, dim: Optional[int] = None) -> str:
    if dim is None or not computed(g, index):
        raise NotImplementedError("places among all axes, or constant ones; use gather()")
    return gather_computed(g, x, dim, index)


@rule("aten.one_hot.default")
def _(g: Graph, index: Any, classes: int = -1) -> str:
    if classes < 0:
        raise NotImplementedError("as many classes as the largest place says")
    return g.op("Cast", _at(g, index, classes, -1), to=1)


def _distinct(index: Any) -> bool:
    """Whether the places are those of an order: none is there twice."""
    source = index.args[0] if "getitem" in str(index.target) else index
    return any(f"aten.{name}." in str(source.target) for name in ("topk", "sort", "argsort"))


def scatter_computed(g: Graph, x: Any, dim: int, index: Any, source: Any, adds: bool) -> str:
    """x, and in the places of each row the values of source, a tensor or one number."""
    _same_rows(g, x, index, dim)
    rank = g.rank(x)
    mask = _at(g, index, g.fixed(x, dim), dim)
    count = _sum(g, g.op("Cast", mask, to=1), rank - 1)
    if hasattr(source, "op"):
        if not adds and not _distinct(index):
            raise NotImplementedError("places that may be written twice")
        if g.shape(source) != g.shape(index):
            raise NotImplementedError("places of another shape than what is scattered")
        values = _over(g, _rows(g, source, dim), rank)
        new = _sum(g, g.op("Where", mask, values, g.number(0)), rank - 1)
    else:
        new = g.op("Mul", count, g.number(source)) if adds else g.number(source)
    rows = _rows(g, x, dim)
    written = g.op("Greater", count, g.number(0.5))
    y = g.op("Add", rows, new) if adds else g.op("Where", written, new, rows)
    return _from_rows(g, y, rank, dim)


# ---- grids ---------------------------------------------------------------------------------------

BILINEAR, NEAREST = 0, 1
ZEROS, BORDER = 0, 1


def _constant_grid(g: Graph, grid: Any) -> Any:
    """[1, H, W, 2], if no input and no parameter that trains changes it, and samples share it."""
    while grid not in g.arrays and str(grid.target).startswith("aten.expand"):
        if g.shape(grid)[1:] != g.shape(grid.args[0])[-3:]:
            return None
        grid = grid.args[0]
    if grid not in g.arrays or g.trains(grid):
        return None
    array = np.asarray(g.array(grid))
    array = array.reshape(-1, *array.shape[-3:])
    return array[:1] if (array == array[:1]).all() else None


def _constant_weights(line: Any, n: int, mode: int, padding: int, corners: bool) -> Any:
    """[1, P, n]: the share of each place in each point, computed in float32 as PyTorch does."""
    line = np.float32(line).reshape(1, -1, 1)
    at = (line + 1) / 2 * (n - 1) if corners else ((line + 1) * n - 1) / 2
    at = np.clip(at, 0, n - 1) if padding == BORDER else at
    if mode == NEAREST:
        return np.float64(np.rint(at) == np.arange(n))
    return np.maximum(1 - np.abs(np.float64(at) - np.arange(n)), 0)


def _truth(g: Graph, name: str, a: str, b: float) -> str:
    return g.op("Cast", g.op(name, a, g.number(b)), to=1)


def _computed_weights(g: Graph, line: str, n: int, padding: int, corners: bool) -> str:
    """The same of computed points [N, P], by masks: at a place itself, the gradient is that of the
    cell after it, as in PyTorch."""
    up = g.op("Add", line, g.number(1))
    if corners:
        at = g.op("Mul", up, g.number((n - 1) / 2))
    else:
        at = g.op("Mul", g.op("Sub", g.op("Mul", up, g.number(n)), g.number(1)), g.number(0.5))
    if padding == BORDER:  # the gradient of a point beyond is 0
        high = _truth(g, "GreaterOrEqual", at, n - 1)
        inside = g.op("Mul", _truth(g, "Greater", at, 0), g.op("Sub", g.number(1), high))
        at = g.op("Add", g.op("Mul", at, inside), g.op("Mul", high, g.number(n - 1)))
    far = g.op("Sub", _over(g, at, 2), _line(g, n))
    after = _truth(g, "GreaterOrEqual", far, 0)
    near = g.op("Mul", after, _truth(g, "Less", far, 1))
    before = g.op("Mul", g.op("Sub", g.number(1), after), _truth(g, "GreaterOrEqual", far, -1))
    return g.op(
        "Add",
        g.op("Mul", near, g.op("Sub", g.number(1), far)),
        g.op("Mul", before, g.op("Add", far, g.number(1))),
    )


def _axis_weights(g: Graph, grid: Any, axis: int, n: int, options: Tuple[int, int, bool]) -> str:
    """[N or 1, n, P]: the shares of the places of an axis; axis 0 of a point is the width."""
    mode, padding, corners = options
    array = _constant_grid(g, grid)
    if array is not None:
        shares = _constant_weights(array[..., axis], n, mode, padding, corners)
        return g.plan.constant(np.moveaxis(shares, 1, 2), parameter=False)
    if mode == NEAREST:
        raise NotImplementedError("the nearest places of a grid that depends on an input")
    samples, high, wide, _ = g.shape(grid)
    points = g.shaped_as_output(g.name(grid), [samples, int(high) * int(wide), 2])
    line = g.op("Gather", points, g.plan.constant(np.array(axis, dtype=np.int64)), axis=2)
    return g.op("Transpose", _computed_weights(g, line, n, padding, corners), perm=[0, 2, 1])


@rule("aten.grid_sampler.default", "aten.grid_sampler_2d.default")
def _(g: Graph, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> str:
    if g.rank(x) != 4:
        raise NotImplementedError("a grid of points in a volume")
    if mode not in (BILINEAR, NEAREST) or padding not in (ZEROS, BORDER):
        raise NotImplementedError("bicubic sampling, or padding by reflection")
    samples, channels, high, wide = g.shape(x)
    options = (int(mode), int(padding), bool(corners))
    by_width = _axis_weights(g, grid, 0, int(wide), options)
    by_height = _axis_weights(g, grid, 1, int(high), options)
    lines = g.shaped_as_output(g.name(x), [samples, int(channels) * int(high), wide])
    across = g.op("MatMul", lines, by_width)
    points = int(np.prod([int(n) for n in g.shape(g.node)[2:]]))
    across = g.shaped_as_output(across, [samples, channels, high, points])
    return g.shaped_as_output(_sum(g, g.op("Mul", across, _over(g, by_height, 1)), 2))

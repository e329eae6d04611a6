"""Rules for PyTorch's moves along an axis: rolls, sums from the start, scattered sums, Fourier.

They are products with constant matrices, or slices that are joined again. torch_order.py has those
whose indices depend on an input.
"""

import math
from importlib import import_module
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from .torch_graph import Graph, rule
from .torch_order import computed, gather_computed, scatter_computed

# ---- products along an axis ----------------------------------------------------------------------


def along(g: Graph, x: Any, axis: int, matrix: Any) -> str:
    """sum_i x[.., i, ..] matrix[i, o] along an axis; x is a node or a name."""
    rank = g.rank(g.node) if isinstance(x, str) else g.rank(x)
    constant = g.plan.constant(np.asarray(matrix, dtype=np.float64), parameter=False)
    if axis % rank == rank - 1:
        return g.op("MatMul", x, constant)
    order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
    turned = g.op("MatMul", g.op("Transpose", x, perm=order), constant)
    return g.op("Transpose", turned, perm=[order.index(i) for i in range(rank)])


@rule("aten.cumsum.default")
def _(g: Graph, x: Any, dim: int, **options: Any) -> str:
    n = g.fixed(x, dim)
    return along(g, x, dim, np.triu(np.ones((n, n))))


@rule("aten.roll.default")
def _(g: Graph, x: Any, shifts: Any, dims: Sequence[int] = ()) -> str:
    if not dims:
        raise NotImplementedError("a roll over all axes at once, the batch among them")
    y: Any = x
    for shift, dim in zip([shifts] if isinstance(shifts, int) else shifts, dims):
        n = g.fixed(x, dim)
        order = [(i - int(shift)) % n for i in range(n)]
        if shift % n == 0:
            continue
        cut = order.index(0)
        parts = [(order[0], n), (0, n - cut)]
        y = g.op(
            "Concat",
            *(g.op("Slice", y, g.ints(a), g.ints(b), g.ints(int(dim))) for a, b in parts),
            axis=int(dim),
        )
    return y if isinstance(y, str) else g.name(y)


# ---- constant indices ----------------------------------------------------------------------------


def _index(g: Graph, node: Any) -> Any:
    """Indices that depend on no input; axes that stay open have the extent 1."""
    if node in g.arrays:
        return g.array(node)
    if str(getattr(node, "target", "")).startswith("aten.expand"):
        target = [d if isinstance(d, int) else 1 for d in g.shape(node)]
        return np.broadcast_to(_index(g, node.args[0]), target)
    raise NotImplementedError("indices that depend on an input")


def _line(g: Graph, node: Any, dim: int, rank: int) -> List[int]:
    """Indices that are the same for all other axes, as a list."""
    index = np.moveaxis(_index(g, node), dim % rank, 0)
    rows = index.reshape(index.shape[0], -1)
    if rows.shape[1] != 1 and not (rows == rows[:, :1]).all():
        raise NotImplementedError("indices that differ between places of another axis")
    return [int(i) for i in rows[:, 0]]


def _gathered(places: Sequence[int], n: int) -> Any:
    """[len(places), n]: what lands where."""
    out = np.zeros((len(places), n))
    out[np.arange(len(places)), np.asarray(places) % n] = 1
    return out


def _onto(g: Graph, x: Any, added: str) -> str:
    """x + added; an x of zeros may have been made for one batch."""
    zeros = x in g.arrays and not g.arrays[x].any() and not g.trains(x)
    return added if zeros else g.op("Add", x, added)


@rule("aten.index_add.default")
def _(g: Graph, x: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> str:
    places = _line(g, index, 0, 1)
    added = along(g, source, dim, alpha * _gathered(places, g.fixed(x, dim)))
    return _onto(g, x, added)


@rule("aten.scatter_add.default", "aten.scatter.src")
def _(g: Graph, x: Any, dim: int, index: Any, source: Any) -> str:
    if computed(g, index):
        return scatter_computed(g, x, dim, index, source, "scatter_add" in str(g.node.target))
    places = _line(g, index, dim, g.rank(x))
    if g.shape(source) != g.shape(index):
        raise NotImplementedError("indices of another shape than what is scattered")
    n = g.fixed(x, dim)
    placed = along(g, source, dim, _gathered(places, n))
    if "scatter_add" in str(g.node.target):
        return _onto(g, x, placed)
    if len(set(places)) != len(places):
        raise NotImplementedError("a place that is written twice")
    shape = [1] * g.rank(x)
    shape[dim] = n
    kept = np.ones(n)
    kept[places] = 0
    left = g.op("Mul", x, g.plan.constant(kept.reshape(shape), parameter=False))
    return g.op("Add", left, placed)


@rule("aten.scatter.value")
def _(g: Graph, x: Any, dim: int, index: Any, value: float) -> str:
    if not computed(g, index):
        raise NotImplementedError("one number for constant places")
    return scatter_computed(g, x, dim, index, value, adds=False)


@rule("aten.gather.default")
def _(g: Graph, x: Any, dim: int, index: Any, sparse_grad: bool = False) -> str:
    if computed(g, index):
        return gather_computed(g, x, dim, index)
    places = [p % g.fixed(x, dim) for p in _line(g, index, dim, g.rank(x))]
    before, after = g.shape(x), g.shape(g.node)
    if any(a != b for i, (a, b) in enumerate(zip(before, after)) if i != dim % len(before)):
        raise NotImplementedError("indices of other extents than what they are taken from")
    return g.op("Gather", x, g.ints(*places), axis=int(dim))


@rule("aten.affine_grid_generator.default")
def _(g: Graph, theta: Any, size: Sequence[Any], align_corners: bool = False) -> str:
    torch: Any = import_module("torch")
    extents = [int(n) for n in g.shape(g.node)[1:-1]]
    lines = []
    for n in extents:
        # With PyTorch's roundings: at a place itself they decide which cell has the gradient.
        line = torch.linspace(-1, 1, n).numpy() if n > 1 else np.zeros(1, np.float32)
        lines.append(line if align_corners else line * np.float32(n - 1) / np.float32(n))
    places = np.stack([*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(extents)], -1)
    base = g.plan.constant(places.reshape(-1, len(extents) + 1), parameter=False)
    turned = g.op("Transpose", theta, perm=[0, 2, 1])
    return g.shaped_as_output(g.op("MatMul", base, turned))


# ---- Fourier -------------------------------------------------------------------------------------

Complex = List[Optional[str]]  # names of the real and the imaginary part; None: zeros


def _parts(g: Graph, x: Any) -> Tuple[Any, Any]:
    if x in g.arrays and g.arrays[x].is_complex():
        raise NotImplementedError("complex parameters")
    held = g.names.get(x)
    return (held[0], held[1]) if isinstance(held, list) else (g.name(x), None)


def _scale(norm: Optional[str], n: int, inverse: bool) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse == (norm in (None, "backward")) else 1.0


def _sum(g: Graph, a: Optional[str], b: Optional[str]) -> Optional[str]:
    return a if b is None else b if a is None else g.op("Add", a, b)


def _fourier(
    g: Graph, parts: Any, axis: int, norm: Optional[str], inverse: bool, n: int, out: int
) -> Complex:
    angles = 2 * np.pi * np.outer(np.arange(n), np.arange(out)) / n
    sign, scale = (1 if inverse else -1), _scale(norm, n, inverse)
    cos, sin = scale * np.cos(angles), sign * scale * np.sin(angles)
    real, imag = parts

    def times(x: Optional[str], matrix: Any) -> Optional[str]:
        return None if x is None else along(g, x, axis, matrix)

    return [
        _sum(g, times(real, cos), times(imag, -sin)),
        _sum(g, times(real, sin), times(imag, cos)),
    ]


def _whole(g: Graph, n: Any) -> None:
    if n is not None and any(v is not None for v in np.ravel(np.array(n, dtype=object))):
        raise NotImplementedError("a transform that cuts or pads its input")


@rule("aten.fft_fft.default", "aten.fft_ifft.default", "aten.fft_rfft.default")
def _(g: Graph, x: Any, n: Any = None, dim: int = -1, norm: Optional[str] = None) -> Complex:
    if n is not None and n != g.fixed(x, dim):
        _whole(g, n)
    inverse, extent = "ifft" in str(g.node.target), g.fixed(x, dim)
    return _fourier(g, _parts(g, x), dim, norm, inverse, extent, g.fixed(g.node, dim))


@rule("aten.fft_fft2.default", "aten.fft_ifft2.default", "aten.fft_fftn.default")
def _(g: Graph, x: Any, s: Any = None, dim: Any = (-2, -1), norm: Optional[str] = None) -> Complex:
    _whole(g, s)
    if dim is None:
        raise NotImplementedError("a transform over all axes, the batch among them")
    parts: Any = _parts(g, x)
    for axis in dim:
        extent = g.fixed(x, axis)
        parts = _fourier(g, parts, axis, norm, "ifft" in str(g.node.target), extent, extent)
    return list(parts)


@rule("aten.fft_irfft.default")
def _(g: Graph, x: Any, n: Any = None, dim: int = -1, norm: Optional[str] = None) -> str:
    half, extent = g.fixed(x, dim), g.fixed(g.node, dim)
    if half != extent // 2 + 1:
        raise NotImplementedError("a transform that cuts or pads its input")
    # The values at the missing positions are the conjugates of others.
    weights = np.full((half, 1), 2.0)
    weights[0] = 1
    if extent % 2 == 0:
        weights[-1] = 1
    angles = 2 * np.pi * np.outer(np.arange(half), np.arange(extent)) / extent
    scale = _scale(norm, extent, True)
    real, imag = _parts(g, x)
    y = along(g, real, dim, scale * weights * np.cos(angles))
    if imag is None:
        return y
    return g.op("Add", y, along(g, imag, dim, -scale * weights * np.sin(angles)))


@rule("aten.real.default", "aten.imag.default")
def _(g: Graph, x: Any) -> str:
    part = _parts(g, x)["imag" in str(g.node.target)]
    return g.op("Mul", _parts(g, x)[0], g.number(0)) if part is None else str(part)


@rule("aten.view_as_real.default")
def _(g: Graph, x: Any) -> str:
    last = g.ints(g.rank(x))
    real, imag = _parts(g, x)
    imag = imag or g.op("Mul", real, g.number(0))
    return g.op("Concat", *(g.op("Unsqueeze", p, last) for p in (real, imag)), axis=g.rank(x))


@rule("aten.abs.default")
def _(g: Graph, x: Any) -> str:
    real, imag = _parts(g, x)
    if imag is None:
        return g.op("Abs", real)
    return g.op("Sqrt", g.op("Add", g.op("Mul", real, real), g.op("Mul", imag, imag)))

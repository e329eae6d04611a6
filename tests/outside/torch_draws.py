"""How far roundings alone move PyTorch, to decide whether a difference from it comes from
rounding. For torch_training.py and onnx_torch_training.py.

A draw is a run of PyTorch in float32. Its sums are those of oneDNN or of PyTorch's own
kernels, each weight may move by a rounding of float32 first, or both. A difference from float64 is
a rounding if it is at most the limit. It also is one if it is at most FACTOR times the largest of
any draw at the same index. One draw shows little: where a ReLU is almost 0, or Adam divides noise
by noise,
most draws move nothing and some move all. So further draws are taken until they explain the
difference, or all are taken.
"""

import numpy as np

FACTOR = 3
# The number type, the seed of the moves of the weights, if they move, and whether oneDNN sums.
FLOATS = (("float64", True), ("float32", True), ("float32", False))
WAYS = [("float32", None, True), ("float32", None, False)]
WAYS += [(dtype, seed, onednn) for seed in range(1, 7) for dtype, onednn in FLOATS]


class Draws:
    """make(dtype, seed) for each of `ways`: computed when it is asked for, and kept."""

    def __init__(self, make, ways=None):
        self.make, self.ways, self.kept = make, WAYS if ways is None else ways, []

    def __iter__(self):
        for i, way in enumerate(self.ways):
            if i == len(self.kept):
                self.kept.append(self._made(*way))
            yield self.kept[i]

    def _made(self, dtype, seed, onednn):
        import torch  # a recorded file is compared without PyTorch

        with torch.backends.mkldnn.flags(enabled=onednn):
            return self.make(dtype, seed)


def explained(off, limit, draws, own_of):
    """Where a difference `off` (a number or an array) is one of rounding, and the largest
    difference of the draws that were taken; own_of tells that of one draw."""
    off = np.asarray(off)
    own = np.zeros_like(off)
    right = off <= limit
    left = iter(draws)
    while not right.all():
        draw = next(left, None)  # a draw costs as much as what it explains
        if draw is None:
            break
        own = np.maximum(own, own_of(draw))
        right = off <= np.maximum(limit, FACTOR * own)
    return right, own


def move(parameters, seed):
    """Moves each number by up to a rounding of float32; nothing without a seed."""
    import torch

    if seed is None:
        return
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in parameters:
            p.mul_(1 + 2.0**-23 * (2 * torch.rand(p.shape, generator=draw, dtype=p.dtype) - 1))

"""Parts of random TFLite models: inputs, images, partners, windows that fit."""

import numpy as np

ACTS = (0, 0, 0, 1, 2, 3)


def pick(r, items):
    return items[int(r.integers(0, len(items)))]


def whole(r, low, high):
    return int(r.integers(low, high + 1))


def drawn(r, shape, size=2.0):
    return r.normal(0, size, shape).astype(np.float32)


def picture(m, r, channels=None, least=3, most=9):
    """An image; sometimes after a convolution, so that its readers have channels first."""
    c = channels or whole(r, 1, 6)
    x = m.input(drawn(r, [1, whole(r, least, most), whole(r, least, most), c]))
    if r.random() < 0.4:
        k = m.constant(drawn(r, [c, 1, 1, c], 0.7))
        b = m.constant(drawn(r, [c], 0.5))
        x = m.op("CONV_2D", [x, k, b], m.shape(x), ("Conv2DOptions", {"strideW": 1, "strideH": 1}))
    return x


def any_rank(m, r, least=1, most=4):
    rank = whole(r, least, most)
    if rank == 4:
        return picture(m, r)
    x = m.input(drawn(r, [1] + [whole(r, 1, 6) for _ in range(rank)][: max(rank - 1, 0)]))
    return x


def window_out(extent, k, s, d, same):
    covered = (k - 1) * d + 1
    return -(-extent // s) if same else -(-(extent - covered + 1) // s)


def sliding(r, h, w, dilated=True):
    """Kernel, stride, dilation and padding that fit."""
    while True:
        k, s = [whole(r, 1, 4), whole(r, 1, 4)], [whole(r, 1, 3), whole(r, 1, 3)]
        d = [whole(r, 1, 2), whole(r, 1, 2)] if dilated and r.random() < 0.3 else [1, 1]
        if d != [1, 1]:
            s = [1, 1]
        same = r.random() < 0.5
        if same or all((k[i] - 1) * d[i] + 1 <= e for i, e in enumerate((h, w))):
            return k, s, d, same


def partner(m, r, x, positive=False, least=0.3):
    """A second operand that fits: of the same shape, or broadcast; a constant, an input, or made of
    x."""
    dims = m.shape(x)
    if r.random() < 0.3 and not positive:
        return m.op("TANH", [x], dims)
    if r.random() < 0.5:
        dims = [d if r.random() < 0.6 else 1 for d in dims]
        dims = dims[whole(r, 0, len(dims) - 1) :]
        if r.random() < 0.2:
            dims = []
    values = drawn(r, dims)
    if positive:
        values = np.abs(values) + np.float32(least)
    return m.constant(values)

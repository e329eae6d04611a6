"""Random small networks over many layer kinds, with inputs for them."""

import loom
import numpy as np

ACTIVATIONS = ["linear", "relu", "leaky_relu", "silu", "gelu", "tanh", "sigmoid", "mish", "elu"]


def _dense_part(random, width):
    layers = []
    for _ in range(random.integers(1, 4)):
        kind = random.integers(0, 5)
        if kind == 0:
            layers.append(loom.RmsNorm(width))
        elif kind == 1:
            layers.append(loom.LayerNorm(width))
        elif kind == 2:
            layers.append(loom.SwiGlu(width, int(random.integers(1, 20))))
        elif kind == 3:
            layers.append(loom.Residual([loom.Dense(width, width, activation="tanh")]))
        else:
            out = int(random.integers(1, 24))
            layers.append(loom.Dense(width, out, activation=str(random.choice(ACTIVATIONS))))
            width = out
    return layers, width


def _rows(random):
    width = int(random.integers(1, 24))
    layers, last = _dense_part(random, width)
    return [*layers, loom.Dense(last, 3)], (width,)


def _picture(random):
    channels, out = int(random.integers(1, 4)), int(random.integers(1, 6))
    size, kernel = int(random.integers(5, 10)), int(random.choice([1, 3]))
    conv = loom.Conv2d(channels, out, kernel, padding=kernel // 2, activation="relu")
    return [conv, loom.Dense(out * size * size, 4)], (channels, size, size)


def _steps(random):
    steps, width, hidden = (int(n) for n in random.integers(2, 9, 3))
    kind = [loom.Rnn, loom.Lstm, loom.Gru][random.integers(0, 3)]
    return [kind(width, hidden, return_sequence=False), loom.Dense(hidden, 2)], (steps, width)


def _attention(random):
    heads, head = int(random.integers(1, 4)), 2 * int(random.integers(1, 4))
    width, steps = heads * head, int(random.integers(2, 7))
    attention = loom.MultiHeadAttention(width, heads, heads, head)
    return [attention, loom.Dense(width, 3)], (steps, width)


def random_network(seed):
    """A network, its layers, and inputs [n, sample]; the same for the same seed."""
    random = np.random.default_rng(seed)
    layers, shape = [_rows, _picture, _steps, _attention][seed % 4](random)
    dtype = str(random.choice(["float32", "float32", "float16", "int8", "q8_0", "q4_0", "ternary"]))
    net = loom.Sequential(layers, input=shape, seed=seed, dtype=dtype)
    x = random.normal(size=(int(random.integers(1, 9)), *shape)).astype(np.float32)
    return net, x

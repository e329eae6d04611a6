"""Functions of JAX and modules of flax with random weights, by name, for absorb_check.py."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax import nnx

RNG = np.random.default_rng(4)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def bound(module, *inputs):
    """With distinct variables: none is 0 or 1, as at initialization."""
    variables = module.init(jax.random.key(0), *inputs)
    changed = jax.tree_util.tree_map(
        lambda a: a + (normal(*a.shape) * 0.1 if a.ndim > 1 else abs(normal(*a.shape)) * 0.3),
        variables,
    )
    return module.bind(changed)


class Mlp(nn.Module):
    act: object = nn.relu
    widths: tuple = (12, 12, 4)

    @nn.compact
    def __call__(self, x):
        for i, width in enumerate(self.widths):
            x = nn.Dense(width, use_bias=i != 1)(x if i == 0 else self.act(x))
        return x


class Cnn(nn.Module):
    """The example of MNIST in flax."""

    @nn.compact
    def __call__(self, x):
        x = nn.avg_pool(nn.relu(nn.Conv(8, (3, 3))(x)), (2, 2), strides=(2, 2))
        x = nn.avg_pool(nn.relu(nn.Conv(12, (3, 3))(x)), (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        return nn.log_softmax(nn.Dense(10)(nn.relu(nn.Dense(16)(x))))


class Residual(nn.Module):
    width: int
    stride: int = 1

    @nn.compact
    def __call__(self, x):
        norm = lambda: nn.BatchNorm(use_running_average=True)  # noqa: E731
        y = nn.Conv(self.width, (3, 3), (self.stride, self.stride), use_bias=False)(x)
        y = nn.Conv(self.width, (3, 3), use_bias=False)(nn.relu(norm()(y)))
        y = norm()(y)
        if y.shape != x.shape:
            x = norm()(nn.Conv(self.width, (1, 1), (self.stride, self.stride), use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.Conv(8, (7, 7), (2, 2))(x), (3, 3), (2, 2), "SAME")
        for width, stride in ((8, 1), (16, 2), (32, 2)):
            x = Residual(width, stride)(x)
        return nn.Dense(5)(x.mean((1, 2)))


class Block(nn.Module):
    """A block of a transformer."""

    causal: bool = False

    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(x[..., 0]) if self.causal else None
        y = nn.LayerNorm(epsilon=0.1)(x)
        x = x + nn.MultiHeadDotProductAttention(2, qkv_features=12)(y, y, mask=mask)
        y = nn.RMSNorm(epsilon=0.1)(x)
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(24)(y)))


class Gpt(nn.Module):
    @nn.compact
    def __call__(self, ids):
        table = nn.Embed(31, 8)
        x = table(ids) + self.param("places", nn.initializers.normal(1.0), (ids.shape[1], 8))
        for _ in range(2):
            x = Block(causal=True)(x)
        return table.attend(nn.LayerNorm()(x))


class Vit(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(8, (4, 4), (4, 4), padding="VALID")(x)
        x = x.reshape((x.shape[0], -1, x.shape[-1]))
        token = self.param("token", nn.initializers.normal(1.0), (1, 1, 8))
        x = jnp.concatenate([jnp.tile(token, (x.shape[0], 1, 1)), x], 1)
        return nn.Dense(5)(Block()(x)[:, 0])


class Tagger(nn.Module):
    cell: object
    both: bool = False

    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(13, 6)(ids)
        y = nn.RNN(self.cell(5))(x)
        if self.both:
            y = jnp.concatenate([y, nn.RNN(self.cell(5), reverse=True, keep_order=True)(x)], -1)
        return nn.Dense(4)(y)


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(4 * 3 * 8)(x)).reshape((x.shape[0], 4, 3, 8))
        x = nn.relu(nn.ConvTranspose(6, (3, 3), (2, 2))(x))
        return nn.sigmoid(nn.ConvTranspose(1, (4, 3), (2, 1), padding="VALID")(x))


class WaveNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        total = 0
        x = nn.Dense(6)(x)
        for n in range(3):
            y = nn.Conv(12, (2,), kernel_dilation=2**n, padding="CAUSAL")(x)
            a, b = jnp.split(y, 2, -1)
            y = nn.Dense(6)(jnp.tanh(a) * nn.sigmoid(b))
            total, x = total + y, x + y
        return nn.Dense(3)(nn.relu(total))


class Mixed(nn.Module):
    """Groups, depthwise, other paddings and norms."""

    @nn.compact
    def __call__(self, x):
        x = nn.swish(nn.GroupNorm(2, epsilon=0.1)(nn.Conv(8, (3, 2), feature_group_count=2)(x)))
        x = nn.Conv(8, (3, 3), feature_group_count=8, padding="CIRCULAR")(x)
        x = nn.InstanceNorm()(nn.Conv(6, (2, 3), (2, 1), padding=((1, 0), (2, 1)))(x))
        return nn.max_pool(nn.leaky_relu(x, 0.2), (2, 2), padding="VALID")


class Twice(nnx.Module):
    """One layer called twice, dropout left in."""

    def __init__(self, rngs):
        self.a, self.drop = nnx.Linear(6, 6, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.a(self.drop(jnp.tanh(self.a(x)))) + x


class NnxCnn(nnx.Module):
    def __init__(self, rngs):
        self.c = nnx.Conv(3, 6, (3, 3), strides=2, rngs=rngs)
        self.n = nnx.BatchNorm(6, use_running_average=True, rngs=rngs)
        self.d = nnx.Linear(6 * 5 * 4, 3, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.n(self.c(x)))
        return nnx.softmax(self.d(x.reshape(x.shape[0], -1)))


def linen():
    image, ids = normal(2, 16, 12, 3), RNG.integers(0, 13, (3, 7)).astype(np.int32)
    flat, rows = normal(3, 6), normal(2, 7, 8)
    for name in ("relu", "tanh", "sigmoid", "silu", "elu", "softplus", "hard_swish", "selu"):
        yield f"MLP, {name}", bound(Mlp(getattr(nn, name)), flat), flat
    yield "MLP, exact GELU", bound(Mlp(lambda x: nn.gelu(x, approximate=False)), flat), flat
    yield "MLP, GELU", bound(Mlp(nn.gelu), flat), flat
    for name, module in (("CNN", Cnn()), ("ResNet", ResNet()), ("ViT", Vit()), ("mixed", Mixed())):
        even = normal(2, 16, 12, 4) if name == "mixed" else image
        yield name, bound(module, even), even
    yield "block", bound(Block(), rows), rows
    yield "causal block", bound(Block(causal=True), rows), rows
    yield "GPT", bound(Gpt(), ids), ids
    yield "decoder", bound(Decoder(), flat), flat
    yield "WaveNet", bound(WaveNet(), rows), rows
    for cell in (nn.SimpleCell, nn.LSTMCell, nn.OptimizedLSTMCell, nn.GRUCell, nn.MGUCell):
        yield cell.__name__, bound(Tagger(cell), ids), ids
    yield "LSTM, both ways", bound(Tagger(nn.LSTMCell, True), ids), ids


def modules():
    """(name, function, example inputs), made on request."""
    for name, module, x in linen():
        yield f"linen {name}", module, (x,)
    rngs = nnx.Rngs(0)
    yield "nnx layer called twice", Twice(rngs), (normal(3, 6),)
    yield "nnx CNN", NnxCnn(rngs), (normal(2, 9, 7, 3),)
    w, v = normal(4, 4), normal(4, 5)
    yield "function, jitted", jax.jit(lambda x: jnp.tanh(x @ w) @ v), (normal(3, 4),)
    yield "two inputs", lambda a, b: jnp.einsum("bij,bkj->bik", a, b), (
        normal(2, 3, 4),
        normal(2, 5, 4),
    )
    yield "choices and parts", lambda x: jnp.where(x > 0, x[:, ::-1], x[:, :1] * w[0]), (
        normal(3, 4),
    )
    yield "two outputs", lambda x: (jnp.exp(x @ w), jnp.clip(x, -0.5, 0.5)), (normal(3, 4),)

"""Keras models with random weights, by name, for absorb_check.py; KERAS_BACKEND is jax or torch.

The architectures are written here after the cited papers; nothing is downloaded.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers as L  # noqa: E402

RNG = np.random.default_rng(6)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def shaken(model):
    """Makes every weight distinct, so that a forgotten scale or bias shows."""
    for v in model.weights:
        if "seed" in v.path:
            continue
        value = np.asarray(keras.ops.convert_to_numpy(v.value))
        noise = normal(*value.shape)
        v.assign(value + (noise * 0.1 if value.ndim > 1 else abs(noise) * 0.3))
    return model


def row(shape, *layers, dtype=None):
    inputs = keras.Input(shape, dtype=dtype)
    x = inputs
    for layer in layers:
        x = layer(x)
    return keras.Model(inputs, x)


def conv(x, filters, kernel, stride=1, act="relu", depthwise=False):
    made = L.DepthwiseConv2D if depthwise else L.Conv2D
    how = [kernel] if depthwise else [filters, kernel]
    x = made(*how, strides=stride, padding="same", use_bias=False)(x)
    x = L.BatchNormalization()(x)
    return L.Activation(act)(x) if act else x


def resnet():
    i = keras.Input((17, 14, 3))
    x = conv(i, 8, 3)
    for width, stride in ((8, 1), (12, 2)):
        short = x if stride == 1 else conv(x, width, 1, stride, None)
        x = L.Activation("relu")(conv(conv(x, width, 3, stride), width, 3, 1, None) + short)
    return keras.Model(i, L.Dense(5, "softmax")(L.GlobalAveragePooling2D()(x)))


def mobile():
    i = keras.Input((16, 15, 3))
    x = conv(i, 8, 3, 2, "relu6")
    y = conv(conv(x, 24, 1, 1, "swish"), 24, 5, 1, "swish", True)
    s = L.Dense(6, "relu")(L.GlobalAveragePooling2D(keepdims=True)(y))
    y = y * L.Dense(24, "hard_sigmoid")(s)
    return keras.Model(i, L.Dense(4)(L.Flatten()(x + conv(y, 8, 1, 1, None))))


def inception():
    i = keras.Input((12, 10, 3))
    parts = [
        conv(i, 4, 1),
        conv(conv(i, 3, 1), 5, 3),
        conv(L.MaxPooling2D(3, 1, "same")(i), 3, 1),
        L.AveragePooling2D(3, 1, "same")(i),
    ]
    return keras.Model(i, L.GlobalMaxPooling2D()(L.Concatenate()(parts)))


def unet():
    i = keras.Input((12, 8, 3))
    a = conv(i, 6, 3)
    b = conv(L.MaxPooling2D()(a), 8, 3)
    up = L.Conv2DTranspose(6, 2, 2, padding="same")(b)
    return keras.Model(i, L.Conv2D(2, 1)(conv(L.Concatenate()([up, a]), 6, 3)))


def transformer(causal=False):
    i = keras.Input((7,), dtype="int32")
    x = L.Embedding(19, 8)(i)
    y = L.LayerNormalization()(x)
    x = x + L.MultiHeadAttention(2, 5)(y, y, use_causal_mask=causal)
    y = L.Dense(16, "gelu")(L.LayerNormalization(epsilon=0.1)(x))
    return keras.Model(i, L.Dense(19)(x + L.Dense(8)(L.Dropout(0.5)(y))))


def two():
    a, b = keras.Input((4,)), keras.Input((5,))
    shared = L.Dense(6, "tanh")
    x = shared(L.Dense(6)(a)) * shared(L.Dense(6)(b))
    return keras.Model([a, b], [L.Dense(2)(x), x])


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.a, self.b = L.Dense(6, "elu"), L.Dense(6)

    def call(self, x):
        x = self.b(self.a(x))
        return keras.ops.softmax(self.b(x) + x)


def models():
    image, flat, ids = normal(2, 17, 14, 3), normal(3, 6), RNG.integers(0, 13, (2, 7))
    ids, rows = ids.astype(np.int32), normal(2, 9, 5)
    for act in ("relu", "tanh", "sigmoid", "selu", "softplus", "gelu", "silu", "leaky_relu"):
        yield f"MLP, {act}", row((6,), L.Dense(6, act), L.Dense(6, use_bias=False)), flat
    yield "LeNet", row(
        (17, 14, 3),
        L.Conv2D(6, 5, activation="tanh"),
        L.AveragePooling2D(2),
        L.Flatten(),
        L.Dense(5),
    ), image
    yield "strides, same", row(
        (17, 14, 3),
        L.Conv2D(6, (3, 2), strides=2, padding="same"),
        L.MaxPooling2D(2, padding="same"),
        L.Conv2D(6, 3, groups=3, dilation_rate=2, padding="same"),
        L.Flatten(),
    ), image
    yield "Xception", row(
        (17, 14, 3),
        L.SeparableConv2D(6, 3, depth_multiplier=2),
        L.LeakyReLU(),
        L.ZeroPadding2D((1, 2)),
        L.Cropping2D(1),
        L.UpSampling2D(2),
    ), image
    yield "normalizations", row(
        (17, 14, 3),
        L.Rescaling(1 / 3, 0.1),
        L.Conv2D(8, 3),
        L.GroupNormalization(2),
        L.LayerNormalization(axis=(1, 2, 3)),
        L.UnitNormalization(),
    ), image
    yield "ResNet", resnet(), image
    yield "MobileNetV3", mobile(), normal(2, 16, 15, 3)
    yield "GoogLeNet", inception(), normal(2, 12, 10, 3)
    yield "U-Net", unet(), normal(2, 12, 8, 3)
    yield "transposed", row(
        (5, 4, 3), L.Conv2DTranspose(4, 3, 2), L.Conv2DTranspose(2, (4, 2), 2, "same")
    ), normal(2, 5, 4, 3)
    yield "1D", row((9, 5), L.Conv1D(6, 3, padding="causal"), L.MaxPooling1D(2), L.PReLU()), rows
    yield "transformer", transformer(), ids
    yield "causal transformer", transformer(True), ids
    for cell in (L.SimpleRNN, L.LSTM, L.GRU):
        yield cell.__name__, row((9, 5), cell(4, return_sequences=True), cell(3)), rows
    yield "GRU, reset before", row((9, 5), L.GRU(4, reset_after=False)), rows
    yield "LSTM, both ways", row((9, 5), L.Bidirectional(L.LSTM(4, return_sequences=True))), rows
    yield "LSTM, backwards", row((9, 5), L.LSTM(4, go_backwards=True, return_sequences=True)), rows
    yield "two inputs, shared", two(), (normal(3, 4), normal(3, 5))
    made = Subclassed()
    made(flat)
    yield "subclassed", made, flat


def modules():
    """(name, model, example inputs), made on request."""
    for name, model, x in models():
        yield name, shaken(model), x if isinstance(x, tuple) else (x,)

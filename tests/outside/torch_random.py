"""Random modules of PyTorch: typical code between layers, drawn by a seed.

They have buffers that are added and multiplied, weights of one number, and functions of weights.
Some weights are used twice and transposed. There are frozen layers, norms, recurrences, attention
and convolutions.
"""

import random

import torch
import torch.nn.functional as F
from torch import nn


class Between(nn.Module):
    """A parameter or a buffer of a stream's last axis, used in one of many ways."""

    WAYS = (
        "layer_scale", "rezero", "buffer_add", "buffer_mul", "buffer_matrix", "exp", "softplus",
        "temperature", "bias", "tied", "frozen", "prelu", "prelu_each", "weight_norm", "twice",
        "reused", "reused_number", "roll", "sums", "fourier", "largest", "spread", "scattered",
        "normed",
    )  # fmt: skip

    def __init__(self, way, width):
        super().__init__()
        self.way = way
        r = torch.randn
        if way in ("layer_scale", "bias", "exp", "softplus"):
            self.p = nn.Parameter(r(width) * 0.3)
        if way == "reused":
            self.p = nn.Parameter(r(width) * 0.3)
        if way in ("rezero", "temperature", "reused_number"):
            self.p = nn.Parameter(r(()) * 0.2 + 0.9)
        if way in ("buffer_add", "buffer_mul"):
            self.register_buffer("b", r(width))
        if way == "buffer_matrix":
            self.register_buffer("b", r(width, width) / width**0.5)
        if way in ("tied", "weight_norm", "twice"):
            self.p = nn.Parameter(r(width + (way == "tied"), width) / width**0.5)
        if way == "weight_norm":
            self.g = nn.Parameter(r(width, 1))
        if way == "twice":
            self.c, self.d = nn.Parameter(r(width)), nn.Parameter(r(width))
        if way == "frozen":
            self.f = nn.Linear(width, width)
            self.f.weight.requires_grad = False
        if way == "scattered":
            self.register_buffer("i", torch.randint(0, width, (width,)))
        if way == "normed":
            self.f = nn.utils.parametrizations.weight_norm(nn.Linear(width, width))
        if way.startswith("prelu"):
            self.f = nn.PReLU(1 if way == "prelu" else width)

    def forward(self, x):
        way = self.way
        if way == "layer_scale":
            return x + self.p * torch.tanh(x)
        if way == "rezero":
            return x + self.p * torch.tanh(x)
        if way in ("reused", "reused_number"):
            return x * self.p + torch.tanh(x * self.p * self.p)
        if way == "buffer_add":
            return x + self.b
        if way == "buffer_mul":
            return x * self.b
        if way == "buffer_matrix":
            return torch.tanh(x @ self.b)
        if way == "exp":
            return x * torch.exp(self.p)
        if way == "softplus":
            return x * F.softplus(self.p)
        if way == "temperature":
            return torch.softmax(x / self.p, -1)
        if way == "bias":
            return x + self.p
        if way == "tied":
            return torch.tanh(x @ self.p.t()) @ self.p
        if way == "weight_norm":
            return x @ (self.p * (self.g / self.p.norm(dim=1, keepdim=True))).t()
        if way == "twice":
            return F.linear(torch.tanh(F.linear(x, self.p, self.c)), self.p, self.d)
        if way in self.MOVES:
            return self.moved(x)
        if way in ("frozen", "normed"):
            return self.f(x)
        if self.way == "prelu_each" and x.dim() == 3:
            return self.f(x.transpose(1, 2)).transpose(1, 2)
        return self.f(x)


    MOVES = ("roll", "sums", "fourier", "largest", "spread", "scattered")

    def moved(self, x):
        if self.way == "roll":
            return x + torch.roll(x, 1, -1)
        if self.way == "sums":
            return torch.tanh(torch.cumsum(x, -1))
        if self.way == "fourier":
            return x + 0.2 * torch.fft.fft(x).real
        if self.way == "largest":
            return x - 0.5 * x.max(-1, keepdim=True)[0]
        if self.way == "spread":
            return x * torch.std(x, -1, keepdim=True)
        return x + torch.zeros_like(x).index_add(-1, self.i, x)


class Recurrent(nn.Module):
    def __init__(self, kind, width, hidden, **options):
        super().__init__()
        self.r = getattr(nn, kind)(width, hidden, batch_first=True, **options)

    def forward(self, x):
        return self.r(x)[0]


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.a = nn.MultiheadAttention(width, heads, bias=bias, batch_first=True)

    def forward(self, x):
        return x + self.a(x, x, x, need_weights=False)[0]


class OverChannels(nn.Module):
    """A layer of [B, C, T] on a stream [B, T, C]."""

    def __init__(self, layer):
        super().__init__()
        self.f = layer

    def forward(self, x):
        return self.f(x.transpose(1, 2)).transpose(1, 2)


class Named(nn.Module):
    """Weights of one number whose names read as those of constants."""

    def __init__(self, width):
        super().__init__()
        self.g1 = nn.Parameter(torch.randn(()))
        self.const_scale = nn.Parameter(torch.randn(1))
        self.eps = nn.Parameter(torch.rand(1) + 0.5)
        self.f = nn.Linear(width, 1)

    def forward(self, x):
        return self.f(torch.tanh(x * self.g1) * self.const_scale) / (self.eps * self.eps + 1)


class TiedLanguage(nn.Module):
    """A table that is also the matrix of the output."""

    def __init__(self, vocab, width, bias):
        super().__init__()
        self.e = nn.Embedding(vocab, width)
        self.f = nn.Linear(width, width)
        self.o = nn.Linear(width, vocab, bias=bias)
        self.o.weight = self.e.weight

    def forward(self, ids):
        return self.o(torch.tanh(self.f(self.e(ids))))


def activation(draw):
    kinds = (nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.ELU, nn.LeakyReLU, nn.Softplus)
    return draw.choice(kinds)()


def rows(draw):
    """[B, F]."""
    width = first = draw.randint(2, 9)
    layers = []
    for _ in range(draw.randint(2, 6)):
        kind = draw.randrange(6)
        if kind <= 1:
            out = draw.randint(2, 9)
            layers += [nn.Linear(width, out, bias=draw.random() < 0.7), activation(draw)]
            width = out
        elif kind == 2:
            layers.append(draw.choice((nn.LayerNorm, nn.BatchNorm1d))(width))
        elif kind == 3:
            layers.append(nn.LayerNorm(width, elementwise_affine=draw.random() < 0.5))
        else:
            layers.append(Between(draw.choice(Between.WAYS), width))
    layers.append(nn.Linear(width, draw.choice((1, 3))))
    return nn.Sequential(*layers), (torch.randn(5, first),)


def sequences(draw):
    """[B, T, F]."""
    width = first = 4 * draw.randint(1, 3)
    time, layers = draw.randint(2, 6), []
    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(6)
        if kind == 0:
            out = 4 * draw.randint(1, 2)
            both = draw.random() < 0.3
            layers.append(
                Recurrent(
                    draw.choice(("LSTM", "GRU", "RNN")), width, out,
                    bias=draw.random() < 0.7, num_layers=draw.randint(1, 2), bidirectional=both,
                )
            )  # fmt: skip
            width = out * (2 if both else 1)
        elif kind == 1:
            layers.append(Attention(width, draw.choice((1, 2, 4)), draw.random() < 0.6))
        elif kind == 2:
            layers.append(OverChannels(nn.Conv1d(width, width, 3, padding=1)))
        elif kind == 3:
            layers.append(nn.LayerNorm(width))
        else:
            layers.append(Between(draw.choice(Between.WAYS), width))
    layers.append(nn.Linear(width, 1 if draw.random() < 0.3 else 3))
    return nn.Sequential(*layers), (torch.randn(3, time, first),)


def images(draw):
    """[B, C, H, W]."""
    channels = first = draw.randint(1, 4)
    side, layers = draw.randint(5, 8), []
    for _ in range(draw.randint(1, 4)):
        out = 2 * draw.randint(1, 4)
        layers.append(nn.Conv2d(channels, out, 3, padding=1, bias=draw.random() < 0.6))
        channels = out
        norm = draw.randrange(5)
        if norm == 0:
            layers.append(nn.BatchNorm2d(channels))
        if norm == 1:
            layers.append(nn.GroupNorm(2, channels))
        if norm == 2:
            layers.append(nn.InstanceNorm2d(channels, affine=draw.random() < 0.5))
        layers.append(activation(draw) if draw.random() < 0.8 else nn.PReLU(channels))
    layers.append(draw.choice((nn.AdaptiveAvgPool2d(1), nn.AdaptiveMaxPool2d(1))))
    layers += [nn.Flatten(), nn.Linear(channels, draw.choice((1, 4)))]
    return nn.Sequential(*layers), (torch.randn(3, first, side, side),)


def named(draw):
    width = draw.randint(2, 6)
    return Named(width), (torch.randn(4, width),)


def language(draw):
    vocab = draw.randint(5, 12)
    module = TiedLanguage(vocab, draw.randint(2, 6), draw.random() < 0.5)
    return module, (torch.randint(0, vocab, (3, 4)),)


def random_module(seed):
    """The module and its example inputs."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    kind = draw.choices((rows, sequences, images, language, named), (8, 6, 4, 2, 1))[0]
    return kind(draw)

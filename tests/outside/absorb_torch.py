"""Architectures in PyTorch with random weights, by name, for absorb_check.py.

They are written here after the cited papers; nothing is downloaded.
"""

import random

import torch
import torch.nn.functional as F
from torch import nn

from absorb_torch_places import places
from absorb_torch_states import Decoder, Fourier, Perceiver


def conv(i, o, k=3, s=1, g=1, act=nn.ReLU):
    """Convolution, batch norm, activation."""
    layers = [nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act()] if act else []))


class BasicBlock(nn.Module):
    """ResNet, He and others 2015."""

    def __init__(self, i, o, s):
        super().__init__()
        self.a, self.b = conv(i, o, 3, s), conv(o, o, act=None)
        self.short = conv(i, o, 1, s, act=None) if (s, i) != (1, o) else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(self.a(x)) + self.short(x))


class Bottleneck(nn.Module):
    def __init__(self, i, o, s, groups=1):
        super().__init__()
        self.a = nn.Sequential(conv(i, o, 1), conv(o, o, 3, s, groups), conv(o, 4 * o, 1, act=None))
        self.short = conv(i, 4 * o, 1, s, act=None)

    def forward(self, x):
        return F.relu(self.a(x) + self.short(x))


def resnet(block, counts, width=16, **options):
    layers, i = [conv(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)], width
    grow = 4 if block is Bottleneck else 1
    for stage, count in enumerate(counts):
        for n in range(count):
            o = width << stage
            layers.append(block(i, o, 2 if stage > 0 and n == 0 else 1, **options))
            i = o * grow
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10))


class SqueezeExcite(nn.Module):
    """Hu and others 2017."""

    def __init__(self, c, r=4, gate=nn.Hardsigmoid):
        super().__init__()
        self.f = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(c, c // r, 1),
            nn.ReLU(),
            nn.Conv2d(c // r, c, 1),
            gate(),
        )

    def forward(self, x):
        return x * self.f(x)


class Inverted(nn.Module):
    """MobileNetV2 and V3, EfficientNet: expand, depthwise, squeeze-excite, project."""

    def __init__(self, i, o, k, s, act, expand=4, excite=True):
        super().__init__()
        m = i * expand
        self.f = nn.Sequential(
            conv(i, m, 1, act=act),
            conv(m, m, k, s, m, act),
            SqueezeExcite(m) if excite else nn.Identity(),
            conv(m, o, 1, act=None),
        )
        self.skip = s == 1 and i == o

    def forward(self, x):
        return x + self.f(x) if self.skip else self.f(x)


def mobile(act, excite, last):
    blocks = [
        Inverted(8, 8, 3, 1, nn.ReLU, excite=excite),
        Inverted(8, 12, 3, 2, act, excite=excite),
        Inverted(12, 12, 5, 1, act, excite=excite),
        Inverted(12, 16, 5, 2, act, excite=excite),
    ]
    return nn.Sequential(
        conv(3, 8, 3, 2, act=act),
        *blocks,
        conv(16, 32, 1, act=act),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 24),
        last(),
        nn.Dropout(0.2),
        nn.Linear(24, 10),
    )


class DenseBlock(nn.Module):
    """DenseNet, Huang and others 2016."""

    def __init__(self, i, grow, count):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(i + n * grow),
                nn.ReLU(),
                nn.Conv2d(i + n * grow, grow, 3, padding=1, bias=False),
            )
            for n in range(count)
        )

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


class Inception(nn.Module):
    """GoogLeNet, Szegedy and others 2014."""

    def __init__(self, i):
        super().__init__()
        self.a, self.b = conv(i, 4, 1), nn.Sequential(conv(i, 3, 1), conv(3, 6, 3))
        self.c = nn.Sequential(conv(i, 3, 1), conv(3, 4, 5))
        self.d = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(i, 2, 1))

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(x)], 1)


class Fire(nn.Module):
    """SqueezeNet, Iandola and others 2016."""

    def __init__(self, i, s, o):
        super().__init__()
        self.s, self.a, self.b = conv(i, s, 1), nn.Conv2d(s, o, 1), nn.Conv2d(s, o, 3, padding=1)

    def forward(self, x):
        x = self.s(x)
        return torch.cat([F.relu(self.a(x)), F.relu(self.b(x))], 1)


class Shuffle(nn.Module):
    """ShuffleNetV2, Ma and others 2018: half of the channels pass, then all are mixed."""

    def __init__(self, c):
        super().__init__()
        h = c // 2
        self.f = nn.Sequential(conv(h, h, 1), conv(h, h, 3, g=h, act=None), conv(h, h, 1))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.f(b)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class ConvNext(nn.Module):
    """Liu and others 2022."""

    def __init__(self, c):
        super().__init__()
        self.d, self.n = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, eps=1e-6)
        self.a, self.b = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.scale = nn.Parameter(torch.rand(c))

    def forward(self, x):
        y = self.n(self.d(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.b(F.gelu(self.a(y)))).permute(0, 3, 1, 2)


class UNet(nn.Module):
    """Ronneberger and others 2015."""

    def __init__(self, up):
        super().__init__()
        self.a, self.b, self.c = conv(3, 8), conv(8, 16), conv(16, 32)
        self.u, self.v = up(32, 16), up(16, 8)
        self.d, self.e, self.o = conv(32, 16), conv(16, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        d = self.d(torch.cat([self.u(c), b], 1))
        return self.o(self.e(torch.cat([self.v(d), a], 1)))


class ViT(nn.Module):
    """Dosovitskiy and others 2020, with a class token."""

    def __init__(self, d=24, depth=2, heads=3, pre=True):
        super().__init__()
        self.p = nn.Conv2d(3, d, 8, 8)
        self.cls, self.pos = nn.Parameter(torch.randn(1, 1, d)), nn.Parameter(torch.randn(1, 17, d))
        layer = nn.TransformerEncoderLayer(
            d, heads, 4 * d, activation="gelu", batch_first=True, norm_first=pre
        )
        self.t = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.n, self.h = nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, x):
        x = self.p(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.h(self.n(self.t(x))[:, 0])


class Gpt(nn.Module):
    """GPT-2, Radford and others 2019: causal attention, tied head."""

    def __init__(self, v=31, t=12, d=16, heads=2, depth=2):
        super().__init__()
        self.w, self.p, self.heads = nn.Embedding(v, d), nn.Embedding(t, d), heads
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "n": nn.LayerNorm(d),
                    "qkv": nn.Linear(d, 3 * d),
                    "o": nn.Linear(d, d),
                    "m": nn.LayerNorm(d),
                    "a": nn.Linear(d, 4 * d),
                    "b": nn.Linear(4 * d, d),
                }
            )
            for _ in range(depth)
        )
        self.n = nn.LayerNorm(d)

    def forward(self, ids):
        n, t = ids.shape
        x = self.w(ids) + self.p.weight[:t]
        for b in self.blocks:
            q, k, v = (
                y.view(n, t, self.heads, -1).transpose(1, 2)
                for y in b["qkv"](b["n"](x)).chunk(3, -1)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + b["o"](y.transpose(1, 2).reshape(n, t, -1))
            x = x + b["b"](F.gelu(b["a"](b["m"](x)), approximate="tanh"))
        return self.n(x) @ self.w.weight.t()


class Llama(nn.Module):
    """Touvron and others 2023: rotary positions as constants, RMS norms, SwiGLU."""

    def __init__(self, v=29, t=10, d=16, heads=2):
        super().__init__()
        self.w, self.heads, half = nn.Embedding(v, d), heads, d // heads // 2
        self.n, self.m, self.l = nn.RMSNorm(d, 1e-5), nn.RMSNorm(d, 1e-5), nn.RMSNorm(d, 1e-5)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(d, 24, bias=False), nn.Linear(d, 24, bias=False)
        self.down, self.head = nn.Linear(24, d, bias=False), nn.Linear(d, v, bias=False)
        angle = torch.outer(torch.arange(t), 1e4 ** (-torch.arange(half) / half))
        self.register_buffer("cos", torch.cos(angle).repeat(1, 2))
        self.register_buffer("sin", torch.sin(angle).repeat(1, 2))

    def rotated(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, ids):
        n, t = ids.shape
        x = self.w(ids)
        y = self.n(x)
        q, k, v = (
            f(y).view(n, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, t, -1))
        y = self.m(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return self.head(self.l(x))


class WaveNet(nn.Module):
    """van den Oord and others 2016: causal dilated convolutions, gates, skips."""

    def __init__(self, c=8, depth=4):
        super().__init__()
        self.i = nn.Conv1d(1, c, 1)
        self.f = nn.ModuleList(nn.Conv1d(c, 2 * c, 2, dilation=2**n) for n in range(depth))
        self.s = nn.ModuleList(nn.Conv1d(c, c, 1) for _ in range(depth))
        self.o = nn.Conv1d(c, 5, 1)

    def forward(self, x):
        x, total = self.i(x), 0
        for n, (f, s) in enumerate(zip(self.f, self.s)):
            a, b = f(F.pad(x, (2**n, 0))).chunk(2, 1)
            y = s(torch.tanh(a) * torch.sigmoid(b))
            total, x = total + y, x + y
        return self.o(F.relu(total))


class Crnn(nn.Module):
    """Shi and others 2015: convolutions, then a recurrence over the columns."""

    def __init__(self):
        super().__init__()
        self.c = nn.Sequential(conv(1, 8), nn.MaxPool2d(2), conv(8, 12), nn.MaxPool2d((2, 1)))
        self.r, self.o = nn.LSTM(48, 10, bidirectional=True, batch_first=True), nn.Linear(20, 7)

    def forward(self, x):
        x = self.c(x).permute(0, 3, 1, 2).flatten(2)
        return F.log_softmax(self.o(self.r(x)[0]), -1)


class Conformer(nn.Module):
    """A block of Gulati and others 2020."""

    def __init__(self, d=16):
        super().__init__()

        def feed():
            return nn.Sequential(
                nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d)
            )

        self.a, self.b, self.n = feed(), feed(), nn.LayerNorm(d)
        self.m = nn.MultiheadAttention(d, 2, batch_first=True)
        self.p, self.c = nn.Conv1d(d, 2 * d, 1), nn.Conv1d(d, d, 7, padding=3, groups=d)
        self.bn, self.q, self.l = nn.BatchNorm1d(d), nn.Conv1d(d, d, 1), nn.LayerNorm(d)

    def forward(self, x):
        x = x + 0.5 * self.a(x)
        y = self.n(x)
        x = x + self.m(y, y, y, need_weights=False)[0]
        y = F.glu(self.p(x.transpose(1, 2)), 1)
        x = x + self.q(F.silu(self.bn(self.c(y)))).transpose(1, 2)
        return self.l(x + 0.5 * self.b(x))


class Tagger(nn.Module):
    """A recurrence over embeddings, by kind."""

    def __init__(self, kind, **options):
        super().__init__()
        self.e, self.r = nn.Embedding(13, 6), getattr(nn, kind)(6, 5, batch_first=True, **options)
        self.o = nn.Linear(5 * (2 if options.get("bidirectional") else 1), 4)

    def forward(self, ids):
        return self.o(self.r(self.e(ids))[0])


class Mixer(nn.Module):
    """MLP-Mixer, Tolstikhin and others 2021."""

    def __init__(self, t=16, d=12):
        super().__init__()
        self.p, self.n, self.m = nn.Conv2d(3, d, 8, 8), nn.LayerNorm(d), nn.LayerNorm(d)
        self.a = nn.Sequential(nn.Linear(t, 2 * t), nn.GELU(), nn.Linear(2 * t, t))
        self.b = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = self.p(x).flatten(2).transpose(1, 2)
        x = x + self.a(self.n(x).transpose(1, 2)).transpose(1, 2)
        return (x + self.b(self.m(x))).mean(1)


class Siamese(nn.Module):
    """One tower, called twice, and the cosine of its outputs."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))

    def forward(self, a, b):
        a, b = self.f(a), self.f(b)
        size = (a.pow(2).sum(1) + 1e-6).sqrt() * (b.pow(2).sum(1) + 1e-6).sqrt()
        return (a * b).sum(1, keepdim=True) / size.unsqueeze(1)


class Vae(nn.Module):
    """The means of an encoder and the output of the decoder for them: two outputs."""

    def __init__(self):
        super().__init__()
        self.e, self.m = nn.Sequential(conv(1, 4, 3, 2), conv(4, 8, 3, 2), nn.Flatten()), nn.Linear(
            128, 3
        )
        self.d = nn.Sequential(
            nn.Linear(3, 128),
            nn.Unflatten(1, (8, 4, 4)),
            nn.ConvTranspose2d(8, 4, 3, 2, 1, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(4, 1, 4, 2, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        z = self.m(self.e(x))
        return self.d(z), z


def _shaken(module):
    """Distinct statistics and scales, so that a forgotten or wrongly folded norm shows."""
    for m in module.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            m.running_mean.normal_(0, 0.3)
            m.running_var.uniform_(0.5, 2)
        if isinstance(m, (nn.modules.batchnorm._BatchNorm, nn.LayerNorm)):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.3)
    return module


def modules():
    """(name, module, example inputs), made on request."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    r, image = torch.randn, torch.randn(2, 3, 32, 32)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    up = lambda i, o: nn.ConvTranspose2d(i, o, 2, 2)  # noqa: E731
    smooth = lambda i, o: nn.Sequential(
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(i, o, 1)  # noqa: E731
    )
    yield "MLP", nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(), nn.Linear(12, 4)), (
        r(3, 6),
    )
    yield "square dense, no bias", nn.Linear(5, 5, bias=False), (r(1, 5),)
    yield "LeNet", nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 8, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(200, 10),
    ), (image,)
    yield "VGG", nn.Sequential(
        conv(3, 8), nn.MaxPool2d(2), conv(8, 16), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 10)
    ), (image,)
    yield "ResNet-18", _shaken(resnet(BasicBlock, [2, 2, 2, 2])), (image,)
    yield "ResNet-50", _shaken(resnet(Bottleneck, [1, 1, 1, 1])), (image,)
    yield "ResNeXt", _shaken(resnet(Bottleneck, [1, 1], groups=4)), (image,)
    yield "MobileNetV2", _shaken(mobile(nn.ReLU6, False, nn.ReLU6)), (image,)
    yield "MobileNetV3", _shaken(mobile(nn.Hardswish, True, nn.Hardswish)), (image,)
    yield "EfficientNet", _shaken(mobile(nn.SiLU, True, nn.SiLU)), (image,)
    yield "DenseNet", _shaken(
        nn.Sequential(
            conv(3, 8),
            DenseBlock(8, 4, 3),
            conv(20, 8, 1),
            nn.AvgPool2d(2),
            DenseBlock(8, 4, 2),
            *head,
        )
    ), (image,)
    yield "GoogLeNet", _shaken(nn.Sequential(conv(3, 8), Inception(8), Inception(16), *head)), (
        image,
    )
    yield "SqueezeNet", _shaken(nn.Sequential(conv(3, 8), Fire(8, 4, 6), Fire(12, 4, 8), *head)), (
        image,
    )
    yield "ShuffleNetV2", _shaken(nn.Sequential(conv(3, 8), Shuffle(8), Shuffle(8), *head)), (
        image,
    )
    yield "ConvNeXt-atto", _shaken(
        nn.Sequential(nn.Conv2d(3, 12, 4, 4), ConvNext(12), ConvNext(12), *head)
    ), (image,)
    yield "U-Net", _shaken(UNet(up)), (r(1, 3, 12, 20),)
    yield "U-Net, bilinear", _shaken(UNet(smooth)), (r(2, 3, 12, 20),)
    yield "ViT-tiny", _shaken(ViT()), (image,)
    yield "DeiT, norms after", _shaken(ViT(pre=False)), (image,)
    yield "MLP-Mixer", _shaken(Mixer()), (image,)
    yield from sequences(r)
    yield from others(r, image)
    yield from places(r)


def sequences(r):
    """Over tokens and over time."""
    ids = torch.randint(0, 13, (3, 7))
    yield "GPT-2 block", _shaken(Gpt()), (torch.randint(0, 31, (2, 12)),)
    yield "Llama block", Llama(), (torch.randint(0, 29, (2, 10)),)
    yield "WaveNet", WaveNet(), (r(2, 1, 24),)
    yield "CRNN", _shaken(Crnn()), (r(2, 1, 16, 20),)
    yield "Conformer block", _shaken(Conformer()), (r(2, 9, 16),)
    for kind in ("RNN", "LSTM", "GRU"):
        yield f"{kind} tagger", Tagger(kind), (ids,)
        yield f"{kind} tagger, both ways, 2 layers", Tagger(
            kind, bidirectional=True, num_layers=2
        ), (ids,)
    yield "RNN with ReLU", Tagger("RNN", nonlinearity="relu", bias=False), (ids,)


class Chosen(nn.Module):
    """torch.where with a number on either side and with none, masks of constants and of values."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.register_buffer("kept", torch.tensor([True, False, True, True, False, True]))

    def forward(self, x):
        h = self.linear(x)
        y = torch.where(self.kept, h, 0.25) + torch.where(self.kept.flip(0), -1.5, h)
        y = torch.where((h > 0.1) & ~(x >= 1), y, 0.01 * h)
        y = y * (x != 0) + (h <= x) - 0.5 * torch.logical_xor(h < 0, self.kept)
        return y.masked_fill(h.abs() > 1.2, 7.0).masked_fill(self.kept.logical_not(), -1)


class Choices(nn.Module):
    """A random chain of comparisons, logic, masks and choices, drawn by `seed`."""

    def __init__(self, seed):
        super().__init__()
        self.seed, self.linear = seed, nn.Linear(6, 6)
        draw = torch.Generator().manual_seed(seed)
        self.register_buffer("kept", torch.rand(6, generator=draw) > 0.4)

    def forward(self, x):
        draw = random.Random(self.seed)
        values, truths = [x, self.linear(x)], [self.kept]
        for _ in range(12):
            a, b = draw.choice(values), draw.choice([*values, draw.uniform(-1, 1)])
            p, q = draw.choice(truths), draw.choice(truths)
            compared = draw.choice((torch.gt, torch.ge, torch.lt, torch.le, torch.eq, torch.ne))
            joined = draw.choice((torch.logical_and, torch.logical_or, torch.logical_xor))
            truths.append(compared(a, b))
            truths.append(draw.choice((lambda: joined(p, q), lambda: ~p, lambda: p & q))())
            values.append(draw.choice((
                lambda: torch.where(p, a, b),
                lambda: torch.where(p, draw.uniform(-1, 1), a),
                lambda: a.masked_fill(p, draw.uniform(-1, 1)),
                lambda: a * q + b,
            ))())
        return sum(values) + 0.1 * truths[-1]


def others(r, image):
    """Several inputs or outputs, other norms, one axis and three."""
    yield "siamese", Siamese(), (r(4, 6), r(4, 6))
    yield "LSTM, a given state", Decoder(False), (r(3, 4, 6),)
    yield "LSTM, a learned state", Decoder(True), (r(3, 4, 6),)
    yield "Perceiver", Perceiver(), (r(3, 5, 8),)
    yield "FNet", Fourier(), (r(3, 5, 8),)
    yield "weight norm", nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 6, 3, 2, 1)),
        nn.Tanh(),
        nn.utils.parametrizations.weight_norm(nn.Conv1d(6, 4, 2, dilation=2)),
    ), (r(3, 3, 15),)
    yield "torch.where with numbers", _shaken(Chosen()), (r(4, 6),)
    for seed in range(8):
        yield f"random choices {seed}", _shaken(Choices(seed)), (r(4, 6),)
    yield "VAE", _shaken(Vae()), (r(2, 1, 16, 16),)
    yield "super resolution", nn.Sequential(
        nn.Conv2d(3, 8, 5, padding=2),
        nn.PReLU(8),
        nn.Conv2d(8, 12, 3, padding=1),
        nn.PixelShuffle(2),
    ), (image,)
    yield "group and instance norms", nn.Sequential(
        nn.Conv2d(3, 8, (3, 2), (2, 1)),
        nn.GroupNorm(2, 8, eps=0.1),
        nn.ELU(),
        nn.InstanceNorm2d(8, affine=True),
        nn.Softplus(),
    ), (r(2, 3, 9, 8),)
    yield "convolutions in 1D, same", nn.Sequential(
        nn.Conv1d(3, 6, 4, padding="same", dilation=2),
        nn.GELU("tanh"),
        nn.MaxPool1d(2),
        nn.Conv1d(6, 6, 3, groups=6, padding=1, padding_mode="circular"),
        nn.Mish(),
    ), (r(2, 3, 20),)
    yield "convolutions in 3D", nn.Sequential(
        nn.Conv3d(2, 4, (2, 3, 2), padding=(0, 1, 0)),
        nn.BatchNorm3d(4),
        nn.LeakyReLU(0.2),
        nn.AvgPool3d(2),
        nn.Flatten(),
        nn.Linear(32, 3),
    ), (r(2, 2, 5, 4, 5),)

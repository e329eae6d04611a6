"""Networks of their published sizes, in PyTorch, with random weights: for torch_networks.py.

They are written here after the cited papers; nothing is downloaded. Images are small, because the
test is about the graph.
"""

from dataclasses import dataclass, field
from typing import Any, Callable, List

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Case:
    module: nn.Module
    inputs: torch.Tensor
    targets: torch.Tensor
    kind: str  # the name of the loss in loom
    loss: Callable[..., torch.Tensor]
    rate: float = 0.01
    flags: List[Any] = field(default_factory=list)


def conv(i, o, k=3, s=1, groups=1, act=nn.ReLU):
    """Convolution, batch norm, activation."""
    layers = [nn.Conv2d(i, o, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act()] if act else []))


class BasicBlock(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.a, self.b = conv(i, o, 3, s), conv(o, o, act=None)
        self.short = conv(i, o, 1, s, act=None) if (s, i) != (1, o) else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(self.a(x)) + self.short(x))


def resnet18(classes=10):
    """He and others 2015."""
    layers, i = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for o in (64, 128, 256, 512):
        layers += [BasicBlock(i, o, 1 if o == 64 else 2), BasicBlock(o, o, 1)]
        i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class SqueezeExcite(nn.Module):
    """Hu and others 2017."""

    def __init__(self, c, inner, act=nn.ReLU, gate=nn.Hardsigmoid):
        super().__init__()
        self.f = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, inner, 1), act(),
                               nn.Conv2d(inner, c, 1), gate())

    def forward(self, x):
        return x * self.f(x)


class Inverted(nn.Module):
    """Expand, depthwise, squeeze-excite, project."""

    def __init__(self, i, wide, o, k, s, act, excite):
        super().__init__()
        self.f = nn.Sequential(
            *([conv(i, wide, 1, act=act)] if wide != i else []),
            conv(wide, wide, k, s, wide, act),
            excite(i, wide) if excite else nn.Identity(),
            conv(wide, o, 1, act=None),
        )
        self.skip = s == 1 and i == o

    def forward(self, x):
        return x + self.f(x) if self.skip else self.f(x)


def mobilenet_v3_small(classes=10):
    """Howard and others 2019."""
    rows = [(3, 16, 16, 1, "RE", 2), (3, 72, 24, 0, "RE", 2), (3, 88, 24, 0, "RE", 1),
            (5, 96, 40, 1, "HS", 2), (5, 240, 40, 1, "HS", 1), (5, 240, 40, 1, "HS", 1),
            (5, 120, 48, 1, "HS", 1), (5, 144, 48, 1, "HS", 1), (5, 288, 96, 1, "HS", 2),
            (5, 576, 96, 1, "HS", 1), (5, 576, 96, 1, "HS", 1)]
    layers, i = [conv(3, 16, 3, 2, act=nn.Hardswish)], 16
    for k, wide, o, se, act, s in rows:
        layers.append(Inverted(i, wide, o, k, s, nn.ReLU if act == "RE" else nn.Hardswish,
                               (lambda _, w: SqueezeExcite(w, max(8, w // 4))) if se else None))
        i = o
    return nn.Sequential(*layers, conv(96, 576, 1, act=nn.Hardswish), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.0),
                         nn.Linear(1024, classes))


def efficientnet_b0(classes=10):
    """Tan and Le 2019."""
    rows = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
            (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]
    layers, i = [conv(3, 32, 3, 2, act=nn.SiLU)], 32
    for expand, k, s, o, count in rows:
        for n in range(count):
            layers.append(Inverted(i, i * expand, o, k, s if n == 0 else 1, nn.SiLU,
                                   lambda c, w: SqueezeExcite(w, c // 4, nn.SiLU, nn.Sigmoid)))
            i = o
    return nn.Sequential(*layers, conv(320, 1280, 1, act=nn.SiLU), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Dropout(0.0), nn.Linear(1280, classes))


class UNet(nn.Module):
    """Ronneberger and others 2015, padded, with batch norm."""

    def __init__(self, width=32, depth=3):
        super().__init__()
        two = lambda i, o: nn.Sequential(conv(i, o), conv(o, o))  # noqa: E731
        widths = [width << n for n in range(depth + 1)]
        self.down = nn.ModuleList(two(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[:-1][::-1])
        self.back = nn.ModuleList(two(2 * w, w) for w in widths[:-1][::-1])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for n, block in enumerate(self.down):
            x = block(x if n == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, back, skip in zip(self.up, self.back, kept[-2::-1]):
            x = back(torch.cat([skip, up(x)], 1))
        return self.out(x)


class DenseLayer(nn.Module):
    def __init__(self, i, grow):
        super().__init__()
        self.f = nn.Sequential(nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, 4 * grow, 1, bias=False),
                               nn.BatchNorm2d(4 * grow), nn.ReLU(),
                               nn.Conv2d(4 * grow, grow, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.f(x)], 1)


def densenet121(classes=10, grow=32):
    """Huang and others 2016."""
    layers, i = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for n, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            layers.append(DenseLayer(i, grow))
            i += grow
        if n < 3:
            layers += [nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, i // 2, 1, bias=False),
                       nn.AvgPool2d(2)]
            i //= 2
    return nn.Sequential(*layers, nn.BatchNorm2d(i), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(i, classes))


class Attention(nn.Module):
    def __init__(self, d, heads, causal=False):
        super().__init__()
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (y.reshape(n, t, self.heads, d // self.heads).transpose(1, 2)
                   for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.o(y.transpose(1, 2).reshape(n, t, d))


class Transformer(nn.Module):
    """A block with its norms in front."""

    def __init__(self, d, heads, causal=False, gelu="none"):
        super().__init__()
        self.n, self.m, self.a = nn.LayerNorm(d), nn.LayerNorm(d), Attention(d, heads, causal)
        self.f = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(gelu), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.a(self.n(x))
        return x + self.f(self.m(x))


class ViT(nn.Module):
    """ViT-tiny of Touvron and others 2021: 192 wide, 12 deep, 3 heads."""

    def __init__(self, side=32, patch=8, d=192, depth=12, heads=3, classes=10):
        super().__init__()
        self.p = nn.Conv2d(3, d, patch, patch)
        self.cls = nn.Parameter(torch.randn(1, 1, d) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, d) * 0.02)
        self.t = nn.Sequential(*(Transformer(d, heads) for _ in range(depth)))
        self.n, self.h = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, x):
        x = self.p(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.h(self.n(self.t(x))[:, 0])


class ChannelNorm(nn.LayerNorm):
    """Over the channels of [batch, channels, height, width]."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.d, self.n = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, eps=1e-6)
        self.a, self.b = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.scale = nn.Parameter(torch.full((c,), 0.1))

    def forward(self, x):
        y = self.n(self.d(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.b(F.gelu(self.a(y)))).permute(0, 3, 1, 2)


def convnext_atto(classes=10):
    """Liu and others 2022; the size is timm's."""
    layers, i = [nn.Conv2d(3, 40, 4, 4), ChannelNorm(40, eps=1e-6)], 40
    for o, count in ((40, 2), (80, 2), (160, 6), (320, 2)):
        if o != i:
            layers += [ChannelNorm(i, eps=1e-6), nn.Conv2d(i, o, 2, 2)]
        layers += [ConvNextBlock(o) for _ in range(count)]
        i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(i, eps=1e-6),
                         nn.Linear(i, classes))


class Crnn(nn.Module):
    """Shi and others 2015: convolutions, two recurrences over the columns, scores for CTC."""

    def __init__(self, classes=11, hidden=64):
        super().__init__()
        self.c = nn.Sequential(conv(1, 32), nn.MaxPool2d(2), conv(32, 64), nn.MaxPool2d(2),
                               conv(64, 128), nn.MaxPool2d((2, 1)))
        self.r = nn.LSTM(256, hidden, 2, bidirectional=True, batch_first=True)
        # PyTorch keeps two biases that are added, and steps both; a network of Loom has their sum.
        for name, bias in self.r.named_parameters():
            if name.startswith("bias_hh"):
                nn.init.zeros_(bias).requires_grad_(False)
        self.o = nn.Linear(2 * hidden, classes)

    def forward(self, x):
        x = self.c(x).permute(0, 3, 1, 2).flatten(2)
        return self.o(self.r(x)[0])


class Conformer(nn.Module):
    """A block of Gulati and others 2020."""

    def __init__(self, d=144, heads=4, kernel=31):
        super().__init__()
        feed = lambda: nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(),  # noqa: E731
                                     nn.Linear(4 * d, d))
        self.a, self.b, self.n, self.m = feed(), feed(), nn.LayerNorm(d), Attention(d, heads)
        self.k, self.p = nn.LayerNorm(d), nn.Conv1d(d, 2 * d, 1)
        self.c = nn.Conv1d(d, d, kernel, padding=kernel // 2, groups=d)
        self.bn, self.q, self.l = nn.BatchNorm1d(d), nn.Conv1d(d, d, 1), nn.LayerNorm(d)

    def forward(self, x):
        x = x + 0.5 * self.a(x)
        x = x + self.m(self.n(x))
        y = F.glu(self.p(self.k(x).transpose(1, 2)), 1)
        x = x + self.q(F.silu(self.bn(self.c(y)))).transpose(1, 2)
        return self.l(x + 0.5 * self.b(x))


class Gpt(nn.Module):
    """A block of GPT-2 (Radford and others 2019) of its width, between embeddings and a head."""

    def __init__(self, vocab=97, places=16, d=768, heads=12):
        super().__init__()
        self.w, self.p = nn.Embedding(vocab, d), nn.Parameter(torch.randn(places, d) * 0.02)
        self.block, self.n = Transformer(d, heads, True, "tanh"), nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        return self.head(self.n(self.block(self.w(ids) + self.p)))


class WaveNet(nn.Module):
    """van den Oord and others 2016: causal dilated convolutions, gates, skips."""

    def __init__(self, c=32, depth=8, levels=16):
        super().__init__()
        self.i = nn.Conv1d(1, c, 1)
        self.f = nn.ModuleList(nn.Conv1d(c, 2 * c, 2, dilation=2**n) for n in range(depth))
        self.s = nn.ModuleList(nn.Conv1d(c, c, 1) for _ in range(depth))
        self.a, self.o = nn.Conv1d(c, c, 1), nn.Conv1d(c, levels, 1)

    def forward(self, x):
        x, total = self.i(x), 0
        for n, (f, s) in enumerate(zip(self.f, self.s)):
            a, b = f(F.pad(x, (2**n, 0))).chunk(2, 1)
            y = s(torch.tanh(a) * torch.sigmoid(b))
            total, x = total + y, x + y
        return self.o(F.relu(self.a(F.relu(total)))).transpose(1, 2)


class Classifier(nn.Module):
    """A recurrence over words, read at its last step."""

    def __init__(self, vocab=60, width=16, hidden=24, classes=4):
        super().__init__()
        self.e, self.r = nn.Embedding(vocab, width), nn.LSTM(width, hidden, batch_first=True)
        for name, bias in self.r.named_parameters():  # see Crnn
            if name.startswith("bias_hh"):
                nn.init.zeros_(bias).requires_grad_(False)
        self.o = nn.Linear(hidden, classes)

    def forward(self, ids):
        return self.o(self.r(self.e(ids))[1][0][-1])


def spread(module):
    """Other values for parameters that begin as copies or as zeros. An optimizer of ONNX stores
    copies once, and drops biases of zeros, which then do not learn."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p), alpha=0.05)


class Encoder(nn.Module):
    """PyTorch's own encoder, whose heads are laid out across the batch."""

    def __init__(self, d=16, classes=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d, 4, 32, dropout=0.0, batch_first=True)
        self.i, self.o = nn.Linear(6, d), nn.Linear(d, classes)
        self.e = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        spread(self.e)

    def forward(self, x):
        return self.o(self.e(self.i(x)).mean(1))


class Towers(nn.Module):
    """One tower that both halves of a sample go through (Bromley and others 1993), as products."""

    def __init__(self, d=6, h=16, classes=4):
        super().__init__()
        self.t = nn.Sequential(nn.Linear(d, h), nn.Tanh(), nn.Linear(h, h), nn.LayerNorm(h))
        self.o = nn.Linear(h, classes)
        spread(self.t)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        return self.o(self.t(a) * self.t(b))


class OneBlock(nn.Module):
    """One block of an encoder, taken three times (Lan and others 2019)."""

    def __init__(self, d=16, classes=4):
        super().__init__()
        self.b = nn.TransformerEncoderLayer(d, 2, 32, dropout=0.0, batch_first=True)
        self.i, self.o = nn.Linear(6, d), nn.Linear(d, classes)
        spread(self.b)

    def forward(self, x):
        x = self.i(x)
        for _ in range(3):
            x = self.b(x)
        return self.o(x.mean(1))


class Scales(nn.Module):
    """One kernel over an image and over its halves: a pyramid."""

    def __init__(self, classes=4):
        super().__init__()
        self.k = nn.Conv2d(1, 8, 3, padding=1)
        self.o = nn.Linear(16, classes)

    def forward(self, x):
        y = [F.silu(self.k(p)).mean((2, 3)) for p in (x, F.avg_pool2d(x, 2))]
        return self.o(torch.cat(y, 1))


class EinsumAttention(nn.Module):
    """Attention of several heads, whose products are all einsums."""

    def __init__(self, d=24, heads=3, classes=4):
        super().__init__()
        draw = lambda *shape: nn.Parameter(torch.randn(shape) * shape[0] ** -0.5)  # noqa: E731
        self.q, self.k, self.v = (draw(d, heads, d // heads) for _ in range(3))
        self.o, self.head = draw(heads, d // heads, d), nn.Linear(d, classes)

    def forward(self, x):
        q, k, v = (torch.einsum("btd,dhe->bhte", x, w) for w in (self.q, self.k, self.v))
        p = torch.softmax(torch.einsum("bhte,bhse->bhts", q, k) * q.shape[-1] ** -0.5, -1)
        y = torch.einsum("bhts,bhse->bthe", p, v)
        return self.head((x + torch.einsum("bthe,hed->btd", y, self.o)).mean(1))


class Recurrent(nn.Module):
    """Two layers of a GRU in both directions, over an LSTM."""

    def __init__(self, d=6, hidden=10, classes=4):
        super().__init__()
        self.a = nn.LSTM(d, hidden, batch_first=True)
        self.b = nn.GRU(hidden, hidden, 2, batch_first=True, bidirectional=True)
        self.o = nn.Linear(2 * hidden, classes)

    def forward(self, x):
        return self.o(self.b(self.a(x)[0])[0][:, -1])


class Mixer(nn.Module):
    """Tolstikhin and others 2021: products over places, then over channels."""

    def __init__(self, places=16, d=32, depth=3, classes=10):
        super().__init__()
        wide = lambda i, o: nn.Sequential(nn.Linear(i, o), nn.GELU(), nn.Linear(o, i))  # noqa: E731
        self.i, self.n = nn.Conv2d(3, d, 8, 8), nn.LayerNorm(d)
        self.a = nn.ModuleList(nn.LayerNorm(d) for _ in range(depth))
        self.b = nn.ModuleList(nn.LayerNorm(d) for _ in range(depth))
        self.p = nn.ModuleList(wide(places, 24) for _ in range(depth))
        self.c = nn.ModuleList(wide(d, 64) for _ in range(depth))
        self.o = nn.Linear(d, classes)

    def forward(self, x):
        x = self.i(x).flatten(2).transpose(1, 2)
        for a, b, p, c in zip(self.a, self.b, self.p, self.c):
            x = x + p(a(x).transpose(1, 2)).transpose(1, 2)
            x = x + c(b(x))
        return self.o(self.n(x).mean(1))


class Inception(nn.Module):
    """A block of Szegedy and others 2015 between convolutions, with group norm."""

    def __init__(self, classes=10):
        super().__init__()
        self.i, self.n = nn.Conv2d(3, 16, 3, 2, 1), nn.GroupNorm(4, 16)
        self.a, self.b = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 12, 3, padding=1)
        self.c, self.d = nn.Conv2d(16, 6, 5, padding=2), nn.Conv2d(16, 6, 1)
        self.o = nn.Linear(32, classes)

    def forward(self, x):
        x = F.leaky_relu(self.n(self.i(x)), 0.1)
        pooled = F.max_pool2d(x, 3, 1, 1)
        y = torch.cat([self.a(x), self.b(x), self.c(x), self.d(pooled)], 1)
        return self.o(F.adaptive_avg_pool2d(F.relu(y), 1).flatten(1))


class SuperResolution(nn.Module):
    """Shi and others 2016: channels that become pixels; next to a transposed convolution."""

    def __init__(self, c=16):
        super().__init__()
        self.i, self.m = nn.Conv2d(3, c, 5, padding=2), nn.Conv2d(c, c, 3, padding=1)
        self.o, self.t = nn.Conv2d(c, 12, 3, padding=1), nn.ConvTranspose2d(c, 3, 4, 2, 1)

    def forward(self, x):
        x = torch.tanh(self.m(torch.tanh(self.i(x))))
        return F.pixel_shuffle(self.o(x), 2) + self.t(x)


class CrossAttention(nn.Module):
    """Queries that are learned, over a sequence (PyTorch's own layer, both ways of its masks)."""

    def __init__(self, d=16, queries=5, classes=4):
        super().__init__()
        self.i, self.q = nn.Linear(6, d), nn.Parameter(torch.randn(1, queries, d))
        self.m = nn.TransformerDecoderLayer(d, 4, 32, dropout=0.0, batch_first=True)
        self.o = nn.Linear(queries * d, classes)
        spread(self.m)

    def forward(self, x):
        memory = self.i(x)
        return self.o(self.m(self.q.expand(x.shape[0], -1, -1), memory).flatten(1))


def mlp():
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(),
                         nn.Linear(32, 4))


def small_cnn():
    return nn.Sequential(conv(1, 8), nn.MaxPool2d(2), conv(8, 16), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(256, 4))


def in_classes(module, inputs, rate=0.01):
    return Case(module, inputs, torch.randint(0, 4, (len(inputs),)), "softmax_ce",
                F.cross_entropy, rate)


def classified(module, n, side=32, rate=0.01):
    return Case(module, torch.randn(n, 3, side, side), torch.randint(0, 10, (n,)), "softmax_ce",
                F.cross_entropy, rate)


def per_place(scores, labels):
    return F.cross_entropy(scores.flatten(0, 1), labels.flatten())


def spelled(scores, labels):
    """Blank 0; the mean over samples."""
    n, t, _ = scores.shape
    losses = F.ctc_loss(F.log_softmax(scores, -1).transpose(0, 1), labels, torch.full((n,), t),
                        torch.full((n,), labels.shape[1]), reduction="none")
    return losses.mean()


# If norms take statistics of few values, roundings grow from step to step. After eight steps of
# ResNet-18 at 1e-3, PyTorch in float32 is 1e-2 away from itself in float64. So rates are small
# there.
NETWORKS = {
    "MLP": lambda n: in_classes(mlp(), torch.randn(n, 6)),
    "CNN": lambda n: in_classes(small_cnn(), torch.randn(n, 1, 16, 16)),
    "LSTM classifier": lambda n: in_classes(Classifier(), torch.randint(0, 60, (n, 10))),
    "Encoder": lambda n: in_classes(Encoder(), torch.randn(n, 10, 6)),
    "Shared towers": lambda n: in_classes(Towers(), torch.randn(n, 12), 0.05),
    "Shared block": lambda n: in_classes(OneBlock(), torch.randn(n, 10, 6), 0.02),
    "Shared kernel": lambda n: in_classes(Scales(), torch.randn(n, 1, 16, 16), 0.05),
    "Einsum attention": lambda n: in_classes(EinsumAttention(), torch.randn(n, 10, 24)),
    "Recurrent stack": lambda n: in_classes(Recurrent(), torch.randn(n, 12, 6)),
    "Cross-attention": lambda n: in_classes(CrossAttention(), torch.randn(n, 10, 6)),
    "Mixer": lambda n: classified(Mixer(), n),
    "Inception block": lambda n: classified(Inception(), n),
    "Super-resolution": lambda n: Case(SuperResolution(), torch.randn(n, 3, 12, 12),
                                       torch.randn(n, 3, 24, 24), "mse", F.mse_loss),
    "ResNet-18": lambda n: classified(resnet18(), n, 64, 1e-4),
    "MobileNetV3 small": lambda n: classified(mobilenet_v3_small(), n, 64),
    "EfficientNet-B0": lambda n: classified(efficientnet_b0(), n, 64),
    "U-Net": lambda n: Case(UNet(), torch.randn(n, 3, 32, 32),
                            torch.randint(0, 2, (n, 1, 32, 32)).float(), "bce",
                            F.binary_cross_entropy_with_logits),
    "DenseNet-121": lambda n: classified(densenet121(), n, 64, 2e-5),
    "ViT-tiny": lambda n: classified(ViT(), n),
    "ConvNeXt-atto": lambda n: classified(convnext_atto(), n, 64),
    "CRNN with CTC": lambda n: Case(Crnn(), torch.randn(n, 1, 16, 64),
                                    torch.randint(1, 11, (n, 4)), "ctc", spelled, 0.002),
    "Conformer block": lambda n: Case(Conformer(), torch.randn(n, 24, 144),
                                      torch.randn(n, 24, 144), "mse", F.mse_loss),
    "GPT-2 block": lambda n: Case(Gpt(), torch.randint(0, 97, (n, 16)),
                                  torch.randint(0, 97, (n, 16)), "softmax_ce", per_place),
    "WaveNet stack": lambda n: Case(WaveNet(), torch.randn(n, 1, 256),
                                    torch.randint(0, 16, (n, 256)), "softmax_ce", per_place),
}

"""Modules of PyTorch that read and write at places that depend on an input, for absorb_torch.py."""

import random

import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    """A mixture whose router keeps the two best of each token, Shazeer and others 2017."""

    def __init__(self, width=6, experts=5):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList([nn.Linear(width, width) for _ in range(experts)])

    def forward(self, x):
        scores = self.router(x)
        best, place = scores.topk(2, dim=-1)
        weights = torch.zeros_like(scores).scatter(-1, place, best.softmax(-1))
        every = torch.stack([expert(x) for expert in self.experts], -1)
        return (every * weights.unsqueeze(-2)).sum(-1)


class Picked(nn.Module):
    """The tokens with the best scores, in their order, and the rest pooled."""

    def __init__(self, width=6):
        super().__init__()
        self.score, self.head = nn.Linear(width, 1), nn.Linear(width, 4)

    def forward(self, x):
        place = self.score(x).squeeze(-1).topk(3, dim=1)[1].sort(dim=1)[0]
        kept = torch.gather(x, 1, place.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        return self.head(torch.tanh(kept)) + self.head(x.mean(1, keepdim=True))


class Transformer(nn.Module):
    """A spatial transformer, Jaderberg and others 2015."""

    def __init__(self, padding="zeros", corners=False):
        super().__init__()
        self.padding, self.corners = padding, corners
        self.place = nn.Sequential(nn.Flatten(), nn.Linear(2 * 5 * 6, 6))
        self.conv = nn.Conv2d(2, 3, 3, padding=1)

    def forward(self, x):
        start = torch.tensor([[0.9, 0.1, 0.0], [-0.1, 0.8, 0.1]])
        theta = start + 0.3 * torch.tanh(self.place(x)).view(-1, 2, 3)
        y = self.conv(x)
        grid = F.affine_grid(theta, [x.shape[0], 3, 4, 7], align_corners=self.corners)
        return F.grid_sample(y, grid, padding_mode=self.padding, align_corners=self.corners)


class Warped(nn.Module):
    """A grid that is a buffer, and beside it a grid of a convolution."""

    def __init__(self, mode, padding, corners):
        super().__init__()
        self.options = {"padding_mode": padding, "align_corners": corners}
        self.mode = mode
        self.conv, self.field = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 2, 1)
        self.register_buffer("grid", torch.randn(1, 4, 3, 2) * 0.8)

    def forward(self, x):
        grid = self.grid.expand(x.shape[0], -1, -1, -1)
        y = F.grid_sample(torch.tanh(self.conv(x)), grid, mode=self.mode, **self.options)
        return y + F.grid_sample(y, self.field(y).permute(0, 2, 3, 1), **self.options)


class Ordered(nn.Module):
    """A random chain of sorts, choices and look-ups along random axes; `seed` says which. No two
    values are equal: PyTorch does not say which comes first."""

    def __init__(self, seed):
        super().__init__()
        self.seed, self.linear = seed, nn.Linear(6, 6)

    def forward(self, x):
        draw, y = random.Random(self.seed), self.linear(x)
        for _ in range(4):
            axis, largest = draw.choice((1, -1)), draw.random() < 0.5
            n = y.shape[axis]
            k = draw.randint(1, n)
            steps = (
                lambda: y + torch.sort(y, axis, descending=largest)[0],
                lambda: torch.gather(y.tanh(), axis, torch.argsort(y, axis, descending=largest)),
                lambda: y - y.topk(k, axis, largest=largest)[0].mean(axis, keepdim=True),
                lambda: y + 0.5 * y * F.one_hot(y.argmax(-1), y.shape[-1]),
                lambda: y - y.median(axis, keepdim=True)[0],
                lambda: y.scatter(axis, y.topk(k, axis)[1], y.topk(k, axis)[0] * 0.5),
                lambda: torch.where(y < y.kthvalue(k, axis, keepdim=True)[0], 0.3 * y, y),
                lambda: y.scatter_add(axis, y.topk(k, axis)[1], torch.tanh(y).narrow(axis, 0, k)),
                lambda: y + torch.take_along_dim(y, y.argmin(axis, keepdim=True), axis),
                lambda: y + 0.3 * y.scatter(axis, y.argmax(axis, keepdim=True), 0.25),
                lambda: y * (1 + 0.1 * y.max(axis, keepdim=True)[1]) + y.min(axis, keepdim=True)[0],
            )  # fmt: skip
            y = draw.choice(steps)()
        return y + 0.1 * self.linear(y)


def places(r):
    """(name, module, inputs)"""
    yield "mixture of experts, two of five", Experts(), (r(3, 4, 6),)
    yield "tokens with the best scores", Picked(), (r(3, 5, 6),)
    image = (r(3, 2, 5, 6),)
    for padding in ("zeros", "border"):
        for corners in (False, True):
            how = f"{padding}, {'corners' if corners else 'edges'}"
            yield f"spatial transformer, {how}", Transformer(padding, corners), image
            for mode in ("bilinear", "nearest"):
                yield f"grids, {mode}, {how}", Warped(mode, padding, corners), image
    for seed in range(12):
        yield f"random orders {seed}", Ordered(seed), (r(3, 4, 6),)

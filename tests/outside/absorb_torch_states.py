"""Modules of absorb_torch.py with given states, learned queries and Fourier transforms."""

import torch
from torch import nn


class Decoder(nn.Module):
    """A recurrence that begins with the last state of another, or with a learned state."""

    def __init__(self, learned):
        super().__init__()
        self.e, self.d = nn.LSTM(6, 5, batch_first=True), nn.LSTM(6, 5, batch_first=True)
        self.learned = learned
        if learned:
            self.h, self.c = (nn.Parameter(0.3 * torch.randn(1, 1, 5)) for _ in range(2))

    def forward(self, x):
        if self.learned:
            h, c = (s.expand(-1, x.shape[0], -1).contiguous() for s in (self.h, self.c))
            return self.d(self.e(x)[0].repeat(1, 1, 2)[..., :6], (h, c))[0]
        return self.d(x, self.e(x)[1])[0]


class Perceiver(nn.Module):
    """Jaegle and others 2021: queries that are learned, the same for each sample."""

    def __init__(self):
        super().__init__()
        self.q, self.a = nn.Parameter(torch.randn(1, 3, 8)), nn.MultiheadAttention(8, 2)
        self.p = nn.Embedding(12, 8)

    def forward(self, x):
        x = x + self.p(torch.arange(x.shape[1]))
        q = self.q.repeat(x.shape[0], 1, 1)
        x, q = x.transpose(0, 1), q.transpose(0, 1)
        return self.a(q, x, x, need_weights=False)[0].transpose(0, 1)


class Fourier(nn.Module):
    """FNet, Lee-Thorp and others 2021."""

    def __init__(self):
        super().__init__()
        self.n, self.f = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        y = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real
        return self.f(self.n(x + y))

"""Fifty steps of PyTorch's optimizers on a small quadratic, for comparison in tests/learn.

The gradient of value i is a[i] (p[i] - b[i]). Every tenth step replaces b[i] by -b[i], so that
moments get gradients of both signs. In float64.
"""

import torch

A = [0.5, 1.0, 2.0, 4.0]
B = [1.0, -2.0, 0.5, 3.0]
START = [0.25, -0.5, 1.5, -1.0]
CASES = [
    ("adagrad", torch.optim.Adagrad, 0.1, {}),
    ("adadelta", torch.optim.Adadelta, 1.0, {}),
    ("nadam", torch.optim.NAdam, 0.02, {}),
    ("adamax", torch.optim.Adamax, 0.02, {}),
    ("radam", torch.optim.RAdam, 0.02, {}),
]


def curve(kind, rate, decay):
    p = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    a, b = (torch.tensor(v, dtype=torch.float64) for v in (A, B))
    optimizer = kind([p], lr=rate, weight_decay=decay)
    for step in range(50):
        sign = -1.0 if step % 10 == 9 else 1.0
        p.grad = (a * (p.detach() - sign * b)).clone()
        optimizer.step()
    return p.detach().tolist()


if __name__ == "__main__":
    for name, kind, rate, _ in CASES:
        for decay in (0.0, 0.1):
            values = ", ".join(f"{v:.9f}" for v in curve(kind, rate, decay))
            print(f'    {{"{name}", {rate}, {decay}f, {{{values}}}}},')

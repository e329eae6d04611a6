"""Losses of torch.optim.LBFGS on the logistic regression of tests/learn/lbfgs_test.cpp.

usage: python3 tools/goldens/lbfgs.py     (needs PyTorch)
"""
import torch

torch.set_default_dtype(torch.float64)
rows, features, classes = 8, 5, 3
x = (0.2 * torch.sin(0.11 * torch.arange(rows * features) + 0.3)).reshape(rows, features)
target = torch.arange(rows) * 5 % classes
weight = torch.zeros(classes, features, requires_grad=True)
bias = torch.zeros(classes, requires_grad=True)
for decay in (0.0, 0.05):
    with torch.no_grad():
        weight.zero_(), bias.zero_()
    optimizer = torch.optim.LBFGS([weight, bias], lr=1.0, max_iter=1, history_size=10)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(x @ weight.T + bias, target)
        losses.append(loss.item())
        (loss + 0.5 * decay * (weight.square().sum() + bias.square().sum())).backward()
        return loss

    for _ in range(14):
        optimizer.step(closure)
    print(f"decay {decay}:", ", ".join(f"{loss:.7f}" for loss in losses))

"""Modules of PyTorch and their results in training, for torch_training.py."""

import copy

import loom
import numpy as np
import torch
from torch import nn

from torch_draws import Draws, move
from torch_random import random_module
from torch_training import RATES, STEPS, largest_distance, relative


def prepared(module):
    """The module with other parameters, no two values of the whole equal, and no dropout."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p), alpha=0.05)
        buffers = [b for b in module.buffers() if b.is_floating_point()]
        separate([*module.parameters(), *buffers])
    return module


def separate(parameters):
    """Separates equal values by the smallest steps of float32."""
    values = torch.cat([p.ravel() for p in parameters]).numpy().copy()
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    for i in range(1, len(ordered)):
        if ordered[i] <= ordered[i - 1]:
            ordered[i] = np.nextafter(ordered[i - 1], np.float32(np.inf))
    values[order] = ordered
    at = 0
    for p in parameters:
        p.copy_(torch.from_numpy(values[at : at + p.numel()]).reshape(p.shape))
        at += p.numel()


def trained(module):
    return [p for p in module.parameters() if p.requires_grad]


def joined(tensors):
    return np.concatenate([t.detach().numpy().ravel() for t in tensors])


def first_of(outputs):
    while isinstance(outputs, (tuple, list)):
        outputs = outputs[0]
    return outputs


class There:
    """A copy of the module in a precision, trained on the batch."""

    def __init__(self, module, inputs, target, how, dtype=torch.float64):
        self.module = copy.deepcopy(module).to(dtype).train()
        self.inputs = [i.to(dtype) if i.is_floating_point() else i for i in inputs]
        self.target = target.to(dtype)
        make = torch.optim.Adam if how == "adam" else torch.optim.SGD
        self.optimizer = make(trained(self.module), lr=RATES[how])

    def step(self):
        self.optimizer.zero_grad()
        loss = ((first_of(self.module(*self.inputs)) - self.target) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def gradients(self):
        self.step()
        given = [(p, p.grad) for p in trained(self.module)]
        return [(torch.zeros_like(p) if g is None else g).detach().double() for p, g in given]


def moved(module, dtype, seed):
    """The module in a number type, its weights moved by a rounding."""
    own = copy.deepcopy(module).to(dtype)
    move(own.parameters(), seed)
    return own


def gradient_draws(module, inputs, target, exact):
    """By how much of its tensor's largest each gradient moves by roundings: one for each number."""
    tops = [max(float(g.abs().max()), 1e-300) for g in exact]

    def make(name, seed):
        dtype = getattr(torch, name)
        own = There(moved(module, dtype, seed), inputs, target, "gradient", dtype).gradients()
        far = [float((o - g).abs().max()) / top for o, g, top in zip(own, exact, tops)]
        return np.repeat(np.float32(far), [g.numel() for g in exact])

    return Draws(make)


def step_draws(module, inputs, target, how, distance):
    """The result of the steps in double precision, and the distance of each draw from it."""

    def run(start, dtype=torch.float64):
        there = There(start, inputs, target, how, dtype)
        losses = np.array([there.step() for _ in range(STEPS)])
        return losses if how == "adam" else joined(trained(there.module))

    def make(name, seed):
        dtype = getattr(torch, name)
        return distance(run(moved(module, dtype, seed), dtype), exact)

    exact = run(module)
    return exact, Draws(make)


def case_of(module, inputs):
    """A case of torch_training.py."""
    plan = loom.absorb(copy.deepcopy(module), inputs, plan_only=True)
    loom.absorb(copy.deepcopy(module), inputs, fresh_process=False)  # with its proof
    y = first_of(copy.deepcopy(module).eval()(*inputs)).detach()
    target = torch.randn(y.shape, generator=torch.Generator().manual_seed(3))
    exact = There(module, inputs, target, "gradient").gradients()
    tops = [float(g.abs().max()) for g in exact]
    after, sgd = step_draws(module, inputs, target, "sgd", largest_distance)
    losses, adam = step_draws(module, inputs, target, "adam", relative)
    return {
        "onnx": np.frombuffer(plan.serialize(), dtype=np.uint8),
        "inputs": [np.ascontiguousarray(i.numpy()) for i in inputs],
        "target": target.numpy(),
        "before": joined(trained(module)),
        "gradients": joined(exact),
        "tops": np.repeat(tops, [g.numel() for g in exact]),
        "after": after,
        "losses": losses,
        "draws": {
            "gradient": gradient_draws(module, inputs, target, exact),
            "sgd": sgd,
            "adam": adam,
        },
    }


def of_samples(x, count):
    """Random samples like x. Statistics of two samples are too few for gradients in float32."""
    if x.is_floating_point():
        return torch.randn(count, *x.shape[1:])
    return torch.randint(0, int(x.max()) + 1, (count, *x.shape[1:]))


def cases(options):
    """(name, a function that makes the case), of those with trained values."""
    torch.set_num_threads(1)
    for seed in range(options.seed, options.seed + options.modules):
        module, inputs = random_module(seed)
        yield from made(f"random module {seed}", module, inputs)
    if not options.architectures:
        return
    import absorb_torch

    for name, module, inputs in absorb_torch.modules():
        torch.manual_seed(1)
        yield from made(name, module, tuple(of_samples(x, 8) for x in inputs))
    import torch_zoo

    for name, make in torch_zoo.NETWORKS.items():
        # Roundings switch some of its 7 million ReLUs: single gradients move by 0.1, and each
        # precision moves other ones.
        if name == "DenseNet-121":
            continue
        torch.manual_seed(2)  # with 1 the CNN has a ReLU so near to 0 that roundings decide
        network = make(8)
        yield from made(f"{name}, as torch_networks.py has it", network.module, (network.inputs,))


def made(name, module, inputs):
    torch.manual_seed(1)
    module = prepared(module)
    if trained(module):
        yield name, lambda: case_of(module, inputs)

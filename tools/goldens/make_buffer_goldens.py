#!/usr/bin/env python3
"""Writes the results of PyTorch for layers with buffers, whose training differs from their use, to
tests/gradients/golden/buffers.safetensors and buffers.json.

  python tools/goldens/make_buffer_goldens.py            (needs torch, numpy and safetensors)
  python tools/goldens/make_buffer_goldens.py --out DIR  elsewhere, to compare

A case is a layer in training on three batches, one after the other. For case C the file has C/x [3,
batch, ...], and C/p/P for every parameter and buffer before training. For the first batch it has
C/y, C/dx and C/g/P under the loss sum(r * y). After the last batch it has C/running_mean and
C/running_var. C/used is the output for the first batch outside training, after that. Computed in
float64.
"""

import argparse
import json
import pathlib
import random

import numpy as np
import torch
from safetensors.numpy import save_file

from layer_cases import case, layer
from make_layer_goldens import LOSS_WEIGHTS, OUT, uniform

NAMES = {"gamma": "weight", "beta": "bias"}
MODULES = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}
MODULES[5] = torch.nn.BatchNorm3d


def cases():
    def norm(name, shape, **f):
        return case(name, layer("BatchNorm", channels=shape[1], **f), shape, spread=2.0)

    yield norm("batch_norm_flat", [5, 7])
    yield norm("batch_norm_1d", [4, 3, 9])
    yield norm("batch_norm_2d", [3, 5, 4, 6])
    yield norm("batch_norm_3d", [2, 2, 3, 4, 5])
    yield norm("batch_norm_plain", [3, 4, 5], affine=False)
    yield norm("batch_norm_quick", [6, 3], momentum=0.75, eps=0.1)
    yield norm("batch_norm_two", [2, 3], momentum=1.0)


def run_case(c, loss_weights):
    rng = random.Random(c["name"])
    f = {"eps": 1e-5, "momentum": 0.1, "affine": True} | c["layer"]["fields"]
    module = MODULES[len(c["input"])](f["channels"], f["eps"], f["momentum"], f["affine"]).double()
    batches = np.stack([uniform(rng, c["input"], c["spread"]) for _ in range(3)])
    tensors = {"x": batches}
    names = (["gamma", "beta"] if f["affine"] else []) + ["running_mean", "running_var"]
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    for name in names:
        value = uniform(rng, [f["channels"]], 0.6)
        if name in ("gamma", "running_var"):
            value += np.float32(1)
        tensors[f"p/{name}"] = value
        state[NAMES.get(name, name)].data.copy_(torch.tensor(value))
    x = torch.tensor(batches[0], dtype=torch.float64, requires_grad=True)
    y = module(x)
    r = torch.tensor(loss_weights[: y.numel()], dtype=torch.float64).reshape(y.shape)
    (r * y).sum().backward()
    tensors |= {"y": y.detach().numpy(), "dx": x.grad.numpy()}
    for name in names[:-2]:
        tensors[f"g/{name}"] = state[NAMES[name]].grad.numpy()
    for batch in batches[1:]:
        module(torch.tensor(batch, dtype=torch.float64))
    tensors |= {name: state[name].numpy() for name in names[-2:]}
    tensors["used"] = module.eval()(x).detach().numpy()
    return {name: np.ascontiguousarray(v.astype(np.float32)) for name, v in tensors.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, default=OUT, help="folder to write to")
    options = parser.parse_args()
    loss_weights = uniform(random.Random("r"), [LOSS_WEIGHTS])
    tensors, lines = {"r": loss_weights}, []
    for c in cases():
        for name, value in run_case(c, loss_weights).items():
            tensors[f"{c['name']}/{name}"] = value
        entry = {"name": c["name"], "file": "buffers.safetensors", "layer": c["layer"]}
        lines.append(json.dumps(entry | {"input": c["input"], "masked": False}))
    options.out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, options.out / "buffers.safetensors")
    text = '{"cases": [\n' + ",\n".join(lines) + "\n]}\n"
    (options.out / "buffers.json").write_text(text, "utf-8")
    print(f"{len(lines)} cases, torch {torch.__version__}")


if __name__ == "__main__":
    main()

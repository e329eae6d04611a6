#!/usr/bin/env python3
"""Writes the results of PyTorch for the layers of Loom, forward and backward, to
tests/gradients/golden/: one safetensors file per family of layers, and index.json.

  python tools/goldens/make_layer_goldens.py             (needs torch, numpy and safetensors)
  python tools/goldens/make_layer_goldens.py --list      the names of the cases
  python tools/goldens/make_layer_goldens.py --out DIR   elsewhere, to compare

Everything is computed in float64 from float32 values and stored as float32, so that PyTorch's own
rounding does not matter. The loss is sum(r * y), plus the losses that layers add; r is the start of
the tensor `r` of the file. For case C the file has C/x (ids: int32), C/mask ([samples, length], 1
keeps), C/y and C/dx. For every parameter P it has the value C/p/P and gradient C/g/P.

The random numbers of a case depend on its name alone: a new case changes no other.
"""

import argparse
import json
import pathlib
import random
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

from layer_cases import FAMILIES
from torch_layers import Run, param_shapes

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "gradients" / "golden"
LOSS_WEIGHTS = 512  # no output is larger
FAINTEST = 1e-3  # a golden whose largest value is smaller would prove nothing
ZEROS = "g/k_bias"  # without rotation it shifts all scores of a row, and a softmax cancels that


def uniform(rng, shape, spread=1.0):
    count = int(np.prod(shape))
    values = [spread * (2 * rng.random() - 1) for _ in range(count)]
    return np.array(values, dtype=np.float32).reshape(shape)


def make_input(rng, c):
    if c["vocab"]:
        ids = [rng.randrange(c["vocab"]) for _ in range(int(np.prod(c["input"])))]
        return np.array(ids, dtype=np.int32).reshape(c["input"])
    return uniform(rng, c["input"], c["spread"])


def make_params(rng, c):
    params = {}
    for name, shape in param_shapes(c["layer"]).items():
        params[name] = uniform(rng, shape, 0.6)
        if name.split("/")[-1] in ("gamma", "q_norm", "k_norm"):
            params[name] += np.float32(1)
    return params


def make_mask(c):
    """The end of every sample but the first is left out, and one position inside of the last."""
    mask = np.ones(c["input"][:2], dtype=np.float32)
    for sample in range(1, len(mask)):
        mask[sample, -sample:] = 0
    mask[-1, 1] = 0
    return mask


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def run_case(c, loss_weights):
    """All tensors of a case, named without it."""
    rng = random.Random(c["name"])
    tensors = {"x": make_input(rng, c)}
    values = make_params(rng, c)
    tensors |= {f"p/{name}": value for name, value in values.items()}
    mask = None
    if c["masked"]:
        tensors["mask"] = make_mask(c)
        mask = torch.tensor(tensors["mask"])
    params = {name: leaf(value) for name, value in values.items()}
    x = torch.tensor(tensors["x"], dtype=torch.int64) if c["vocab"] else leaf(tensors["x"])
    run = Run(params, mask)
    y = run.forward(c["layer"], x)
    r = torch.tensor(loss_weights[: y.numel()], dtype=torch.float64).reshape(y.shape)
    ((r * y).sum() + run.added).backward()
    tensors["y"] = y.detach().numpy()
    if not c["vocab"]:
        tensors["dx"] = x.grad.numpy()
    tensors |= {f"g/{name}": p.grad.numpy() for name, p in params.items()}
    for name, value in tensors.items():
        faint = np.abs(value).max() < FAINTEST and name != ZEROS
        if faint or not np.isfinite(value).all():
            raise ValueError(f"{c['name']}: {name} is not finite, or all but zero")
    keep = {"x"} if c["vocab"] else set()
    return {k: v if k in keep else v.astype(np.float32) for k, v in tensors.items()}


def write_family(out, family, cases):
    loss_weights = uniform(random.Random("r"), [LOSS_WEIGHTS])
    tensors = {"r": loss_weights}
    for c in cases:
        for name, value in run_case(c, loss_weights).items():
            tensors[f"{c['name']}/{name}"] = np.ascontiguousarray(value)
    save_file(tensors, out / f"{family}.safetensors")


def index_line(family, c):
    entry = {"name": c["name"], "file": f"{family}.safetensors", "layer": c["layer"]}
    return json.dumps(entry | {"input": c["input"], "masked": c["masked"]})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, default=OUT, help="folder to write to")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    families = {family: list(cases()) for family, cases in FAMILIES.items()}
    if options.list:
        print(*(f"{family}: {c['name']}" for family, cs in families.items() for c in cs), sep="\n")
        return 0
    torch.manual_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    for family, cases in families.items():
        write_family(options.out, family, cases)
    lines = [index_line(family, c) for family, cases in families.items() for c in cases]
    text = '{"cases": [\n' + ",\n".join(lines) + "\n]}\n"
    (options.out / "index.json").write_text(text, "utf-8")
    size = sum(path.stat().st_size for path in options.out.iterdir())
    print(f"{len(lines)} cases, {size / 1000:.0f} kB, torch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

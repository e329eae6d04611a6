#!/usr/bin/env python3
"""Networks of PyTorch opened and trained in Loom, and compared with PyTorch.

  torch_networks.py LOOM [--onnx[=WAY]] [WORD ...]      those whose name has one of the words

Each network has its published size and random weights. It is written as ONNX with an open batch, by
the bridge of loom.absorb, or with --onnx by torch.onnx. "plain", the default, is the form of
torch.export, and "optimized" is after its own passes. "script" is from the older exporter in opset
17. "fixed" and "fixed-script" are plain and script with the batch of the example in the file.

`loom predict` must agree with the module in eval mode within 1e-4 of its largest output. One epoch
of `loom train` must agree with one of PyTorch on the same batches, from the same weights, in train
mode. The loss of every batch must be within 1e-3 of max(1, loss). Dropout has the rate 0, because
two programs never draw the same masks. SGD with momentum, eight batches.

The optimizer folds batch norms into the convolutions before them. The module that PyTorch trains
then gets the same change. The last line counts.
"""

import copy
import json
import logging
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

import torch_zoo

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
BATCH, BATCHES, BOUND = 4, 8, 1e-3
WAYS = ("plain", "optimized", "script", "fixed", "fixed-script")
FORM = "{:<20} {:>11} {:>10} {:>10} {:>16}  {}"


class Refused(Exception):
    pass


def run(program, *arguments):
    ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if ran.returncode != 0:
        raise Refused(ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else "died")
    return ran.stdout


def export(case, folder, way="plain"):
    path = folder / "net.onnx"
    fixed = way.startswith("fixed")
    if way.endswith("script"):
        axes = {} if fixed else {"x": {0: "batch"}, "y": {0: "batch"}}
        torch.onnx.export(case.module.eval(), (case.inputs[:BATCH],), str(path), dynamo=False,
                          opset_version=17, input_names=["x"], output_names=["y"],
                          dynamic_axes=axes, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False)
        return path
    shapes = None if fixed else ({0: torch.export.Dim("batch", min=2, max=64)},)
    torch.onnx.export(case.module.eval(), (case.inputs[:BATCH],), str(path), dynamo=True,
                      dynamic_shapes=shapes, optimize=way == "optimized", verbose=False,
                      external_data=False, input_names=["x"], output_names=["y"])
    return path


def absorb(case, folder):
    """The ONNX file from which loom.absorb makes the network; its batch norms are trained."""
    import loom

    path = folder / "net.onnx"
    plan = loom.absorb(case.module.eval(), case.inputs[:BATCH], plan_only=True)
    if plan.problems:
        raise Refused("; ".join(map(str, plan.problems)))
    path.write_bytes(plan.serialize())
    return path


def agreement(program, case, path, folder):
    """Largest distance over max(1, largest value)."""
    np.save(folder / "x.npy", case.inputs.numpy())
    run(program, "predict", path, folder / "x.npy", "-o", folder / "y.npz", "--force", "--quiet")
    got = np.load(folder / "y.npz")["outputs"]
    with torch.no_grad():
        want = case.module.eval()(case.inputs).numpy()
    got = got.reshape(want.shape)
    return float(np.abs(got - want).max() / max(1.0, np.abs(want).max()))


def without_norms(module):
    """The module with batch norms folded into the convolutions before them, as the optimizer leaves
    them."""
    from torch.fx.experimental.optimization import fuse

    try:
        return fuse(module.eval())
    except Exception:  # noqa: BLE001  (what torch.fx cannot follow; there norms follow directly)
        fused, before = copy.deepcopy(module.eval()), None
        for name, child in list(fused.named_children()):
            if isinstance(child, torch.nn.modules.batchnorm._BatchNorm):
                whole = torch.nn.utils.fusion.fuse_conv_bn_eval(getattr(fused, before), child)
                setattr(fused, before, whole)
                setattr(fused, name, torch.nn.Identity())
            before = name
        return fused


def torch_losses(case, way):
    module = without_norms(case.module) if way == "optimized" else case.module
    module = module.train()
    step = torch.optim.SGD(module.parameters(), lr=case.rate, momentum=0.9)
    losses = []
    for first in range(0, BATCH * BATCHES, BATCH):
        step.zero_grad()
        loss = case.loss(module(case.inputs[first:first + BATCH]),
                         case.targets[first:first + BATCH])
        loss.backward()
        step.step()
        losses.append(float(loss))
    return losses


def loom_losses(program, case, path, folder):
    np.savez(folder / "data.npz", x=case.inputs.numpy(), y=case.targets.numpy())
    told = folder / "told.jsonl"
    run(program, "train", path, folder / "data.npz", "--optimizer", "momentum", "--rate",
         case.rate, "--schedule", "constant", "--no-shuffle", "--batch", BATCH, "--epochs", 1,
         "--loss", case.kind, "--telemetry", told, "--force", "--quiet", *case.flags)
    records = [json.loads(line) for line in told.read_text().splitlines()]
    return [r["value"] for r in records if r.get("name", r.get("tag")) == "loss/batch"]


def check(program, case, made_by, way):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = made_by(case, folder)
        apart = agreement(program, case, path, folder)
        ours = loom_losses(program, case, path, folder)
    theirs = torch_losses(case, way)
    if len(ours) != len(theirs):
        raise Refused(f"{len(ours)} losses were reported, {len(theirs)} batches trained")
    curve = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs)]
    return apart, curve, theirs


def main(program, words):
    asked = next((w for w in words if w.startswith("--onnx")), None)
    words = [w for w in words if w != asked]
    way = (asked or "").partition("=")[2] or "plain"
    if way not in WAYS:
        sys.exit(f"no way '{way}': {', '.join(WAYS)}")
    made_by = absorb if asked is None else lambda case, folder: export(case, folder, way)
    torch.set_num_threads(1)
    passed = failed = 0
    print(FORM.format("network", "parameters", "predict", "losses", "first -> last", ""))
    for name, make in torch_zoo.NETWORKS.items():
        if words and not any(w.lower() in name.lower() for w in words):
            continue
        torch.manual_seed(1)
        case = make(BATCH * BATCHES)
        count = sum(p.numel() for p in case.module.parameters())
        try:
            apart, curve, losses = check(program, case, made_by, way)
        except Refused as error:
            failed += 1
            print(FORM.format(name, count, "", "", "", error), flush=True)
            continue
        good = apart <= 1e-4 and max(curve) <= BOUND
        passed, failed = passed + good, failed + (not good)
        print(FORM.format(name, count, f"{apart:.1e}", f"{max(curve):.1e}",
                          f"{losses[0]:.3f} -> {losses[-1]:.3f}", "" if good else "FAILED"),
              flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

#!/usr/bin/env python3
"""Our GGUF files as the `gguf` package for Python reads them (pip install gguf numpy).

Exports a model as f32, f16, bf16, q4_0, q8_0 and mxfp4, and checks with the package's reader. The
metadata must be present. Every tensor must have the values of the f32 export, rounded as its type
rounds. This includes q and k, which are in the order of the file.

  bench/gguf_python.py --model models/stories --tool build/release/bench/gguf_tool --work /tmp/w

Exit status: 0; 1 when something differs; 77 when the package is not installed.
"""
import argparse
import os
import subprocess
import sys

try:
    import gguf
    import numpy as np
except ImportError:
    print("the gguf package is not installed")
    sys.exit(77)

# Largest error over the largest value of a block of 32; all of them must keep it.
TYPES = {"f32": 0.0, "f16": 2.0 ** -10, "bf16": 2.0 ** -8, "q8_0": 1 / 200, "q4_0": 1 / 7,
         "mxfp4": 1 / 3}


def values(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--work", required=True)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    truth, ok = {}, True
    for name, bound in TYPES.items():
        path = f"{args.work}/python-{name}.gguf"
        subprocess.run([args.tool, "export", args.model, path, name], check=True)
        reader = gguf.GGUFReader(path)
        worst = 0.0
        for tensor in reader.tensors:
            got = values(tensor)
            want = truth.setdefault(tensor.name, got)
            if len(tensor.shape) < 2:
                ok &= bool((got == want).all())
                continue
            blocks, errors = np.abs(want).reshape(-1, 32), np.abs(got - want).reshape(-1, 32)
            worst = max(worst, float((errors.max(1) / np.maximum(blocks.max(1), 1e-30)).max()))
        ok &= worst <= bound
        kinds = sorted({t.tensor_type.name for t in reader.tensors})
        print(f"{name}: {len(reader.fields)} fields, {len(reader.tensors)} tensors of"
              f" {', '.join(kinds)}; largest error {worst:.4f} of a block, bound {bound:.4f}")
        os.remove(path)
    print("all within bounds" if ok else "a bound is BROKEN")
    return 0 if ok else 1


sys.exit(main())

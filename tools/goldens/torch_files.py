#!/usr/bin/env python3
"""Writes tests/io/golden/torch_*: small files of torch.save for tests/io/torch_file_test.cpp.

  python tools/goldens/torch_files.py        (a Python with torch)
"""

import collections
import os
import pickle
import sys

import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/io/golden")


def values(count, dtype):
    """0.5, 1.5, -2.5, 3.5, ...: exact in every type with a fraction; 0, 1, 2, ... in others."""
    if not dtype.is_floating_point:
        return torch.arange(count).to(dtype)
    numbers = torch.arange(count, dtype=torch.float32) + 0.5
    return torch.where(torch.arange(count) % 3 == 2, -numbers, numbers).to(dtype)


def state():
    shared = values(12, torch.float32).reshape(3, 4)
    return collections.OrderedDict(
        f32=values(6, torch.float32).reshape(2, 3),
        bf16=values(5, torch.bfloat16),
        f16=values(3, torch.float16),
        f64=values(4, torch.float64),
        i64=values(4, torch.int64),
        u8=values(7, torch.uint8),
        flags=torch.tensor([True, False, True]),
        shared=shared,
        again=shared,
        rows=shared[1:],
        scalar=torch.tensor(3.5),
        empty=torch.zeros(0, 3),
        empty_view=torch.zeros(3, 2, 0)[1:],
        parameter=torch.nn.Parameter(values(2, torch.float32)),
    )


class Attack:
    def __reduce__(self):
        return os.system, ("echo attacked",)


def main():
    os.makedirs(OUT, exist_ok=True)

    def save(value, name, **options):
        torch.save(value, os.path.join(OUT, name), **options)

    save(state(), "torch_archive.pt")
    save({"f8": values(4, torch.float32).to(torch.float8_e4m3fn)}, "torch_f8.pt")
    save(state(), "torch_stream.bin", _use_new_zipfile_serialization=False)
    save(state(), "torch_stream4.bin", _use_new_zipfile_serialization=False, pickle_protocol=4)
    save(
        {"model": {"fc.weight": values(4, torch.float32)}, "epoch": 3, "rates": [0.1, None],
         "optimizer": {"state": {0: {"step": torch.tensor(2.0)}}}},
        "torch_nested.pth",
        pickle_protocol=4,
    )
    save({"w": values(6, torch.float32).reshape(2, 3).t()}, "torch_columns.pt")
    save({"w": torch.zeros(1), "bad": Attack()}, "torch_attack.pt", pickle_module=pickle)
    save(torch.nn.Linear(2, 1), "torch_module.pt")
    print(f"written with torch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Random files of torch.save, beside the same tensors as safetensors.

Each case has random names, nesting, types, shapes, views, shared storages and parameters. It has
one of the two containers and one of the protocols of pickle. `loom diff` must find all tensors
equal, and one differing tensor after a single value was changed. A tensor that is not in row-major
order, and an object that is not a tensor, must be refused by name.

  torch_files_check.py --loom build/dev/cli/loom [--cases N] [--seed N]

Needs torch and safetensors. The last line counts.
"""

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file

TYPES = [
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip
WORDS = ["layer", "weight", "b", "0", "12", "große", "attn.q", "x y", "_"]


def values(shape, dtype, rng):
    count = 1
    for extent in shape:
        count *= extent
    if dtype == torch.bool:
        numbers = [rng.random() < 0.5 for _ in range(count)]
    elif dtype.is_floating_point:
        numbers = [rng.uniform(-4, 4) for _ in range(count)]
    else:
        numbers = [rng.randrange(0 if dtype == torch.uint8 else -100, 100) for _ in range(count)]
    return torch.tensor(numbers, dtype=torch.float64).to(dtype).reshape(shape)


def random_tensor(rng, made):
    """A new tensor, or a view of an earlier one."""
    whole = [t for t in made if t.dim() > 0 and t.shape[0] > 1]
    if whole and rng.random() < 0.25:
        source = rng.choice(whole)
        return source if rng.random() < 0.5 else source[1:]
    shape = [rng.randrange(0 if rng.random() < 0.1 else 1, 6) for _ in range(rng.randrange(0, 4))]
    tensor = values(shape, rng.choice(TYPES), rng)
    if tensor.dtype == torch.float32 and rng.random() < 0.3:
        return torch.nn.Parameter(tensor)
    return tensor


def random_state(rng):
    """The nested dictionary, and its tensors by their dotted names."""
    flat, made = {}, []

    def fill(prefix, depth):
        state = rng.choice([dict, collections.OrderedDict])()
        for word in rng.sample(WORDS, rng.randrange(1, 6)):
            name = f"{prefix}{word}"
            if depth < 3 and rng.random() < 0.2:
                state[word] = fill(f"{name}.", depth + 1)
            elif rng.random() < 0.1:
                state[word] = rng.choice([3, 0.5, None, "text", [1, 2], (True,)])
            elif name not in flat:
                flat[name] = state[word] = random_tensor(rng, made)
                made.append(flat[name])
        return state

    state = fill("", 0)
    if not flat:
        flat["last"] = state["last"] = values([2], torch.float32, rng)
    return state, flat


def save(state, path, rng):
    old = rng.random() < 0.4
    # The older container has no types of 8 bits.
    if old and any(str(t.dtype).startswith("torch.float8") for t in tensors_of(state)):
        old = False
    torch.save(state, path, pickle_protocol=rng.choice([2, 3, 4, 5]),
               _use_new_zipfile_serialization=not old)  # fmt: skip


def tensors_of(state):
    for value in state.values():
        if isinstance(value, dict):
            yield from tensors_of(value)
        elif isinstance(value, torch.Tensor):
            yield value


def run(loom, *words):
    done = subprocess.run([loom, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def write_plain(flat, path):
    save_file({name: t.detach().clone().contiguous() for name, t in flat.items()}, path)


def changed(flat, rng):
    """The same with another value in one tensor; None if all are empty."""
    full = sorted(name for name, t in flat.items() if t.numel() > 0)
    if not full:
        return None
    other = {name: t.detach().clone() for name, t in flat.items()}
    name = rng.choice(full)
    raw = other[name].contiguous().reshape(-1).view(torch.uint8)
    # A bit of the last byte of a value: loom diff compares float32.
    width = other[name].element_size()
    raw[width * rng.randrange(1, other[name].numel() + 1) - 1] ^= 1
    other[name] = raw.view(other[name].dtype).reshape(other[name].shape)
    return other


def equal_case(loom, rng, folder):
    state, flat = random_state(rng)
    a, b = os.path.join(folder, "a.pt"), os.path.join(folder, "b.safetensors")
    save(state, a, rng)
    write_plain(flat, b)
    code, text = run(loom, "diff", a, b)
    if code != 0 or f"{len(flat)} of {len(flat)} tensors are equal" not in text:
        return f"equal files: {text}"
    other = changed(flat, rng)
    if other is None:
        return ""
    write_plain(other, b)
    code, text = run(loom, "diff", a, b)
    wanted = f"{len(flat) - 1} of {len(flat)} tensors are equal"
    return "" if code == 5 and wanted in text else f"one changed value: {text}"


class Other:
    """Not a tensor."""


def refused_case(loom, rng, folder):
    path = os.path.join(folder, "a.pt")
    state, _ = random_state(rng)
    if rng.random() < 0.5:
        shape = [rng.randrange(2, 5), rng.randrange(2, 5)]
        state["columns"] = values(shape, torch.float32, rng).t()
        wanted = "columns"
    else:
        state["other"] = Other()
        wanted = "Other"
    save(state, path, rng)
    code, text = run(loom, "info", path)
    lines = text.strip().splitlines()
    return "" if code != 0 and len(lines) == 1 and wanted in text else f"not refused: {text}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loom", required=True)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    passed, failed = 0, 0
    for case in range(args.cases):
        rng = random.Random(f"{args.seed} {case}")
        with tempfile.TemporaryDirectory() as folder:
            for check in (equal_case, refused_case):
                wrong = check(args.loom, rng, folder)
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print(f"WRONG case {case} of seed {args.seed}: {wrong.strip()}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

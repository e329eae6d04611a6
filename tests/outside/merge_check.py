#!/usr/bin/env python3
"""loom merge compared with NumPy, on checkpoints of a language model and on networks, per tensor.

    tests/outside/merge_check.py build/dev/cli/loom [--transformers-python PYTHON]

With a Python that has torch and transformers, merged folders are opened there too, and the results
are compared with Loom's. The methods are those of tests/evolve/make_vectors.py. Closes with "N
passed, N failed, N skipped".
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
STORIES = ROOT / "tests" / "data" / "stories"
NETWORK = ["new", "mlp", "--in", "12", "--hidden", "17,9", "--out", "5"]

# Run there with a folder and ids; prints the logits of the last position.
IN_TRANSFORMERS = """
import json, sys, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
with torch.no_grad():
    ids = torch.tensor([json.loads(sys.argv[2])])
    out = model.generate(ids, max_new_tokens=24, do_sample=False)
print(json.dumps(out[0].tolist()))
"""


def read_floats(path):
    """Tensors of float32 or bfloat16, which NumPy does not know, as float32."""
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    out = {}
    for name, entry in json.loads(raw[8:begin]).items():
        if name == "__metadata__":
            continue
        first, last = (begin + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            high = np.frombuffer(raw[first:last], np.uint16).astype(np.uint32)
            values = (high << 16).view(np.float32)
        else:
            values = np.frombuffer(raw[first:last], np.float32)
        out[name] = values.reshape(entry["shape"])
    return out


def trim(delta, density):
    keep = max(1, int(density * delta.size))
    out = np.zeros_like(delta)
    order = np.argsort(-np.abs(delta), kind="stable")[:keep]
    out[order] = delta[order]
    return out if density < 1 else delta


def slerp(a, b, t):
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    cosine = np.clip(np.dot(a, b) / lengths, -1, 1) if lengths > 0 else 1.0
    if abs(cosine) > 0.9995:
        return (1 - t) * a + t * b
    angle = np.arccos(cosine)
    return np.sin((1 - t) * angle) / np.sin(angle) * a + np.sin(t * angle) / np.sin(angle) * b


def linear(models, _base, weights):
    return sum(w * m for w, m in zip(weights, models)) / sum(weights)


def tasks(models, base, weights):
    return base + 0.7 * sum(w * (m - base) for w, m in zip(weights, models))


def ties(models, base, weights):
    parts = [w * trim(m - base, 0.4) for w, m in zip(weights, models)]
    majority = np.where(sum(parts) >= 0, 1, -1)
    masks = [np.sign(part) == majority for part in parts]
    total = sum(np.where(mask, part, 0.0) for mask, part in zip(masks, parts))
    by = sum(np.where(mask, w, 0.0) for mask, w in zip(masks, weights))
    return base + total / np.where(np.abs(by) < 1e-8, 1.0, by)


CASES = [
    ("linear", linear, [], 3),
    ("slerp", lambda m, _b, _w: slerp(m[0], m[1], 0.3), ["--t", "0.3"], 2),
    ("task_arithmetic", tasks, ["--lambda", "0.7", "--base"], 3),
    ("ties", ties, ["--density", "0.4", "--base"], 3),
    ("dare_ties", None, ["--density", "0.6", "--seed", "5", "--base"], 2),
]
WEIGHTS = [0.6, 0.9, 0.25]


class Check:
    def __init__(self, loom, transformers):
        self.loom, self.transformers = str(loom.resolve()), transformers
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def say(self, name, problem):
        outcome = "failed" if problem else "passed"
        self.counts[outcome] += 1
        print(f"{name}: {outcome}{': ' + problem if problem else ''}", flush=True)

    def run(self, *words):
        line = [self.loom, *map(str, words)]
        ran = subprocess.run(line, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"loom {' '.join(map(str, words))}: {ran.stderr.strip()}")
        return ran.stdout

    def merge(self, method, extra, models, base, out):
        weights = ",".join(str(w) for w in WEIGHTS[: len(models)])
        more = [*extra, base] if extra and extra[-1] == "--base" else extra
        self.run("merge", *models, "--method", method, "--weights", weights, *more, "-o", out,
                 "--force", "--quiet")  # fmt: skip

    def compare(self, name, oracle, files, base, out):
        """All tensors of `out` against the oracle of those of `files`, bit by bit."""
        models, start, got = [load_file(f) for f in files], load_file(base), load_file(out)
        worst, values = "", 0
        for key in start:
            if key not in got or got[key].dtype != np.float32:
                worst = f"{key} is absent or no float32"
                break
            wide = [m[key].astype(np.float64).ravel() for m in models]
            wanted = oracle(wide, start[key].astype(np.float64).ravel(), WEIGHTS).astype(np.float32)
            off = int((wanted != got[key].ravel()).sum())
            values += wanted.size
            if off:
                worst = f"{off} of {wanted.size} values of {key} differ"
                break
        self.say(f"{name}, {values} values", worst)

    def networks(self, folder):
        """Networks as safetensors, whose tensors are named by their paths."""
        description = folder / "net.json"
        self.run(*NETWORK, "-o", description)
        rng = np.random.default_rng(4)
        data = folder / "data.npz"
        np.savez(data, x=rng.normal(size=(60, 12)).astype(np.float32), y=rng.integers(0, 5, 60))
        files = []
        for seed in range(1, 5):
            files.append(folder / f"net{seed}.safetensors")
            self.run("train", description, data, "--epochs", 2, "--seed", seed, "-o", files[-1],
                     "--quiet")  # fmt: skip
        for method, oracle, extra, count in CASES:
            out = folder / f"{method}.safetensors"
            self.merge(method, extra, files[:count], files[3], out)
            if oracle:
                self.compare(f"networks, {method}", oracle, files[:count], files[3], out)

    def language_models(self, folder):
        """Copies of a checkpoint with noise, as folders."""
        rng = np.random.default_rng(9)
        start = read_floats(STORIES / "model.safetensors")
        folders = []
        for number in range(4):
            folders.append(folder / f"stories{number}")
            shutil.copytree(STORIES, folders[-1])
            noisy = {}
            for key, value in start.items():
                scale = 0.02 * float(np.abs(value).mean())
                noisy[key] = (value + scale * rng.normal(size=value.shape)).astype(np.float32)
            save_file(noisy, folders[-1] / "model.safetensors", {"format": "pt"})
        for method, oracle, extra, count in CASES:
            out = folder / f"merged_{method}"
            self.merge(method, extra, folders[:count], folders[3], out)
            if oracle:
                files = [f / "model.safetensors" for f in folders[:count]]
                base, got = folders[3] / "model.safetensors", out / "model.safetensors"
                self.compare(f"language models, {method}", oracle, files, base, got)
            self.opens(f"transformers, {method}", out)

    def opens(self, name, folder):
        if not self.transformers:
            self.counts["skipped"] += 1
            print(f"{name}: skipped: --transformers-python is not given")
            return
        ids = json.loads(self.run("tokenize", folder, "Once upon a time", "--json"))["token_ids"]
        line = [self.transformers, "-c", IN_TRANSFORMERS, str(folder), json.dumps(ids)]
        ran = subprocess.run(line, capture_output=True, text=True, check=False)
        if ran.returncode:
            self.say(name, ran.stderr.strip().splitlines()[-1])
            return
        theirs = json.loads(ran.stdout.strip().splitlines()[-1])[len(ids) :]
        said = self.run("run", folder, "-p", "Once upon a time", "--max-tokens", 24,
                        "--temperature", 0, "--json", "--quiet")  # fmt: skip
        mine = json.loads(said.strip().splitlines()[-1])["token_ids"]
        same = mine and mine == theirs[: len(mine)]
        self.say(name, "" if same else f"another text: {mine} and {theirs}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("loom", type=Path)
    parser.add_argument("--transformers-python", default="", help="it has torch and transformers")
    given = parser.parse_args()
    check = Check(given.loom, given.transformers_python)
    with tempfile.TemporaryDirectory() as folder:
        check.networks(Path(folder))
        check.language_models(Path(folder))
    counts = check.counts
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Random decoders, written as .gguf, as a folder of Hugging Face and as .entity, and read back.

They are described cell by cell with fields drawn away from their defaults. Reading back must give
the same cells and the same perplexity to the last digit. A writer may refuse a network if it names
the field. If other programs are installed, they read the files as well: the package `gguf` reads
the keys, llama.cpp and transformers the models, whose perplexity must be the same.

    tests/outside/export_models.py build/dev/cli/loom [--count 60] [--first 0] [--llama LIBRARIES]

LIBRARIES: a folder with libllama (llama_library.py).

Closes with "N passed, N failed, N skipped".
"""

import argparse
import collections
import json
import math
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

import numpy as np
from safetensors.numpy import load_file, save_file

try:
    import gguf
except ImportError:
    gguf = None
try:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
except ImportError:
    transformers = None

from llama_library import Llama, LlamaFailure

ROOT = Path(__file__).resolve().parents[2]
STORIES = ROOT / "tests" / "data" / "stories"
TEXT = (
    "Once upon a time there was a little girl who had a red ball. She played with it every day.\n"
    * 3
)
VOCAB = 1024  # of the tokenizer in STORIES
BOUND = 1e-4  # of a perplexity; others add in another order
WINDOW = 24  # predictions without earlier context

# Fields without effect while another one is off.
IDLE = {
    "sub_norm_eps": "sub_norm",
    "qk_norm_eps": "qk_norm",
    "rope_factor": "rope_scaling",
    "rope_low_freq": "rope_scaling",
    "rope_high_freq": "rope_scaling",
    "rope_original": "rope_scaling",
}
ATTENTION = {
    "bias": [True],
    "out_bias": [True],
    "qk_norm": [True],
    "qk_norm_eps": [1e-5, 1e-3],
    "causal": [False],
    "window": [5, 9],
    "rope": [False],
    "rope_theta": [500.0, 1e6],
    "rope_scaling": ["linear", "llama3"],
    "rope_factor": [2.0, 8.0],
    "rope_low_freq": [1.5],
    "rope_high_freq": [3.0],
    "rope_original": [64],
    "rope_width": [4],
    "scale": [0.3, 1.25],
    "soft_cap": [2.0, 30.0],
    "sub_norm": [True],
    "sub_norm_eps": [1e-3],
}
MLP = {
    "bias": [True],
    "activation": ["gelu_tanh", "relu", "gelu_erf"],
    "sub_norm": [True],
    "sub_norm_eps": [1e-3],
}
EMBEDDING = {
    "scale": [5.65685424949238, 2.0],
    "padding_id": [3],
    "activation": ["tanh"],
    "sparse": [True],
    "positions": [512],
}
HEAD = {"soft_cap": [4.0, 30.0], "bias": [True], "activation": ["tanh"]}
# Combinations that a real class has: decoders that are written. Single fields give mostly refusals.
CLASSES = [
    {},
    {"a.bias": 1, "a.out_bias": 1, "m.bias": 1},
    {"a.bias": 1},
    {"a.qk_norm": 1},
    {"a.window": 1},
    {
        "a.rope_scaling": 1,
        "a.rope_factor": 1,
        "a.rope_low_freq": 1,
        "a.rope_high_freq": 1,
        "a.rope_original": 1,
    },
    {"a.sub_norm": 1, "m.sub_norm": 1},
    {"a.rope_width": 1},
    {"m.activation": 1},
    {"e.scale": 1, "m.activation": 1},
    {"e.scale": 1, "m.activation": 1, "a.scale": 1, "a.soft_cap": 1, "h.soft_cap": 1},
]


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.eps = self.random.choice([1e-6, 1e-5, 1e-3])
        self.fields = {"a": {}, "m": {}, "e": {}, "h": {}}
        self.tables = {"a": ATTENTION, "m": MLP, "e": EMBEDDING, "h": HEAD}
        self.blocks, self.width = self.random.randint(1, 3), 32
        for name in self.random.choice(CLASSES):
            self.set(name)
        self.set("a.rope_theta")
        if self.random.random() < 0.5:
            part = self.random.choice("aaamehe")
            self.set(f"{part}.{self.random.choice(list(self.tables[part]))}")
        self.post = self.fields["a"].get("soft_cap") is not None and self.random.random() < 0.8
        self.tied = self.random.random() < 0.5 and "bias" not in self.fields["h"]
        self.each = self.random.random() < 0.3  # blocks differ

    def set(self, name):
        part, field = name.split(".")
        self.fields[part][field] = self.random.choice(self.tables[part][field])

    def norm(self):
        return {"type": "RMSNorm", "width": self.width, "eps": self.eps}

    def block(self, z, layer, half):
        after = [self.norm()] if self.post else []
        return {"at": [z, 0, 0, half], "type": "Residual", "children": [self.norm(), layer, *after]}

    def net(self):
        table = {
            "at": [0, 0, 0, 0],
            "type": "Embedding",
            "vocab": VOCAB,
            "width": self.width,
            **self.fields["e"],
        }
        cells, heads = [table], self.random.choice([1, 2, 4])
        shape = {
            "width": self.width,
            "heads": heads * 2,
            "kv_heads": heads,
            "head_dim": self.random.choice([8, 16]),
        }
        inner = self.random.choice([32, 64])
        for b in range(1, self.blocks + 1):
            mine = dict(self.fields["a"])
            if self.each and b % 2 == 0:
                mine.pop("window", None)
            cells.append(self.block(b, {"type": "MultiHeadAttention", **shape, **mine}, 0))
            cells.append(
                self.block(
                    b,
                    {"type": "SwiGLU", "width": self.width, "inner": inner, **self.fields["m"]},
                    1,
                )
            )
        last = self.blocks + 1
        cells.append({"at": [last, 0, 0, 0], **self.norm()})
        head = {
            "at": [last, 0, 0, 1],
            "type": "Dense",
            "in": self.width,
            "out": VOCAB,
            "bias": False,
            **self.fields["h"],
        }
        cells.append({**head, "shared_with": [0, 0, 0, 0]} if self.tied else head)
        return {"loom": 1, "grid": [last + 1, 1, 1, 2], "input": [16], "cells": cells}

    def words(self):
        names = [field for part in self.fields.values() for field in part]
        known = {
            "activation": "hidden_act",
            "soft_cap": "soft caps",
            "scale": "scale",
            "window": "windows",
            "bias": "biases",
            "rope": "rotary",
            "rope_width": "partial_rotary_factor",
        }
        also = [known[name] for name in names if name in known]
        turns = ["rotary"] if any(name.startswith("rope") for name in names) else []
        drawn = ["head_dim", "tie_word_embeddings", "rope_type", "mlp_bias"]
        return [*names, *also, *turns, *drawn, "norms", "eps of RMSNorm", "layers of Residual"]


def meaning(cell):
    """A cell without fields that have no effect."""
    out = {k: v for k, v in cell.items() if k not in ("dtype",)}
    for field, owner in IDLE.items():
        if field in out and not out.get(owner):
            del out[field]
    if "children" in out:
        out["children"] = [meaning(child) for child in out["children"]]
    return out


class Failure(Exception):
    pass


class Case:
    ids = {}  # of TEXT, by the files of a tokenizer

    def __init__(self, program, seed, folder, llama=None):
        self.program, self.folder, self.llama = program, Path(folder), llama
        self.draw = Draw(seed)
        (self.folder / "text.txt").write_text(TEXT)
        (self.folder / "net.json").write_text(json.dumps(self.draw.net()))
        self.loom("convert", "net.json", "start.safetensors", "--seed", seed, "--quiet")
        self.draw_weights(np.random.default_rng(seed))
        self.cells = self.described("net.safetensors")

    def draw_weights(self, drawn):
        """Biases and gains that matter."""
        start = self.folder / "start.safetensors"
        values = {
            name: (v + 0.1 * drawn.standard_normal(v.shape)).astype(np.float32)
            for name, v in load_file(start).items()
        }
        raw = start.read_bytes()
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        save_file(values, self.folder / "net.safetensors", metadata=header["__metadata__"])

    def loom(self, *words):
        done = subprocess.run(
            [self.program, *map(str, words)], capture_output=True, text=True, cwd=self.folder
        )
        if done.returncode:
            raise Failure(done.stderr.strip().splitlines()[-1])
        return done.stdout

    def described(self, model):
        self.loom("convert", model, "back.json", "--force", "--quiet")
        return [
            meaning(cell) for cell in json.loads((self.folder / "back.json").read_text())["cells"]
        ]

    def perplexity(self, model):
        return json.loads(self.loom("perplexity", model, "text.txt", "--window", WINDOW, "--json"))

    def write(self, name):
        """Returns false if the writer refuses the network and names a field."""
        try:
            self.loom(
                "convert",
                "net.safetensors",
                name,
                "--tokenizer",
                STORIES,
                "--context",
                64,
                "--quiet",
            )
        except Failure as refusal:
            text = str(refusal)
            if re.search(r"has this \w+( of \w+)? in cell", text) or any(
                re.search(rf"\b{re.escape(word)}\b", text) for word in self.draw.words()
            ):
                return False
            raise Failure(f"{name}: refused without a name: {text}") from refusal
        return True

    def check(self, name, first):
        cells = self.described(name)
        for mine, theirs in zip(self.cells, cells):
            if mine != theirs:
                raise Failure(f"{name}: {difference(mine, theirs)}")
        if len(cells) != len(self.cells):
            raise Failure(f"{name}: {len(cells)} cells in place of {len(self.cells)}")
        found = measured(self.perplexity(name))
        if first is not None and found != first:
            raise Failure(f"{name}: a perplexity of {found}, elsewhere {first}")
        if name.endswith(".gguf") and gguf is not None:
            self.check_keys(name)
        if name.endswith(".gguf") and self.llama is not None:
            self.check_llama(name, found)
        if name == "folder" and transformers is not None:
            self.check_transformers(self.folder / name, found)
        return found

    def check_transformers(self, folder, found):
        """The perplexity by transformers from the folder: the same windows, in float32."""
        try:
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager"
            ).eval()
        except Exception as error:  # any error of transformers
            raise Failure(f"folder: transformers refuses it: {error}") from error
        ids = self.ids_by_transformers(folder)
        total = (len(ids) - 1) // WINDOW * WINDOW
        nats = []
        with torch.no_grad():
            for begin in range(0, total, WINDOW):
                logits = model(ids[None, begin : begin + WINDOW]).logits[0]
                wanted = ids[begin + 1 : begin + WINDOW + 1]
                nats.append(torch.nn.functional.cross_entropy(logits.double(), wanted))
        want = float(torch.stack(nats).mean().exp())
        if abs(found / want - 1) > BOUND:
            raise Failure(f"folder: a perplexity of {found}, {want} by transformers")

    @classmethod
    def ids_by_transformers(cls, folder):
        files = b"".join(path.read_bytes() for path in sorted(folder.glob("*token*.json")))
        if files not in cls.ids:
            made = transformers.AutoTokenizer.from_pretrained(folder)
            cls.ids[files] = torch.tensor(made(TEXT)["input_ids"])
        return cls.ids[files]

    def check_llama(self, name, found):
        """The perplexity by llama.cpp from the file: its own ids, the same windows, in float32."""
        try:
            want = math.exp(self.llama.nats(self.folder / name, TEXT.encode(), WINDOW))
        except LlamaFailure as failure:
            raise Failure(f"{name}: {failure}") from failure
        if abs(found / want - 1) > BOUND:
            raise Failure(f"{name}: a perplexity of {found}, {want} by llama.cpp")

    def check_keys(self, name):
        """The sizes as the package gguf reads them."""
        fields = gguf.GGUFReader(self.folder / name).fields
        arch = bytes(fields["general.architecture"].parts[-1]).decode()
        attention = next(c for c in self.cells if c["type"] == "Residual")["children"][1]
        for key, want in (
            ("block_count", self.draw.blocks),
            ("embedding_length", self.draw.width),
            ("attention.head_count", attention["heads"]),
        ):
            got = int(fields[f"{arch}.{key}"].parts[-1][0])
            if got != want:
                raise Failure(f"{name}: {arch}.{key} is {got}, must be {want}")


def measured(report):
    return report["perplexity"] if isinstance(report, dict) else report[0]["perplexity"]


def difference(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            if a.get(key) != b.get(key):
                return difference(a.get(key), b.get(key), f"{path}.{key}")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return difference(x, y, f"{path}[{i}]")
    return f"{path or 'a cell'}: {a!r} became {b!r}"


def run(program, seed, counts, llama=None):
    with tempfile.TemporaryDirectory() as folder:
        case, first = Case(program, seed, folder, llama), None
        for name in ("net.entity", "net.gguf", "folder"):
            if not case.write(name):
                counts[name, "refused"] += 1
                continue
            first = case.check(name, first)
            counts[name, "equal"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--llama", default="")
    args = parser.parse_args()
    counts, failed = collections.Counter(), 0
    llama = Llama(args.llama) if args.llama else None
    for seed in range(args.first, args.first + args.count):
        try:
            run(str(Path(args.program).resolve()), seed, counts, llama)
        except Failure as failure:
            failed += 1
            print(f"FAILED seed {seed}: {failure}")
    for name in ("net.entity", "net.gguf", "folder"):
        print(f"{name}: {counts[name, 'equal']} equal, {counts[name, 'refused']} refused by name")
    for reader, there in (("gguf", gguf), ("llama.cpp", llama), ("transformers", transformers)):
        if there is None:
            print(f"{reader} is not there and read nothing")
    print(f"{args.count - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

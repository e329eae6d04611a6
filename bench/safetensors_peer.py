#!/usr/bin/env python3
"""Our safetensors files and those of the `safetensors` library, read by each other.

The library writes every type that it has, in several shapes, and the same values as F32;
`loom diff` must find them equal. In the other direction, the library opens the output of
`loom convert` and `loom train`, with the shapes and values that Loom sees. If `transformers` is
installed, it continues a prompt from our folder with the text of `loom run`.

  bench/safetensors_peer.py --loom build/dev/cli/loom --python PYTHON_WITH_SAFETENSORS_AND_TORCH

Exit status: 0; 1 when something differs; 77 when the library is not there.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROMPTS = ["Once upon a time", "Tom had a red ball.", "Lily and her dog"]
REFUSED = ["F8_E4M3FNUZ", "F8_E5M2FNUZ"]  # types that Loom lacks
SHAPES = [[], [1], [7], [0], [3, 0, 2], [2, 3], [5, 1, 3], [1, 2, 1, 2, 1, 3]]

# Parts that run inside the library's Python, each with its arguments as JSON in argv[1].
WRITE = """
import json, sys, torch
from safetensors.torch import save_file
folder, shapes = json.loads(sys.argv[1])
names = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
         "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
         "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
         "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
         "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz"}
whole = [0, 1, 2, 3, 5, 7, 100, 127, -1, -2, -128, -100]
real = [0.0, -0.0, 1.0, -1.5, 0.375, 96.0, -0.0625, 2.0, 208.0, -3.5, 0.015625]
done = {}
for name, torch_name in names.items():
    dtype = getattr(torch, torch_name, None)
    if dtype is None:
        continue
    tensors, plain = {}, {}
    for i, shape in enumerate(shapes):
        count = 1
        for extent in shape:
            count *= extent
        pool = real if "float" in torch_name else whole
        pool = [abs(v) for v in pool] if name[0] == "U" else pool
        values = torch.tensor([float(pool[(i + k) % len(pool)]) for k in range(count)])
        tensor = values.reshape(shape).to(dtype)
        tensors[f"t{i}"] = tensor
        plain[f"t{i}"] = tensor.to(torch.float32)
    if name in ("F16", "BF16", "F8_E4M3", "F8_E5M2"):  # every finite value
        bits = torch.arange(65536 if "16" in name else 256, dtype=torch.int32)
        codes = bits.to(torch.uint16 if "16" in name else torch.uint8).view(dtype)
        every = codes[torch.isfinite(codes.to(torch.float32))].clone()
        tensors["every"], plain["every"] = every, every.to(torch.float32)
    try:
        save_file(tensors, f"{folder}/{name}.safetensors", metadata={"format": "pt"})
    except Exception as error:
        print(f"{name}: {error}", file=sys.stderr)
        continue
    save_file(plain, f"{folder}/{name}-f32.safetensors")
    done[name] = {k: list(v.shape) for k, v in tensors.items()}
print(json.dumps(done))
"""
READ = """
import json, sys, torch
from safetensors import safe_open
from safetensors.torch import save_file
path, copy = json.loads(sys.argv[1])
with safe_open(path, "pt") as file:
    tensors = {key: file.get_tensor(key) for key in file.keys()}
save_file({k: v.to(torch.float32).contiguous() for k, v in tensors.items()}, copy)
print(json.dumps({k: list(v.shape) for k, v in tensors.items()}))
"""
GENERATE = """
import json, sys, torch, transformers
folder, prompts, count = json.loads(sys.argv[1])
transformers.logging.set_verbosity_error()
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
texts = []
for prompt in prompts:
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count,
                         do_sample=False)
    texts.append(tokenizer.decode(out[0][ids.shape[1]:], skip_special_tokens=True))
print(json.dumps(texts))
"""


class Peer:
    def __init__(self, loom, python):
        self.loom, self.python, self.ok = loom, python, True

    def row(self, what, good, says):
        self.ok &= good
        print(f"| {what} | {says} | {'equal' if good else 'DIFFERS'} |", flush=True)

    def library(self, script, *arguments):
        run = subprocess.run([self.python, "-c", script, json.dumps(arguments)],
                             capture_output=True, text=True)
        sys.stderr.write(run.stderr if run.returncode else "")
        return json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else None

    def tool(self, *arguments):
        return subprocess.run([self.loom, *arguments], capture_output=True, text=True)

    def diff(self, a, b):
        """(tensors, equal ones, values) of `loom diff`."""
        run = self.tool("diff", a, b, "--json", "--all")
        if run.returncode not in (0, 5):
            return 0, -1, run.stderr.strip()
        report = json.loads(run.stdout)
        values = sum(t.get("count", 0) for t in report["list"])
        return report["tensors"], report["equal"], values


def from_library(peer, work):
    written = peer.library(WRITE, work, SHAPES)
    if written is None:
        peer.row("the library writes", False, "nothing")
        return
    for name, tensors in written.items():
        path = f"{work}/{name}.safetensors"
        total, equal, values = peer.diff(path, f"{work}/{name}-f32.safetensors")
        if name in REFUSED:
            good = equal < 0 and "unknown dtype" in str(values)
            print(f"| {name}, written by the library | "
                  f"{'refused by name' if good else values} | - |")
            peer.ok &= good
            continue
        good = total == equal == len(tensors)
        peer.row(f"{name}, written by the library", good,
                 f"{equal} of {total} tensors, {values} values")


def to_library(peer, what, path, same_as, shapes=None):
    """The library opens `path`, and has the values that Loom sees in `same_as`."""
    copy = path + ".copy.safetensors"
    seen = peer.library(READ, path, copy)
    if seen is None:
        peer.row(what, False, "refused by the library")
        return
    total, equal, values = peer.diff(copy, same_as)
    good = total == equal == len(seen) and (shapes is None or shapes == seen)
    peer.row(what, good, f"{equal} of {len(seen)} tensors, {values} values")


def trained(peer, work):
    """Weights of `loom train` as the library sees them."""
    with open(f"{work}/data.csv", "w", encoding="utf-8") as file:
        for i in range(64):
            x = [(i * 7 % 11) / 11, (i * 5 % 13) / 13, (i * 3 % 17) / 17]
            file.write(f"{x[0]},{x[1]},{x[2]},{int(x[0] > x[1])}\n")
    net, out = f"{work}/net.json", f"{work}/trained.safetensors"
    made = peer.tool("new", "mlp", "--in", "3", "--hidden", "5", "--out", "2", "-o", net)
    run = peer.tool("train", net, f"{work}/data.csv", "-o", out, "--epochs", "2")
    if made.returncode or run.returncode:
        peer.row("loom train", False, (made.stderr + run.stderr).strip())
        return
    to_library(peer, "weights of `loom train`, opened by the library", out, out)


def folder(peer, work):
    """A folder written by `loom convert`, its shapes, its values, and its text."""
    entity, hf = f"{ROOT}/models/stories.entity", f"{work}/stories"
    run = peer.tool("convert", entity, hf, "--quiet")
    if run.returncode:
        peer.row("loom convert", False, run.stderr.strip())
        return
    original = f"{ROOT}/tests/data/stories/model.safetensors"
    shapes = peer.library(READ, original, f"{work}/original-f32.safetensors")
    weights = f"{hf}/model.safetensors"
    to_library(peer, "folder of `loom convert`, opened by the library", weights, weights, shapes)
    total, equal, values = peer.diff(hf, entity)
    peer.row("the folder and the q8_0 file it is of", total == equal,
             f"{equal} of {total} tensors, {values} values")
    total, equal, values = peer.diff(original, f"{work}/original-f32.safetensors")
    peer.row("the checkpoint in bfloat16, and as the library reads it", total == equal,
             f"{equal} of {total} tensors, {values} values")
    text(peer, hf)


def text(peer, hf):
    if peer.library("import transformers; print(1)") is None:
        print("| greedy text | transformers is not there | - |")
        return
    count = 64
    theirs = peer.library(GENERATE, hf, PROMPTS, count)
    equal = 0
    for prompt, wanted in zip(PROMPTS, theirs or []):
        run = peer.tool("run", hf, "-p", prompt, "--max-tokens", str(count), "--dtype", "float32")
        ours = run.stdout.rstrip("\n").removeprefix(prompt)
        equal += ours == wanted.rstrip("\n")
        if ours != wanted.rstrip("\n"):
            print(f"ours:   {ours!r}\ntheirs: {wanted!r}\n{run.stderr}", file=sys.stderr)
    peer.row(f"greedy text of the folder, {count} tokens, by transformers and `loom run`",
             equal == len(PROMPTS), f"{equal} of {len(PROMPTS)} prompts")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loom", required=True)
    parser.add_argument("--python", default=sys.executable, help="one with the library and torch")
    args = parser.parse_args()
    peer = Peer(os.path.abspath(args.loom), args.python)
    found = peer.library("import json, torch, safetensors\n"
                         "print(json.dumps([safetensors.__version__, torch.__version__]))")
    if found is None:
        print("the safetensors library or torch is not installed")
        return 77
    print(f"safetensors {found[0]}, torch {found[1]}\n")
    print("| what | compared | |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        from_library(peer, work)
        trained(peer, work)
        folder(peer, work)
    print("\nall equal" if peer.ok else "\nsomething DIFFERS")
    return 0 if peer.ok else 1


if __name__ == "__main__":
    sys.exit(main())

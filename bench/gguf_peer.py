#!/usr/bin/env python3
"""GGUF files between Loom and llama.cpp, both ways, in one run.

1. Our export of a model (f32) in llama.cpp: equal token ids, logits within 1e-2, and the greedy
   text of the model's reference prompts.
2. Files that llama.cpp's own quantizer made from our export, in both: perplexity of the same ids in
   the same windows. llama.cpp rounds activations to 8 bits for its quantized kernels. So ours is
   measured with activations in int8 (q8) and in f32. Some types have
   blocks of 256. For them the model's width is padded with zeros to a multiple of it, exactly (norm
   gains take the change of width).

  bench/gguf_peer.py --model ../shared/data/models/shakespeare-llama \\
      --text ../shared/data/tinyshakespeare.txt --tool build/release/bench/gguf_tool --work /tmp/w

Needs the folder that ../shared/peers/llama.sh prepares (--peer, default WORK) and g++. Exit status:
0; 1 if a bound is exceeded; 77 if the peer is absent.
"""
import argparse
import array
import glob
import json
import math
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = [("F16", 1), ("BF16", 32), ("Q4_0", 2), ("Q4_1", 3), ("Q5_0", 8), ("Q5_1", 9), ("Q8_0", 7),
         ("Q2_K", 10), ("Q3_K_M", 12), ("Q4_K_M", 15), ("Q5_K_M", 17), ("Q6_K", 18),
         ("IQ4_NL", 25), ("TQ1_0", 36), ("TQ2_0", 37), ("MXFP4_MOE", 38)]
BOUND = 0.005


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def build_peer(args):
    folders = glob.glob(os.path.join(args.peer, "package/bins/linux-x64*/"))
    if not folders:
        print("llama.cpp is not there; run ../shared/peers/llama.sh WORK first")
        sys.exit(77)
    bins = os.path.abspath(folders[0])
    def pick(stem):
        return "-l:" + os.path.basename(sorted(glob.glob(f"{bins}/{stem}*.so*"))[0])
    out = os.path.join(args.work, "gguf_peer")
    run("g++", "-O2", f"{HERE}/gguf_peer.cpp", f"-L{bins}", pick("libllama."), pick("libggml."),
        pick("libggml-base"), "-Wl,--allow-shlib-undefined", f"-Wl,-rpath,{bins}", "-o", out)
    return [out, bins]


def floats(path):
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def write_ids(path, ids):
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(ids)}i", *ids))


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    for name, t in header.items():
        begin, end = t["data_offsets"]
        yield name, t["dtype"], t["shape"], data[8 + size + begin:8 + size + end]


def padded_matrix(name, shape, data, config):
    """bf16 data of a matrix with more columns and rows of zeros."""
    rows, cols = shape
    width = 256 * math.ceil(cols / 256)
    out_rows = rows
    if rows == config["hidden_size"] and not name.endswith("k_proj.weight"):
        out_rows = 256 * math.ceil(rows / 256)
    line = 2 * cols
    padded = [data[r * line:(r + 1) * line] + bytes(2 * (width - cols)) for r in range(rows)]
    padded += [bytes(2 * width)] * (out_rows - rows)
    return [out_rows, width], b"".join(padded)


def pad_model(source, target):
    """The same function with hidden size and heads padded to a multiple of 256."""
    with open(f"{source}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    old = config["hidden_size"]
    new = 256 * math.ceil(old / 256)
    gain = math.sqrt(old / new)
    tensors, blob = {}, b""
    for name, dtype, shape, data in read_safetensors(f"{source}/model.safetensors"):
        assert dtype == "BF16"
        if len(shape) == 2:
            shape, data = padded_matrix(name, shape, data, config)
        else:
            values = struct.unpack(f"<{shape[0]}H", data)
            gains = [struct.unpack("<f", struct.pack("<I", v << 16))[0] * gain for v in values]
            shape, dtype = [new], "F32"
            data = struct.pack(f"<{new}f", *gains, *[0.0] * (new - old))
        tensors[name] = {"dtype": dtype, "shape": shape,
                         "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    config["rms_norm_eps"] *= old / new
    config["num_attention_heads"] = new // config["head_dim"]
    config["hidden_size"] = new
    header = json.dumps(tensors).encode()
    os.makedirs(target, exist_ok=True)
    with open(f"{target}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + blob)
    with open(f"{target}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        with open(f"{source}/{name}", "rb") as a, open(f"{target}/{name}", "wb") as b:
            b.write(a.read())


def greedy(peer, model, work, ids, count):
    write_ids(f"{work}/g.ids", ids)
    return [int(i) for i in run(*peer, "greedy", model, f"{work}/g.ids", count).split()]


def check_export(args, peer, model, ids):
    ok = True
    run(args.tool, "export", args.model, model, "f32")
    text = f"{args.work}/text.txt"
    ours, theirs = (run(*c).split() for c in ((args.tool, "ids", model, text),
                                              (*peer, "tokenize", model, text)))
    print(f"token ids of {os.path.getsize(text)} bytes: {len(ours)},"
          f" {'equal' if ours == theirs else 'NOT EQUAL'}")
    ok &= ours == theirs
    write_ids(f"{args.work}/l.ids", ids[:256])
    run(args.tool, "logits", args.model, f"{args.work}/l.ids", f"{args.work}/ours.bin")
    run(args.tool, "logits", model, f"{args.work}/l.ids", f"{args.work}/back.bin")
    run(*peer, "logits", model, f"{args.work}/l.ids", f"{args.work}/theirs.bin")
    a, b, c = (floats(f"{args.work}/{n}.bin") for n in ("ours", "theirs", "back"))
    worst = max(abs(x - y) for x, y in zip(a, b))
    print(f"logits of 256 positions, ours and llama.cpp's on the f32 export: at most {worst:.2g}"
          f" apart; our model and our export: {'equal' if a == c else 'NOT EQUAL'}")
    ok &= worst <= 1e-2 and a == c
    with open(f"{args.model}/reference_f32.json", encoding="utf-8") as file:
        prompts = json.load(file)["prompts"]
    same = 0
    for prompt in prompts:
        want = prompt["greedy_ids"][:args.tokens]
        same += greedy(peer, model, args.work, prompt["ids"], len(want)) == want
    print(f"greedy text of {args.tokens} tokens by llama.cpp from our export: {same} of"
          f" {len(prompts)} prompts as the model's reference")
    return ok and same == len(prompts)


def check_types(args, peer, model, title):
    ok = True
    print(f"\n| {title} | llama.cpp | Loom, q8 | ratio | Loom, f32 | ratio |")
    print("|---|---|---|---|---|---|")
    for name, number in TYPES:
        path = f"{args.work}/t-{name}.gguf"
        try:
            run(*peer, "quantize", model, path, number)
            theirs = float(run(*peer, "ppl", path, f"{args.work}/p.ids", args.window))
        except subprocess.CalledProcessError:
            print(f"| {name} | cannot | | | | |")
            continue
        cells = []
        for mode in ("q8", "f32"):
            value = float(run(args.tool, "ppl", path, f"{args.work}/p.ids", mode, args.window))
            cells += [f"{value:.4f}", f"{value / theirs:.5f}"]
            ok &= mode == "q8" or abs(value / theirs - 1) <= BOUND
        print(f"| {name} | {theirs:.4f} | {' | '.join(cells)} |", flush=True)
        os.remove(path)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--bytes", type=int, default=40000)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    args.peer = args.peer or args.work
    os.makedirs(args.work, exist_ok=True)
    peer = build_peer(args)
    with open(args.text, "rb") as a, open(f"{args.work}/text.txt", "wb") as b:
        b.write(a.read()[-args.bytes:])
    ids = [int(i) for i in run(args.tool, "ids", args.model, f"{args.work}/text.txt").split()]
    write_ids(f"{args.work}/p.ids", ids)
    ok = check_export(args, peer, f"{args.work}/model.gguf", ids)
    ok &= check_types(args, peer, f"{args.work}/model.gguf", "as it is")
    pad_model(args.model, f"{args.work}/padded")
    run(args.tool, "export", f"{args.work}/padded", f"{args.work}/padded.gguf", "f32")
    ok &= check_types(args, peer, f"{args.work}/padded.gguf", "padded to 256")
    print("\nall within bounds" if ok else "\na bound is BROKEN")
    return 0 if ok else 1


sys.exit(main())

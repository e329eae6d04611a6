#!/usr/bin/env python3
"""Rotary positions of every rope_type with random settings, in transformers and in Loom.

Each case is a small model with random weights. Texts end below and above the original context. Loom
must give the logits of transformers, and then the same greedy tokens.

  positions_check.py --runner build/dev/tests/model_runner [--cases N] [--seed N] [--only TYPE]

Needs transformers and torch. The last line counts.
"""

import argparse
import random
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
LIMIT, ORIGINAL, TOKENS = 192, 64, 48
TYPES = ("default", "linear", "llama3", "yarn", "longrope", "dynamic", "mrope")


def sizes(rng):
    heads = rng.choice([2, 4])
    return {
        "hidden_size": 32,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([1, heads]),
        "vocab_size": 64,
        "max_position_embeddings": LIMIT,
        "head_dim": rng.choice([8, 16, 20]),
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.3,
    }


def yarn(rng):
    rope = {"factor": rng.uniform(1.5, 8), "original_max_position_embeddings": ORIGINAL}
    if rng.random() < 0.3:
        rope["attention_factor"] = rng.uniform(0.7, 1.5)
    elif rng.random() < 0.4:
        rope["mscale"], rope["mscale_all_dim"] = rng.uniform(0.5, 2), rng.uniform(0.5, 2)
    if rng.random() < 0.4:
        rope["beta_fast"], rope["beta_slow"] = rng.uniform(8, 40), rng.uniform(0.5, 4)
    if rng.random() < 0.4:
        rope["truncate"] = rng.random() < 0.5
    return rope


def rope_of(kind, rng, half):
    """rope_parameters of a type, all settings drawn."""
    rope = {"rope_type": kind, "rope_theta": rng.choice([100.0, 10000.0, 500000.0])}
    if kind in ("linear", "dynamic", "llama3"):
        rope["factor"] = rng.uniform(1.5, 8)
    if kind == "llama3":
        low = rng.uniform(0.5, 2)
        rope |= {"low_freq_factor": low, "high_freq_factor": low + rng.uniform(0.5, 4)}
        rope["original_max_position_embeddings"] = ORIGINAL
    if kind == "yarn":
        rope |= yarn(rng)
    if kind == "longrope":
        rope["short_factor"] = [rng.uniform(1, 1.5) for _ in range(half)]
        rope["long_factor"] = [rng.uniform(1, 20) for _ in range(half)]
        rope["original_max_position_embeddings"] = ORIGINAL
        if rng.random() < 0.3:
            rope["attention_factor"] = rng.uniform(0.7, 1.5)
        elif rng.random() < 0.5:
            rope["factor"] = rng.uniform(1, 8)
    if kind == "mrope":
        rope |= {"rope_type": "default", "mrope_section": [half - 2, 1, 1]}
    return rope


def make_model(kind, rng, folder):
    base = sizes(rng)
    half = base["head_dim"] // 2
    name = rng.choice(["llama", "qwen2", "qwen3", "mistral"])
    if kind == "longrope":
        name = rng.choice(["phi3", "llama"])
    extra = {}
    if name == "phi3":
        base["head_dim"] = 8
        base["hidden_size"] = 8 * base["num_attention_heads"]
        half = 4
        extra["original_max_position_embeddings"] = ORIGINAL
    if name == "phi3" and rng.random() < 0.5:
        extra["partial_rotary_factor"] = 0.75
        half = 3
    config = AutoConfig.for_model(name, **base, **extra, rope_parameters=rope_of(kind, rng, half))
    torch.manual_seed(rng.randrange(1 << 30))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    model.save_pretrained(folder)
    return name


def by_transformers(folder, ids, count):
    model = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].float()
        ids = list(ids)
        for _ in range(count):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return logits, ids[len(ids) - count :] if count else []


def by_loom(runner, folder, context, ids, count):
    command = [runner, "greedy", folder, str(context), str(count), *map(str, ids)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip().replace(folder, "")
    lines = done.stdout.splitlines()
    logits = torch.tensor([[float(v) for v in line.split()] for line in lines[: len(ids)]])
    return logits, [int(v) for v in lines[len(ids)].split()] if count else []


def judge(runner, folder, context, length, rng):
    """The comparison of one text: "" or the error."""
    ids = [rng.randrange(3, 64) for _ in range(length)]
    ours, found = by_loom(runner, folder, context, ids, TOKENS)
    if ours is None:
        return f"refused: {found}"
    peer, wanted = by_transformers(folder, ids, TOKENS)
    far = (ours - peer).abs().max().item() / max(1.0, peer.abs().max().item())
    if far > 2e-4:
        return f"logits differ by {far:.3g}"
    return "" if found == wanted else f"tokens differ: {found} and {wanted}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--cases", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(TYPES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    passed, failed = 0, 0
    for kind in args.only:
        for case in range(args.cases):
            rng = random.Random(f"{args.seed} {kind} {case}")
            with tempfile.TemporaryDirectory() as folder:
                name = make_model(kind, rng, folder)
                # Below and above the original context, which chooses the factors of longrope.
                for context, length in ((ORIGINAL, 16), (LIMIT, ORIGINAL + rng.randrange(1, 60))):
                    wrong = judge(args.runner, folder, context, length, rng)
                    passed, failed = passed + (not wrong), failed + bool(wrong)
                    if wrong:
                        print(f"WRONG {name} {kind} case {case}, {length} ids: {wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

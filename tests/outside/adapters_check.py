#!/usr/bin/env python3
"""Random LoRA adapters of PEFT on random decoders, in transformers with PEFT and in Loom.

Each case draws a class of families_rows.py, its settings, and one or two adapters: modules, rank,
alpha, rsLoRA, alphas of modules, a weight. PEFT writes the folders. Logits of a prompt, read at
once and token by token, must agree within 2e-4 of the largest, and 48 greedy tokens must be equal.
The adapters must also matter: without them the logits must differ. Settings that Loom refuses are
drawn too; the message must name them.

  adapters_check.py --runner build/dev/tests/model_runner [--cases N] [--seed N] [--work DIR]

Needs peft, transformers and torch. The last line counts.
"""

import argparse
import os
import random
import re
import shutil
import sys
import tempfile

import families_check
import peft
import torch
from families_rows import ROWS, draw
from transformers.pytorch_utils import Conv1D

CLASSES = [
    "ArceeForCausalLM", "CodeGenForCausalLM", "Cohere2ForCausalLM", "Exaone4ForCausalLM",
    "FalconForCausalLM", "GPT2LMHeadModel", "GPTBigCodeForCausalLM", "GemmaForCausalLM",
    "Glm4ForCausalLM", "GlmForCausalLM", "GraniteForCausalLM", "LlamaForCausalLM",
    "Olmo2ForCausalLM", "PersimmonForCausalLM", "Phi3ForCausalLM", "Qwen2ForCausalLM",
    "SeedOssForCausalLM", "StableLmForCausalLM",
]  # fmt: skip
REFUSED = [
    ("use_dora", {"use_dora": True}),
    ("bias", {"bias": "lora_only"}),
    ("lora_bias", {"lora_bias": True}),
]


def linear_names(model):
    """Ends of names of the products of blocks."""
    names = set()
    for name, module in model.named_modules():
        product = isinstance(module, (torch.nn.Linear, Conv1D))
        if product and re.search(r"\.\d+\.", name):
            names.add(name.rsplit(".", 1)[-1])
    return sorted(names)


def drawn_config(r, names, refused):
    targets = r.sample(names, r.randint(1, len(names)))
    values = {
        "r": r.choice([1, 2, 5, 8]), "lora_alpha": r.choice([1, 3, 8, 16]),
        "target_modules": targets, "use_rslora": r.random() < 0.4,
        "lora_dropout": r.choice([0.0, 0.3]),
    }  # fmt: skip
    if r.random() < 0.4:
        values["alpha_pattern"] = {r.choice(targets): r.choice([2, 7])}
    if r.random() < 0.4:
        values["rank_pattern"] = {r.choice(targets): r.choice([1, 3, 7])}
    values.update(refused)
    return peft.LoraConfig(**values)


def fill(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "lora_" in key:
                p.copy_(0.4 * torch.randn(p.shape, generator=generator))


def set_weight(model, weight):
    """Multiplies what the adapter adds."""
    for module in model.modules():
        if isinstance(getattr(module, "scaling", None), dict):
            module.scaling["default"] *= weight


def check(args, number, work):
    r = random.Random(f"{args.seed} {number}")
    name = r.choice(CLASSES)
    folder, lora = (os.path.join(work, f"{kind}{number}") for kind in ("model", "lora"))
    values = draw(name, r)
    model = families_check.make_model(name, values, number, folder)
    ids = [r.randrange(3, values["vocab_size"]) for _ in range(families_check.PROMPT)]
    plain = families_check.logits_of(model, ids)
    key, refused = r.choice(REFUSED) if r.random() < 0.1 else ("", {})
    config = drawn_config(r, linear_names(model), refused)
    weight = r.choice([1, 1, 0.5, -1.25])
    tuned = peft.get_peft_model(model, config).eval()
    fill(tuned, number)
    tuned.save_pretrained(lora)
    set_weight(tuned, weight)
    os.environ["LOOM_LORA"] = lora if weight == 1 else f"{lora}={weight}"
    done = families_check.run(args.runner, "decode", folder, families_check.GREEDY, *ids)
    del os.environ["LOOM_LORA"]
    what = f"{name} {sorted(config.target_modules)} r {config.r} weight {weight}"
    if key:
        named = done.returncode != 0 and key in done.stderr
        return "" if named else f"{what}: {key} is not refused: {done.stderr.strip()}"
    if any(setting in done.stderr for setting in ROWS[name].refused):
        return ""  # a setting of the model
    if done.returncode != 0:
        return f"{what}: {done.stderr.strip()}"
    lines = done.stdout.splitlines()
    rows = torch.tensor([[float(v) for v in line.split()] for line in lines[:-1]])
    peer = families_check.logits_of(tuned, ids)
    if families_check.far(peer, plain) < 1e-3:
        return f"{what}: the adapter does not matter"
    for ours, how in ((rows[: len(ids)], "prompt"), (rows[len(ids) :], "steps")):
        if families_check.far(ours, peer) > families_check.BOUND:
            return f"{what}: logits ({how}) differ by {families_check.far(ours, peer):.3g}"
    if [int(v) for v in lines[-1].split()] != families_check.greedy_of(tuned, ids):
        return f"{what}: greedy tokens differ"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(lora, ignore_errors=True)
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work")
    args = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        for number in range(args.cases):
            wrong = check(args, number, work)
            if wrong:
                failed += 1
                print(f"case {number}: {wrong}", flush=True)
    print(f"{args.cases - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

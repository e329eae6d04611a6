#!/usr/bin/env python3
"""Random configurations of decoder families, in transformers and in Loom.

Each class gets configurations whose options are drawn, and weights that differ everywhere, also in
norms and biases. Loom reads the folder that transformers writes. Logits of a prompt, read at once
and token by token, must agree within 2e-4 of the largest, and 48 greedy tokens must be equal. The
folder that Loom writes again must give transformers the same logits. A configuration may be refused
instead; the message must then name one of its settings.

  families_check.py --runner build/dev/tests/model_runner [--classes NAME ...] [--configs N]
                    [--seed N] [--work DIR] [--show]

Needs transformers and torch. It prints a row per class; the last line counts.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from families_experts import EXPERTS
from families_rows import ROWS, draw
from recurrent_rows import RECURRENT

ROWS.update(EXPERTS)

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
BOUND, PROMPT, GREEDY = 2e-4, 20, 48


def fill(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, p in [*model.named_parameters(), *model.named_buffers()]:
            if "inv_freq" in key or not p.is_floating_point():
                continue
            r = torch.randn(p.shape, generator=generator)
            if p.dim() == 1 or "norm" in key:
                p.copy_(0.3 * r + (0 if key.endswith("bias") else 1))
            elif any(word in key for word in ("embed", "wte", "wpe")):
                p.copy_(r)
            else:
                p.copy_(1.3 * r / p.shape[-1] ** 0.5)


def make_model(name, values, seed, folder):
    row = ROWS[name]
    config = getattr(transformers, row.config)(**values)
    if row.outer:
        tied = values["tie_word_embeddings"]
        text = config.to_dict() if row.outer.startswith("Qwen") else config
        config = getattr(transformers, row.outer)(
            text_config=text, vision_config=row.vision, tie_word_embeddings=tied)
    config._attn_implementation = config._experts_implementation = "eager"
    model = getattr(transformers, name)(config).float().eval()
    fill(model, seed)
    model.tie_weights()
    model.save_pretrained(folder)
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].float()


def recurrent_greedy_of(model, ids):
    """The same with a cache, so that recurrent layers read one token at a time."""
    with torch.no_grad():
        ids = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=GREEDY,
                             min_new_tokens=GREEDY, eos_token_id=None, pad_token_id=0)
    return ids[0, -GREEDY:].tolist()


def greedy_of(model, ids):
    ids = list(ids)
    for _ in range(GREEDY):
        ids.append(int(logits_of(model, ids)[-1].argmax()))
    return ids[-GREEDY:]


def run(runner, *words):
    return subprocess.run([runner, *map(str, words)], capture_output=True, text=True)


def far(ours, peer):
    if ours.shape != peer.shape:
        return float("inf")
    return (ours - peer).abs().max().item() / max(1.0, peer.abs().max().item())


def compare(runner, model, folder, ids):
    """"" or the difference; None if Loom refuses."""
    done = run(runner, "decode", folder, GREEDY, *ids)
    if done.returncode != 0:
        return None, done.stderr.strip()
    lines = done.stdout.splitlines()
    rows = torch.tensor([[float(v) for v in line.split()] for line in lines[:-1]])
    peer = logits_of(model, ids)
    for ours, how in ((rows[: len(ids)], "prompt"), (rows[len(ids) :], "steps")):
        if far(ours, peer) > BOUND:
            return f"logits ({how}) differ by {far(ours, peer):.3g}", ""
    greedy = [int(v) for v in lines[-1].split()]
    if greedy != greedy_of(model, ids):
        return "greedy tokens differ", ""
    if type(model).__name__ in RECURRENT and greedy != recurrent_greedy_of(model, ids):
        return "greedy tokens differ from those with a cache", ""
    return written_again(runner, folder, ids, peer), ""


def written_again(runner, folder, ids, peer):
    again = folder + "-again"
    shutil.rmtree(again, ignore_errors=True)
    done = run(runner, "export", folder, again)
    if done.returncode != 0:
        return f"the folder is not written: {done.stderr.strip()}"
    # Its config.json is that of the source; this one is written from what was read.
    written = run(runner, "config", folder)
    with open(os.path.join(again, "config.json"), "w", encoding="utf-8") as file:
        file.write(written.stdout)
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        again, output_loading_info=True, attn_implementation="eager",
        experts_implementation="eager", dtype=torch.float32
    )
    if info["missing_keys"] or info["unexpected_keys"]:
        return f"other tensors: {sorted(info['missing_keys'] | info['unexpected_keys'])[:2]}"
    distance = far(logits_of(model.eval(), ids), peer)
    return "" if distance < 1e-5 else f"the written folder differs by {distance:.3g}"


def check(args, name, number, work):
    r = random.Random(f"{name} {args.seed} {number}")
    values = draw(name, r)
    folder = os.path.join(work, f"{name}-{number}")
    ids = [r.randrange(3, values["vocab_size"]) for _ in range(PROMPT)]
    try:
        model = make_model(name, values, number, folder)
        wrong, message = compare(args.runner, model, folder, ids)
    except Exception as error:  # of transformers
        wrong, message = f"{type(error).__name__}: {str(error)[:200]}", ""
    if wrong is None and any(key in message for key in ROWS[name].refused):
        wrong, state = "", "refused"
    elif wrong is None:
        wrong, state = f"refused: {message}", "wrong"
    else:
        state = "wrong" if wrong else "equal"
    if wrong or args.show:
        shown = json.dumps({k: v for k, v in values.items()}, default=str)
        print(f"{state} {name} {number}: {wrong or message} | {shown}", flush=True)
    if state != "wrong":
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder + "-again", ignore_errors=True)
    return state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--classes", nargs="*", default=list(ROWS))
    parser.add_argument("--configs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work")
    parser.add_argument("--show", action="store_true", help="print every case")
    args = parser.parse_args()
    torch.set_num_threads(1)
    total = {"equal": 0, "refused": 0, "wrong": 0}
    table = []
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        for name in args.classes:
            count = dict.fromkeys(total, 0)
            for number in range(args.configs):
                count[check(args, name, number, work)] += 1
            table.append((name, args.configs, *count.values()))
            total = {key: total[key] + count[key] for key in total}
    print(f"{'class':34} configs  equal  refused  wrong")
    for name, *numbers in table:
        print("{:34} {:7} {:6} {:8} {:6}".format(name, *numbers))
    passed = total["equal"] + total["refused"]
    print(f"{passed} passed, {total['wrong']} failed, 0 skipped")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

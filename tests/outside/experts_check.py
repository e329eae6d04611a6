#!/usr/bin/env python3
"""Random decoders with experts, in transformers and in Loom.

Each family draws configurations whose options are all away from their defaults now and then, with
distinct weights everywhere, biases and norms included. Both sides read the same folder. Logits must
agree within 2e-4 of the largest, and 48 greedy tokens must be the same. The model is also
written as an .entity file, as another folder, and as a GGUF file if it can be one. Those must have
the logits of the first folder.

  experts_check.py --runner build/dev/tests/model_runner [--count 10] [--only CLASS] [--seed 0]

Needs transformers and torch. The last line counts.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

import torch
import transformers

transformers.utils.logging.set_verbosity_error()

PROMPT, TOKENS, TOLERANCE = 10, 48, 2e-4


def sizes(draw):
    """The sizes that all families have."""
    kv_heads = draw.choice([1, 2, 3])
    heads = kv_heads * draw.choice([1, 2])
    head_dim = draw.choice([4, 8, 10])
    return {
        "vocab_size": draw.choice([61, 64, 97]),
        "hidden_size": heads * head_dim,
        "intermediate_size": draw.choice([16, 24, 37, 48]),
        "num_hidden_layers": draw.choice([1, 2, 3]),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": 128,
        "rms_norm_eps": draw.choice([1e-6, 1e-5, 1e-3]),
        "hidden_act": draw.choice(["silu", "silu", "gelu", "relu"]),
        "tie_word_embeddings": draw.random() < 0.4,
        "rope_parameters": {"rope_type": "default", "rope_theta": draw.choice([100.0, 1e4, 1e6])},
    }


def experts(draw, count, most=9):
    number = draw.choice([2, 3, 4, most])
    return {count: number, "num_experts_per_tok": draw.randint(1, number)}


def sparse(draw, config):
    """Layers without experts."""
    layers = range(config["num_hidden_layers"])
    return {
        "decoder_sparse_step": draw.choice([1, 1, 2]),
        "mlp_only_layers": [i for i in layers if draw.random() < 0.2],
        "norm_topk_prob": draw.random() < 0.5,
        "moe_intermediate_size": draw.choice([8, 16, 21]),
    }


def mixtral(draw):
    config = {**sizes(draw), **experts(draw, "num_local_experts")}
    config["sliding_window"] = draw.choice([None, None, 5, 200])
    if draw.random() < 0.3:
        config["head_dim"] = 6
    return config


def qwen2_moe(draw):
    config = {**sizes(draw), **experts(draw, "num_experts")}
    config.update(sparse(draw, config))
    config["shared_expert_intermediate_size"] = draw.choice([8, 16, 19])
    if draw.random() < 0.4:
        config.update(use_sliding_window=True, sliding_window=5, max_window_layers=2)
    return config


def qwen3_moe(draw):
    config = {**sizes(draw), **experts(draw, "num_experts")}
    config.update(sparse(draw, config))
    config["head_dim"] = draw.choice([4, 8, 12])
    config["attention_bias"] = draw.random() < 0.5
    if draw.random() < 0.3:
        config.update(use_sliding_window=True, sliding_window=5)
    return config


FAMILIES = {
    "MixtralForCausalLM": ("MixtralConfig", mixtral, "gguf"),
    "Qwen2MoeForCausalLM": ("Qwen2MoeConfig", qwen2_moe, "gguf"),
    "Qwen3MoeForCausalLM": ("Qwen3MoeConfig", qwen3_moe, "gguf"),
}


def randomized(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        tensors = [*model.named_parameters(), *model.named_buffers()]
        for name, value in tensors:
            if "inv_freq" in name:
                continue
            noise = torch.randn(value.shape, generator=generator)
            plain = value.dim() < 2 or "correction_bias" in name
            value.copy_(noise * 0.3 + (1.0 if "norm" in name else 0.0) if plain else noise * 0.35)
    return model.eval()


def by_transformers(model, seed):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, model.config.vocab_size, (1, PROMPT), generator=generator)
    with torch.no_grad():
        for _ in range(TOKENS):
            logits = model(ids, use_cache=False).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
        return ids[0].tolist(), model(ids, use_cache=False).logits[0].float()


def run(runner, *words):
    done = subprocess.run([runner, *map(str, words)], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None, done.stderr.strip()


def by_loom(runner, path, ids):
    out, said = run(runner, "logits", path, *ids)
    if out is None:
        return None, said
    return torch.tensor([[float(v) for v in line.split()] for line in out.splitlines()]), said


def difference(ours, peer):
    """"" or the first difference."""
    if ours is None or ours.shape != peer.shape:
        return "no logits" if ours is None else f"shapes {ours.shape} and {peer.shape}"
    far = (ours - peer).abs().max().item() / max(1.0, peer.abs().max().item())
    return "" if far < TOLERANCE else f"logits differ by {far:.3g}"


def other_files(runner, folder, ids, logits, gguf):
    """The first difference of the same model in other files. A refused GGUF file has none."""
    for end in [".entity", "-again"] + [".gguf"] * gguf:
        path = os.path.join(folder, f"model{end}")
        out, said = run(runner, "export", folder, path)
        if out is None:
            if end == ".gguf" and ("cannot say" in said or "llama.cpp reads no" in said):
                continue
            return f"{end}: {said}"
        ours, said = by_loom(runner, path, ids)
        wrong = difference(ours, logits)
        if wrong:
            return f"{end}: {wrong} {said}"
    return ""


def case(runner, name, seed, work):
    kind, draw, gguf = FAMILIES[name]
    config = getattr(transformers, kind)(**draw(random.Random(f"{name} {seed}")))
    config._attn_implementation = config._experts_implementation = "eager"
    torch.manual_seed(seed)
    model = randomized(getattr(transformers, name)(config), seed)
    folder = os.path.join(work, f"{name}-{seed}")
    model.save_pretrained(folder)
    ids, logits = by_transformers(model, seed)
    ours, said = by_loom(runner, folder, ids)
    wrong = difference(ours, logits)
    if not wrong:
        greedy = ours[PROMPT - 1 : -1].argmax(-1).tolist()
        wrong = "" if greedy == ids[PROMPT:] else "other greedy tokens"
    return (wrong or other_files(runner, folder, ids, ours, gguf == "gguf")), said, config


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(FAMILIES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    passed, failed = 0, 0
    for name in args.only:
        for seed in range(args.seed, args.seed + args.count):
            with tempfile.TemporaryDirectory() as work:
                wrong, said, config = case(args.runner, name, seed, work)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"WRONG {name} {seed}: {wrong} | {said}\n  {config.to_json_string(True)}")
            sys.stdout.flush()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

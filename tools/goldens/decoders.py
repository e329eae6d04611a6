#!/usr/bin/env python3
"""Tiny random decoders of every architecture we read, with their results in `transformers`.

Writes tests/llm/golden/NAME/{config.json, model.safetensors, golden.safetensors}: weights in bf16
(codes of packed matrices in U8), token ids as I32 [T], logits as F32 [T, vocab]. The logits are
those of the f32 model whose weights are the stored ones, so activations are never rounded. For
BitNet that leaves out the quantization of activations, which belongs to the session here. Needs
torch (CPU), transformers 5.23, safetensors. Run from anywhere:

  tools/goldens/decoders.py [NAME ...]
  tools/goldens/decoders.py --random COUNT DIR [SEED]

The second form writes GPT-2, OPT, GPT-NeoX, Phi and StarCoder2 of random sizes and settings to DIR.
LOOM_DECODERS=DIR test_llm --gtest_filter='RandomDecoders*' reads them.
"""
import json
import pathlib
import random
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers.integrations.bitnet import pack_weights

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "llm" / "golden"
TOKENS = 24

SMALL = dict(vocab_size=64, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=1000.0, factor=4.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)
GEMMA3_ROPE = dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=5000.0),
                   sliding_attention=dict(rope_type="default", rope_theta=50.0))
BITNET = dict(hidden_size=32, intermediate_size=48)


def bitnet(kind, mode):
    return dict(quant_method="bitnet", linear_class=kind, quantization_mode=mode)


# Settings that a class does not have, or under another name.
ABSENT = {
    "GPT2": ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
             "num_key_value_heads", "max_position_embeddings", "pad_token_id"),
    "OPT": ("intermediate_size", "num_key_value_heads", "pad_token_id"),
    "GPTNeoX": ("num_key_value_heads",),
}
GPT2 = dict(vocab_size=64, n_embd=24, n_layer=2, n_head=4, n_positions=45)

MOE = dict(hidden_size=16, num_attention_heads=2, num_key_value_heads=1, moe_intermediate_size=8,
           num_experts_per_tok=2, norm_topk_prob=True)

# name: (class of transformers without Config/ForCausalLM, changes to SMALL, quantization_config)
MODELS = {
    "llama": ("Llama", dict(attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3), None),
    "llama-bitlinear": ("Llama", dict(num_hidden_layers=1), bitnet("bitlinear", "offline")),
    "mistral": ("Mistral", dict(head_dim=8, sliding_window=5), None),
    "qwen2": ("Qwen2", dict(num_hidden_layers=3, use_sliding_window=True, sliding_window=6,
                            max_window_layers=1, tie_word_embeddings=True), None),
    "qwen3": ("Qwen3", dict(head_dim=8, use_sliding_window=True, sliding_window=7,
                            layer_types=["sliding_attention", "full_attention"]), None),
    "gemma": ("Gemma", dict(head_dim=10, num_key_value_heads=1), None),
    "gemma2": ("Gemma2", dict(head_dim=8, num_hidden_layers=3, sliding_window=5,
                              query_pre_attn_scalar=20, attn_logit_softcapping=1.5,
                              final_logit_softcapping=6.0), None),
    "gemma3": ("Gemma3Text", dict(head_dim=8, num_hidden_layers=4, sliding_window=4,
                                  query_pre_attn_scalar=12, rope_parameters=GEMMA3_ROPE,
                                  layer_types=["sliding_attention"] * 2 + ["full_attention",
                                                                           "sliding_attention"]),
               None),
    "phi3": ("Phi3", dict(head_dim=8, sliding_window=9,
                          rope_parameters=dict(rope_type="default", rope_theta=500.0,
                                               partial_rotary_factor=0.5)), None),
    "smollm3": ("SmolLM3", dict(num_hidden_layers=4, no_rope_layer_interval=2,
                                use_sliding_window=True, sliding_window=6), None),
    "gpt2": ("GPT2", GPT2, None),
    "gpt2-odd": ("GPT2", GPT2 | dict(n_embd=15, n_head=3, n_inner=22, activation_function="relu",
                                     tie_word_embeddings=False), None),
    "opt": ("OPT", dict(ffn_dim=40, max_position_embeddings=43), None),
    "gpt-neox": ("GPTNeoX", dict(
        hidden_size=32, rope_parameters=dict(rope_type="default", rope_theta=500.0,
                                             partial_rotary_factor=0.25)), None),
    "gpt-neox-serial": ("GPTNeoX", dict(
        hidden_size=32, use_parallel_residual=False, tie_word_embeddings=True,
        hidden_act="gelu_new"), None),
    "phi": ("Phi", dict(hidden_size=32), None),
    "starcoder2": ("Starcoder2", dict(sliding_window=7, num_key_value_heads=1), None),
    "mixtral": ("Mixtral", dict(hidden_size=16, intermediate_size=12, num_attention_heads=2,
                                num_key_value_heads=1, num_local_experts=5,
                                num_experts_per_tok=2, sliding_window=7), None),
    "qwen2-moe": ("Qwen2Moe", MOE | dict(num_experts=4, shared_expert_intermediate_size=11,
                                         norm_topk_prob=False), None),
    "qwen3-moe-stacked": ("Qwen3Moe", MOE | dict(num_experts=6, head_dim=8, attention_bias=True,
                                                 num_hidden_layers=3, mlp_only_layers=[1]), None),
    "bitnet": ("BitNet", BITNET, None),
    "bitnet-online": ("BitNet", BITNET, bitnet("autobitlinear", "online")),
    "bitnet-multiplied": ("BitNet", BITNET, bitnet("autobitlinear", "offline")),
    "bitnet-divided": ("BitNet", BITNET | dict(tie_word_embeddings=True),
                       bitnet("bitlinear", "offline")),
}


def fill(model, generator, offset_norms):
    """Random weights that let every part of the model count, rounded to bf16."""
    for name, p in model.named_parameters():
        r = torch.randn(p.shape, generator=generator)
        if name.endswith("bias"):
            r = 0.3 * r
        elif p.dim() == 1:
            r = 0.3 * r + (0.0 if offset_norms else 1.0)
        elif not any(table in name for table in ("embed", "wte", "wpe")):
            r = 1.3 * r / p.shape[1] ** 0.5
        p.data = r.bfloat16().float()


def ternary_codes(weight):
    """Codes -1, 0, 1 and the scale of a matrix, by the rule of WeightQuant."""
    scale = 1.0 / weight.abs().mean().clamp(min=1e-5)
    return (weight * scale).round().clamp(-1, 1), 1.0 / scale


def make_ternary(model, quantization, tensors):
    """Makes the matrices of the blocks ternary in `model`, and as stored in `tensors`."""
    divided = quantization["linear_class"] == "bitlinear"
    for name, p in model.named_parameters():
        if p.dim() != 2 or ".layers." not in name:
            continue
        codes, scale = ternary_codes(p.data)
        if quantization["quantization_mode"] == "offline":
            # Another scale than the mean, as in trained models; bf16 like all stored values.
            stored = (1.0 / scale if divided else 0.7 * scale).bfloat16().float()
            scale = 1.0 / stored if divided else stored
            tensors[name] = pack_weights(codes.clone())
            tensors[name + "_scale"] = stored.bfloat16().reshape(1)
        p.data = codes * scale


def split_experts(kind, tensors):
    """Experts as published files have them: one tensor per expert."""
    mixtral = kind == "Mixtral"
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    out = {}
    for name, t in tensors.items():
        if mixtral:
            name = name.replace(".mlp.", ".block_sparse_moe.")
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            out[name] = t
            continue
        stem = name.rsplit(".", 1)[0]
        for i, matrix in enumerate(t):
            if name.endswith("gate_up_proj"):
                out[f"{stem}.{i}.{gate}.weight"], out[f"{stem}.{i}.{up}.weight"] = matrix.chunk(2)
            else:
                out[f"{stem}.{i}.{down}.weight"] = matrix
    return out


def older(seed):
    """A random row of MODELS, of the classes with LayerNorms."""
    r = random.Random(seed)
    kind = r.choice(["GPT2", "OPT", "GPTNeoX", "Phi", "Starcoder2"])
    heads, groups = r.choice([(1, 1), (2, 1), (2, 2), (3, 3), (4, 2), (6, 3)])
    dim = r.choice([4, 8, 12, 16])
    act = r.choice(["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"])
    layers, inner = r.randint(1, 4), r.randint(3, 70)
    eps = r.choice([1e-5, 1e-6, 1e-3])
    rope = dict(rope_type="default", rope_theta=r.choice([100.0, 10000.0, 1e6]))
    part = r.choice([0.25, 0.5, 1.0]) if dim % 8 == 0 else r.choice([0.5, 1.0])
    both = dict(vocab_size=r.randint(10, 90), tie_word_embeddings=r.random() < 0.5)
    sizes = dict(hidden_size=heads * dim, num_hidden_layers=layers, num_attention_heads=heads)
    rotary = dict(sizes, intermediate_size=inner, hidden_act=act)
    if kind == "GPT2":
        dim = r.choice([dim, 3, 5, 7])  # without rotation, so without pairs
        own = dict(n_embd=heads * dim, n_layer=layers, n_head=heads, layer_norm_epsilon=eps,
                   n_positions=TOKENS + r.randint(0, 20), activation_function=act,
                   n_inner=r.choice([None, inner]))
    elif kind == "OPT":
        own = dict(sizes, ffn_dim=inner, activation_function=act,
                   max_position_embeddings=TOKENS + r.randint(0, 20))
    elif kind == "GPTNeoX":
        own = dict(rotary, layer_norm_eps=eps, use_parallel_residual=r.random() < 0.6,
                   rope_parameters=dict(rope, partial_rotary_factor=part))
    elif kind == "Phi":
        own = dict(rotary, layer_norm_eps=eps, num_key_value_heads=groups,
                   rope_parameters=dict(rope, partial_rotary_factor=part))
        both["tie_word_embeddings"] = False
    else:
        own = dict(rotary, norm_epsilon=eps, num_key_value_heads=groups, rope_parameters=rope,
                   sliding_window=r.choice([None, 1, 5, 9, 100]))
    return kind, own | both, None


def make(name, folder=None):
    kind, changes, quantization = MODELS[name]
    absent = ABSENT.get(kind, ())
    sizes = {key: value for key, value in SMALL.items() if key not in absent} | changes
    config = getattr(transformers, kind + "Config")(**sizes)
    config._attn_implementation = config._experts_implementation = "eager"
    head = "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    model = getattr(transformers, kind.removesuffix("Text") + head)(config).float().eval()
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    fill(model, generator, name.startswith("gemma"))
    model.tie_weights()
    tensors = {key: p.data.bfloat16().clone() for key, p in model.named_parameters()}
    if kind == "GPTNeoX" and "lm_head.weight" in tensors:  # as files have it
        tensors["embed_out.weight"] = tensors.pop("lm_head.weight")
    if kind in ("Mixtral", "Qwen2Moe"):
        tensors = split_experts(kind, tensors)
    if quantization:
        make_ternary(model, quantization, tensors)
    ids = torch.randint(3, config.vocab_size, (1, TOKENS), generator=generator)
    with torch.no_grad():
        logits = model(ids).logits[0]
    folder = folder or GOLDEN / name
    folder.mkdir(parents=True, exist_ok=True)
    model.config.architectures = [type(model).__name__]
    model.config.dtype = "bfloat16"
    written = json.loads(model.config.to_json_string())
    if quantization:
        written["quantization_config"] = quantization
    (folder / "config.json").write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
    save_file({key: t.contiguous() for key, t in tensors.items()}, folder / "model.safetensors",
              {"format": "pt"})
    save_file({"ids": ids[0].int(), "logits": logits.float().contiguous()},
              folder / "golden.safetensors")
    print(f"{name:18} |logits| mean {logits.abs().mean():.3f} max {logits.abs().max():.3f}")


def main():
    if sys.argv[1:2] == ["--random"]:
        count, out = int(sys.argv[2]), pathlib.Path(sys.argv[3])
        first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
        for seed in range(first, first + count):
            name = f"random-{seed}"
            MODELS[name] = older(seed)
            make(name, out / name)
        return
    for name in sys.argv[1:] or MODELS:
        make(name)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Hugging Face folders whose config.json is changed field by field, in transformers and in Loom.

Each class gets a small model with random weights. Then one field at a time has another value, and
both sides load the same folder. Loom must give the logits of transformers, or refuse the folder. It
is a failure if a field changes the logits of transformers, but neither changes Loom's nor is
refused.

  folder_check.py --runner build/dev/tests/model_runner [--work DIR] [--only CLASS] [--show]

Needs transformers and torch. The last line counts.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

transformers.utils.logging.set_verbosity_error()
IDS = [3, 17, 5, 9, 40, 21, 33, 8, 11, 2]

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2 = {
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 64,
    "vocab_size": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
OPT = {
    "hidden_size": 32,
    "ffn_dim": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "word_embed_proj_dim": 32,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 2,
}
BASES = {
    "LlamaForCausalLM": ("llama", SIZES),
    "MistralForCausalLM": ("mistral", {**SIZES, "sliding_window": 5}),
    "Qwen2ForCausalLM": ("qwen2", SIZES),
    "Qwen3ForCausalLM": ("qwen3", SIZES),
    "GemmaForCausalLM": ("gemma", SIZES),
    "Gemma2ForCausalLM": ("gemma2", {**SIZES, "sliding_window": 5}),
    "Gemma3ForCausalLM": ("gemma3_text", {**SIZES, "sliding_window": 5}),
    "Phi3ForCausalLM": ("phi3", SIZES),
    "SmolLM3ForCausalLM": ("smollm3", SIZES),
    "BitNetForCausalLM": ("bitnet", SIZES),
    "GPT2LMHeadModel": ("gpt2", GPT2),
    "OPTForCausalLM": ("opt", OPT),
    "GPTNeoXForCausalLM": ("gpt_neox", SIZES),
    "PhiForCausalLM": ("phi", SIZES),
    "Starcoder2ForCausalLM": ("starcoder2", SIZES),
}

# Fields and values that are tried next to those of the file. REMOVE removes the field. null is the
# same to Loom; transformers refuses some of those.
REMOVE = object()
FIELDS = {
    "tie_word_embeddings": [True, False, REMOVE],
    "attention_bias": [True, False, REMOVE],
    "mlp_bias": [True, False, REMOVE],
    "use_bias": [False],
    "qkv_bias": [True],
    "qk_norm": [True],
    "use_qk_norm": [True],
    "qk_layernorm": [True],
    "num_key_value_heads": [1, 4, REMOVE, None],
    "head_dim": [REMOVE, 16],
    "vocab_size": [63, 65],
    "num_hidden_layers": [2, 4],
    "hidden_act": [
        "gelu",
        "relu",
        "gelu_pytorch_tanh",
        "swish",
        "quick_gelu",
        "relu2",
        "gelu_new",
    ],
    "hidden_activation": ["gelu", "relu", None, REMOVE],
    "activation_function": ["relu", "gelu", "silu"],
    "rms_norm_eps": [0.1, REMOVE],
    "layer_norm_eps": [0.1, REMOVE],
    "layer_norm_epsilon": [0.1, REMOVE],
    "norm_epsilon": [0.1, REMOVE],
    "max_position_embeddings": [8, REMOVE],
    "n_positions": [8],
    "rope_theta": [100.0],
    "rope_scaling": [
        {"type": "linear", "factor": 4.0},
        {"rope_type": "dynamic", "factor": 4.0},
        {"rope_type": "default"},
    ],
    "rope_parameters": [
        REMOVE,
        {"rope_type": "default", "rope_theta": 50.0},
        {"rope_type": "linear", "rope_theta": 50.0, "factor": 3.0},
        {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 0.5},
    ],
    "partial_rotary_factor": [0.5, 1.0],
    "rotary_pct": [0.5],
    "rotary_emb_base": [50],
    "sliding_window": [3, None, REMOVE, 100],
    "use_sliding_window": [True, False],
    "max_window_layers": [0, 1, 9],
    "layer_types": [
        REMOVE,
        ["full_attention"] * 3,
        ["sliding_attention", "full_attention", "sliding_attention"],
        ["full_attention"] * 2,
    ],
    "sliding_window_pattern": [2],
    "no_rope_layers": [[1, 0, 1], REMOVE],
    "no_rope_layer_interval": [2],
    "attn_logit_softcapping": [2.0, None, REMOVE],
    "final_logit_softcapping": [2.0, None, REMOVE],
    "query_pre_attn_scalar": [4, REMOVE],
    "use_parallel_residual": [False, True],
    "scale_attn_weights": [False],
    "scale_attn_by_inverse_layer_idx": [True],
    "do_layer_norm_before": [False],
    "enable_bias": [False],
    "layer_norm_elementwise_affine": [False],
    "_remove_final_layer_norm": [True],
    "word_embed_proj_dim": [16],
    "n_inner": [128, 40],
    "num_experts": [4],
    "num_local_experts": [4],
    "embedding_multiplier": [3.0],
    "logits_scaling": [2.0],
    "residual_multiplier": [0.5],
    "attention_multiplier": [0.5],
    "rope_local_base_freq": [50.0],
    "use_bidirectional_attention": [True, False],
    "is_decoder": [False, True],
    "add_cross_attention": [True],
    "is_encoder_decoder": [True],
    "pretraining_tp": [2],
    "reorder_and_upcast_attn": [True],
    "original_max_position_embeddings": [16],
    "norm_bias": [True],
    "rope_interleaved": [True],
    "attn_implementation": ["eager"],
    "dtype": ["float16"],
    "activation_sparsity_pattern": [[0.5, 0.5, 0.5]],
    "model_type": ["llama"],
}


def make_model(name, folder):
    kind, sizes = BASES[name]
    config = AutoConfig.for_model(kind, **sizes)
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            value.copy_(
                torch.randn_like(value) * (0.5 if "norm" in key or value.dim() == 1 else 0.2)
            )
    model.save_pretrained(folder)


def by_transformers(folder):
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            folder, output_loading_info=True, attn_implementation="eager", dtype=torch.float32
        )
        with torch.no_grad():
            logits = model.eval()(torch.tensor([IDS])).logits[0].float()
    except Exception as error:  # its error is its answer
        return None, f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    missing = sorted(info["missing_keys"])
    return logits, f"random: {missing[0]}" if missing else ""


def by_loom(runner, folder):
    done = subprocess.run(
        [runner, "logits", folder, *map(str, IDS)], capture_output=True, text=True
    )
    notes = done.stderr.strip().replace(folder, "")
    if done.returncode != 0:
        return None, notes
    return (
        torch.tensor([[float(v) for v in line.split()] for line in done.stdout.splitlines()]),
        notes,
    )


def judge(peer, said, ours, notes):
    """The comparison of the two answers: "" or the error."""
    if ours is None:
        return ""
    if peer is None:  # its type checks are stricter: null means absent to Loom
        return (
            "" if "Validation" in said or "NoneType" in said else f"transformers refuses: {said}"
        )
    if said:
        return f"transformers draws weights: {said}"
    if ours.shape != peer.shape:
        return f"shapes {tuple(ours.shape)} and {tuple(peer.shape)}"
    far = (ours - peer).abs().max().item() / max(1.0, peer.abs().max().item())
    return "" if far < 1e-4 else f"logits differ by {far:.3g}"


def changed(config, key, value):
    copy = {k: v for k, v in config.items() if k != key}
    if value is not REMOVE:
        copy[key] = value
    return copy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--work")
    parser.add_argument("--only", nargs="*", default=list(BASES))
    parser.add_argument("--show", action="store_true", help="print every case")
    args = parser.parse_args()
    torch.set_num_threads(1)
    passed, failed, equal, refused = 0, 0, 0, 0
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        for name in args.only:
            base, folder = os.path.join(work, name), os.path.join(work, "changed")
            make_model(name, base)
            with open(os.path.join(base, "config.json"), encoding="utf-8") as file:
                config = json.load(file)
            cases = [("", None)] + [(k, v) for k, values in FIELDS.items() for v in values]
            for key, value in cases:
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(base, folder)
                with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                    json.dump(changed(config, key, value) if key else config, file)
                ours, notes = by_loom(args.runner, folder)
                peer, said = (None, "") if ours is None else by_transformers(folder)
                wrong = judge(peer, said, ours, notes)
                passed, failed = passed + (not wrong), failed + bool(wrong)
                equal, refused = equal + (ours is not None and not wrong), refused + (ours is None)
                shown = "REMOVED" if value is REMOVE else json.dumps(value)
                if wrong or args.show:
                    print(
                        f"{'WRONG' if wrong else 'ok'} {name} {key}={shown}:"
                        f" {wrong or 'same'} | {notes}"
                    )
                sys.stdout.flush()
    print(f"{equal} equal, {refused} refused; {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

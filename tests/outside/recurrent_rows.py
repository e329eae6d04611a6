"""The classes of families_check.py with recurrent blocks: the settings that are drawn for each."""

FLAG, EPS = [False, True], [1e-6, 1e-5, 1e-3]
ACTS = ["silu", "silu", "gelu", "relu"]
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def common(r):
    return TOKENS | {
        "vocab_size": r.choice([64, 97]),
        "hidden_size": r.choice([12, 17, 32, 50]),
        "num_hidden_layers": r.choice([1, 2, 3]),
        "hidden_act": r.choice(ACTS),
        "tie_word_embeddings": r.choice(FLAG),
    }


def mamba(r):
    return common(r) | {
        "layer_norm_epsilon": r.choice(EPS),
        "state_size": r.choice([1, 5, 16, 20]),
        "expand": r.choice([1, 2, 3]),
        "conv_kernel": r.choice([2, 3, 4, 5]),
        "use_bias": r.choice(FLAG),
        "use_conv_bias": r.choice(FLAG),
        "time_step_rank": r.choice(["auto", 1, 7]),
    }


def falcon_mamba(r):
    return mamba(r) | {"mixer_rms_eps": r.choice(EPS)}


def heads(r):
    """Groups, heads and their width."""
    groups = r.choice([1, 1, 2, 3])
    return groups, groups * r.choice([1, 2, 3]), r.choice([4, 6, 16])


def mamba2(r):
    values = mamba(r)
    groups, count, width = heads(r)
    del values["time_step_rank"]
    return values | {
        "hidden_size": count * width * values["expand"],
        "expand": 1,
        "num_heads": count,
        "head_dim": width * values["expand"],
        "n_groups": groups,
        "chunk_size": r.choice([4, 8, 64]),
    }


def attention(r):
    groups = r.choice([1, 2, 3])
    count = groups * r.choice([1, 2, 3])
    return {
        "hidden_size": 8 * count,
        "intermediate_size": r.choice([20, 36, 52]),
        "num_attention_heads": count,
        "num_key_value_heads": groups,
        "num_hidden_layers": r.choice([2, 3, 4]),
        "max_position_embeddings": 96,
        "rope_parameters": {"rope_type": "default", "rope_theta": r.choice([50.0, 1e4])},
    }


def attending(r, layers):
    """The layers with attention: one at least, which generate() of transformers needs."""
    return sorted({r.randrange(layers)} | {i for i in range(layers) if r.random() < 0.3})


def lfm2(r):
    values = common(r) | attention(r)
    del values["hidden_act"]
    layers = values["num_hidden_layers"]
    kinds = ["conv"] * layers
    for i in attending(r, layers):
        kinds[i] = "full_attention"
    return values | {
        "norm_eps": r.choice(EPS),
        "conv_bias": r.choice(FLAG),
        "conv_L_cache": r.choice([2, 3, 4]),
        "block_auto_adjust_ff_dim": r.choice(FLAG),
        "block_multiple_of": r.choice([1, 8, 16]),
        "block_ffn_dim_multiplier": r.choice([1.0, 0.7, 1.4]),
        "layer_types": kinds,
    }


def bamba(r):
    values = common(r) | attention(r)
    groups, expand = r.choice([1, 1, 2]), r.choice([1, 2])
    count = groups * r.choice([1, 2])
    return values | {
        "rms_norm_eps": r.choice(EPS),
        "attn_layer_indices": attending(r, values["num_hidden_layers"]),
        "mamba_n_heads": count if 8 * expand % count == 0 else groups,
        "mamba_n_groups": groups,
        "mamba_d_head": "auto",
        "mamba_d_state": r.choice([3, 16, 20]),
        "mamba_d_conv": r.choice([2, 3, 4]),
        "mamba_expand": expand,
        "mamba_chunk_size": r.choice([4, 8, 64]),
        "mamba_conv_bias": r.choice(FLAG),
        "mamba_proj_bias": r.choice(FLAG),
        "attention_bias": r.choice(FLAG),
        "mlp_bias": r.choice(FLAG),
    }


# Class: its configuration, and the settings of a random one.
RECURRENT = {
    "BambaForCausalLM": ("BambaConfig", bamba),
    "FalconMambaForCausalLM": ("FalconMambaConfig", falcon_mamba),
    "Lfm2ForCausalLM": ("Lfm2Config", lfm2),
    "MambaForCausalLM": ("MambaConfig", mamba),
    "Mamba2ForCausalLM": ("Mamba2Config", mamba2),
}

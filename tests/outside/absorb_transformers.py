"""Language models of transformers that the loader of folders does not know, for absorb_check.py.

Small ones with random weights; nothing is downloaded.
"""

import numpy as np
import torch
import transformers

transformers.utils.logging.set_verbosity_error()
IDS = np.array([[5, 0, 96, 17, 17, 3, 42, 64]])
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": 97}
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
INNER = {**SIZES, "intermediate_size": 48, "max_position_embeddings": 64}
GROUPED = {**INNER, "num_key_value_heads": 2}
KINDS = {
    "GPTNeoForCausalLM": (
        "GPTNeoConfig",
        {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global"], 2]]},
    ),
    "GPTJForCausalLM": ("GPTJConfig", {**GPT, "rotary_dim": 4}),
    "GPTBigCodeForCausalLM": ("GPTBigCodeConfig", GPT),
    "BloomForCausalLM": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "FalconForCausalLM": ("FalconConfig", SIZES),
    "StableLmForCausalLM": ("StableLmConfig", GROUPED),
    "GraniteForCausalLM": ("GraniteConfig", GROUPED),
    "OlmoForCausalLM": ("OlmoConfig", GROUPED),
    "CohereForCausalLM": ("CohereConfig", GROUPED),
    "NemotronForCausalLM": ("NemotronConfig", GROUPED),
}


def modules():
    """(name, model, ids)."""
    torch.set_num_threads(1)
    for name, (config, sizes) in KINDS.items():
        torch.manual_seed(0)
        made = getattr(transformers, config)(**sizes, **ENDS)
        yield name, getattr(transformers, name)(made).eval(), IDS

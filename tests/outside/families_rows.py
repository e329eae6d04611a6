"""The classes of families_check.py: their settings, and the values that are drawn for each."""

from collections.abc import Callable
from dataclasses import dataclass, field

from recurrent_rows import RECURRENT

POSITIONS, LAYERS, ACTS = 96, [1, 2, 3], ["silu", "gelu", "gelu_pytorch_tanh", "relu"]
FLAG = [False, True]


@dataclass(frozen=True)
class Row:
    config: str  # class of the configuration
    options: dict = field(default_factory=dict)  # setting: values that are drawn
    names: dict = field(default_factory=dict)  # usual name of a size: the name of the class
    parts: tuple = ()  # partial_rotary_factor; () means that the class has none
    # rope_parameters, or "": none; "plain": without scaling; "width": rotary_dim; "kinds": by layer
    # type; "axes": with mrope_section; "alpha": dynamic with alpha
    rope: str = "rope_parameters"
    square: bool = False  # head_dim is hidden_size / heads
    head_dim: bool = False  # such a class has the setting
    heads: str = "grouped"  # "equal": as many heads of keys and values
    sliding: str = ""  # "types": sliding_window and layer_types; "plain": sliding_window alone;
    # "switch": "types" with use_sliding_window
    refused: tuple = ()  # settings that Loom may refuse
    multiple: int = 1  # of the count of heads
    outer: str = ""  # the configuration that has this one as text_config
    vision: dict = field(default_factory=dict)  # of the outer one
    more: Callable | None = None  # draws further values: more(values, r)


OLD = {
    "hidden_size": "n_embd", "intermediate_size": "n_inner", "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head", "max_position_embeddings": "n_positions",
    "hidden_act": "activation_function",
}
BIAS = {"attention_bias": FLAG}
BIASES = {"attention_bias": FLAG, "mlp_bias": FLAG}
RMS = {"rms_norm_eps": [1e-6, 1e-5, 1e-3]}
LAYER = {"layer_norm_eps": [1e-6, 1e-5, 1e-3]}
EPSILON = {"layer_norm_epsilon": [1e-6, 1e-5, 1e-3]}
GLM = dict(options=RMS | BIAS, parts=(0.5, 1.0, 0.25))
GRANITE = {
    "embedding_multiplier": [0.7, 12.0, 1.0], "attention_multiplier": [0.11, 1.0, 0.3],
    "residual_multiplier": [0.22, 1.0, 1.7], "logits_scaling": [1.0, 0.3, 6.0],
}
COHERE = LAYER | BIAS | {"logit_scale": [0.0625, 0.3, 2.0]}
GPTJ = dict(names=OLD, options=EPSILON, rope="width", square=True, heads="equal")

GEMMA = {"query_pre_attn_scalar": [8, 20], "hidden_activation": ["gelu_pytorch_tanh", "gelu"],
         "final_logit_softcapping": [None, 3.0, 30.0],
         "attn_logit_softcapping": [None, 1.5, 50.0]}

GEMMA3 = RMS | {key: GEMMA[key] for key in GEMMA if key != "attn_logit_softcapping"}
TOWER = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
         "num_attention_heads": 2, "image_size": 16, "patch_size": 8}
CLIP = TOWER | {"model_type": "clip_vision_model"}
SIGLIP = TOWER | {"model_type": "siglip_vision_model"}
QWEN = {"depth": 1, "num_heads": 2, "patch_size": 4}

def gpt_neo(values, r):
    layers = values["num_hidden_layers"]
    kinds = [r.choice(["global", "local"]) for _ in range(layers)]
    values["attention_types"] = r.choice([[[kinds, 1]], [[["local"], layers]]])


def falcon(values, _):
    """The combinations that transformers runs."""
    if values["new_decoder_architecture"]:
        values["parallel_attn"] = True
    elif values["num_ln_in_parallel_attn"] == 2:
        values["num_ln_in_parallel_attn"] = None
    if not values["parallel_attn"]:
        values["num_ln_in_parallel_attn"] = None
    if not values["new_decoder_architecture"]:
        values["num_key_value_heads"] = values["num_attention_heads"]


ROWS = {
    "ArceeForCausalLM": Row("ArceeConfig", RMS | BIASES | {"hidden_act": ["relu2", "silu"]}),
    "BioGptForCausalLM": Row("BioGptConfig", LAYER | {"scale_embedding": FLAG}, rope="",
                             square=True, heads="equal"),
    "CodeGenForCausalLM": Row("CodeGenConfig", **GPTJ, multiple=4),
    "CohereForCausalLM": Row("CohereConfig", COHERE | {"use_qk_norm": [False, False, True]},
                             square=True),
    "Cohere2ForCausalLM": Row("Cohere2Config", COHERE, square=True, sliding="types"),
    "CwmForCausalLM": Row("CwmConfig", RMS | {"mlp_bias": FLAG}, sliding="types"),
    "Ernie4_5ForCausalLM": Row("Ernie4_5Config", RMS | {"use_bias": FLAG}),
    "Exaone4ForCausalLM": Row("Exaone4Config", RMS, sliding="types"),
    "FalconForCausalLM": Row(
        "FalconConfig",
        EPSILON | {"bias": FLAG, "new_decoder_architecture": FLAG, "multi_query": FLAG,
                   "parallel_attn": [True, True, False], "num_ln_in_parallel_attn": [None, 1, 2],
                   "alibi": [False] * 5 + [True]},
        names={"intermediate_size": "ffn_hidden_size", "hidden_act": "activation",
               "num_key_value_heads": "num_kv_heads"},
        square=True, refused=("alibi",), more=falcon),
    "GPTBigCodeForCausalLM": Row("GPTBigCodeConfig", EPSILON | {"multi_query": FLAG}, OLD, rope="",
                                 square=True, heads="equal"),
    "GPTNeoForCausalLM": Row(
        "GPTNeoConfig", EPSILON | {"window_size": [3, 7, 200]},
        names=OLD | {"hidden_size": "hidden_size", "intermediate_size": "intermediate_size",
                     "num_hidden_layers": "num_layers", "num_attention_heads": "num_heads",
                     "max_position_embeddings": "max_position_embeddings"},
        rope="", square=True, heads="equal", more=gpt_neo),
    "GPTJForCausalLM": Row("GPTJConfig", **GPTJ),
    "GlmForCausalLM": Row("GlmConfig", **GLM),
    "Glm4ForCausalLM": Row("Glm4Config", **GLM),
    "GraniteForCausalLM": Row("GraniteConfig", RMS | BIASES | GRANITE),
    "HeliumForCausalLM": Row("HeliumConfig", RMS | BIASES, square=True, head_dim=True),
    "HyperCLOVAXForCausalLM": Row(
        "HyperCLOVAXConfig",
        RMS | BIASES | GRANITE | {"attention_multiplier": [None, 0.2, 1.0],
                                  "use_post_norm": FLAG}),
    "Jais2ForCausalLM": Row("Jais2Config", LAYER | BIASES | {"hidden_act": ["relu2", "gelu"]}),
    "MinistralForCausalLM": Row("MinistralConfig", RMS, sliding="types"),
    "NemotronForCausalLM": Row(
        "NemotronConfig",
        BIASES | {"norm_eps": [1e-6, 1e-5, 1e-3], "hidden_act": ["relu2", "gelu"]},
        parts=(0.5, 1.0, 0.25)),
    "HunYuanDenseV1ForCausalLM": Row("HunYuanDenseV1Config", RMS | BIAS, rope="alpha"),
    "OlmoForCausalLM": Row("OlmoConfig", BIAS | {"clip_qkv": [None, 0.4, 1.5]}, square=True),
    "Olmo2ForCausalLM": Row("Olmo2Config", RMS | BIAS, square=True),
    "Olmo3ForCausalLM": Row("Olmo3Config", RMS | BIAS, rope="kinds", square=True,
                            sliding="types"),
    "PersimmonForCausalLM": Row("PersimmonConfig", LAYER | {"qk_layernorm": FLAG},
                                parts=(0.5, 1.0), square=True, heads="equal"),
    "SeedOssForCausalLM": Row("SeedOssConfig", RMS | BIASES | {"attention_out_bias": FLAG}),
    "StableLmForCausalLM": Row(
        "StableLmConfig",
        LAYER | {"use_qkv_bias": FLAG, "use_parallel_residual": FLAG,
                 "qk_layernorm": [False, False, True]},
        parts=(0.25, 0.5, 1.0), square=True, refused=("qk_layernorm",)),
    "VaultGemmaForCausalLM": Row("VaultGemmaConfig", RMS | BIAS | GEMMA, sliding="types"),
    "GPT2LMHeadModel": Row("GPT2Config", EPSILON, OLD, rope="", square=True, heads="equal"),
    "GPTNeoXForCausalLM": Row("GPTNeoXConfig", LAYER | {"use_parallel_residual": FLAG},
                              parts=(0.25, 0.5, 1.0), square=True, heads="equal"),
    "GemmaForCausalLM": Row("GemmaConfig", RMS | BIAS),
    "Gemma2ForCausalLM": Row("Gemma2Config", RMS | BIAS | GEMMA, sliding="types"),
    "Gemma3ForCausalLM": Row("Gemma3TextConfig", GEMMA3, sliding="types", rope="kinds"),
    "LlamaForCausalLM": Row("LlamaConfig", RMS | BIASES),
    "MistralForCausalLM": Row("MistralConfig", RMS, sliding="plain"),
    "OPTForCausalLM": Row("OPTConfig", names={"intermediate_size": "ffn_dim",
                                              "hidden_act": "activation_function"},
                          rope="", square=True, heads="equal"),
    "PhiForCausalLM": Row("PhiConfig", LAYER | {"tie_word_embeddings": [False]},
                          parts=(0.5, 1.0), square=True),
    "Phi3ForCausalLM": Row("Phi3Config", RMS, rope="plain", parts=(0.5, 1.0), square=True,
                           sliding="plain"),
    "Qwen2ForCausalLM": Row("Qwen2Config", RMS, square=True, sliding="switch"),
    "Qwen3ForCausalLM": Row("Qwen3Config", RMS | BIAS, sliding="switch"),
    "SmolLM3ForCausalLM": Row("SmolLM3Config", RMS | BIASES | {"no_rope_layer_interval": [2, 3]},
                              square=True, sliding="switch"),
    "Starcoder2ForCausalLM": Row("Starcoder2Config", {"norm_epsilon": [1e-5, 1e-3]}, square=True,
                                 sliding="plain"),
    # The language models of multimodal classes.
    "Gemma3ForConditionalGeneration": Row("Gemma3TextConfig", GEMMA3, sliding="types",
                                          rope="kinds", outer="Gemma3Config", vision=SIGLIP),
    "InternVLForConditionalGeneration": Row(
        "Qwen2Config", RMS, square=True, outer="InternVLConfig",
        vision=TOWER | {"model_type": "internvl_vision"}),
    "LlavaForConditionalGeneration": Row("LlamaConfig", RMS | BIASES, outer="LlavaConfig",
                                         vision=CLIP),
    "LlavaNextForConditionalGeneration": Row("MistralConfig", RMS, sliding="plain",
                                             outer="LlavaNextConfig", vision=CLIP),
    "LlavaOnevisionForConditionalGeneration": Row("Qwen2Config", RMS, square=True,
                                                  outer="LlavaOnevisionConfig", vision=SIGLIP),
    "Mistral3ForConditionalGeneration": Row("MistralConfig", RMS, outer="Mistral3Config",
                                            vision=TOWER | {"model_type": "pixtral"}),
    "Qwen2VLForConditionalGeneration": Row(
        "Qwen2VLTextConfig", RMS, rope="axes", square=True, outer="Qwen2VLConfig",
        vision=QWEN | {"embed_dim": 16, "hidden_size": 16}),
    "Qwen2_5_VLForConditionalGeneration": Row(
        "Qwen2_5_VLTextConfig", RMS, rope="axes", square=True, outer="Qwen2_5_VLConfig",
        vision=QWEN | {"hidden_size": 16, "out_hidden_size": 16, "intermediate_size": 16}),
    "Qwen3VLForConditionalGeneration": Row(
        "Qwen3VLTextConfig", RMS | BIAS, outer="Qwen3VLConfig",
        vision=QWEN | {"hidden_size": 16, "out_hidden_size": 16, "intermediate_size": 16}),
}

ROWS |= {name: Row(config) for name, (config, _) in RECURRENT.items()}


def rope_values(row, r):
    values = {"rope_type": "default", "rope_theta": r.choice([50.0, 500.0, 1e4])}
    if row.parts:
        values["partial_rotary_factor"] = r.choice(row.parts)
    if row.rope == "alpha" and r.random() < 0.7:
        values.update(rope_type="dynamic", alpha=r.choice([10.0, 1000.0]), factor=1.0)
    if row.rope in ("plain", "axes", "alpha"):
        return values
    kind = r.choice(["default", "default", "linear", "llama3"])
    if kind != "default":
        values.update(rope_type=kind, factor=r.choice([2.0, 4.0]))
    if kind == "llama3":
        values.update(low_freq_factor=1.0, high_freq_factor=4.0,
                      original_max_position_embeddings=32)
    return values


def sizes(row, r):
    groups = r.choice([1, 2, 3])
    share = 1 if row.heads == "equal" else r.choice([1, 2, 3])
    heads, dim = groups * share * row.multiple, r.choice([8, 16])
    return {
        "hidden_size": heads * (dim if row.square else r.choice([6, 8, 12])),
        "intermediate_size": r.choice([20, 36, 52]),
        "num_hidden_layers": r.choice(LAYERS) + (2 if row.sliding else 0),
        "num_attention_heads": heads,
        "num_key_value_heads": groups * row.multiple,
        "head_dim": dim,
        "vocab_size": r.choice([64, 97]),
        "max_position_embeddings": POSITIONS,
        "hidden_act": r.choice(ACTS),
        "tie_word_embeddings": r.choice(FLAG),
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }


def windows(row, values, r):
    layers = values["num_hidden_layers"]
    values["sliding_window"] = r.choice([3, 7, 100])
    if row.sliding == "plain":
        return
    if row.sliding == "switch":
        values["use_sliding_window"] = r.choice(FLAG)
        values["max_window_layers"] = r.choice([0, 1, 9])
        if not values["use_sliding_window"]:
            return
    kinds = ["sliding_attention", "full_attention"]
    if r.random() < 0.5:
        values["layer_types"] = [r.choice(kinds) for _ in range(layers)]


def draw(name, r):
    """The settings of a random configuration of a class."""
    if name in RECURRENT:
        return RECURRENT[name][1](r)
    row = ROWS[name]
    values = sizes(row, r)
    if row.square and not row.head_dim:
        del values["head_dim"]
    if row.heads == "equal":
        del values["num_key_value_heads"]
    if name in ("GPTJForCausalLM", "CodeGenForCausalLM"):
        values["tie_word_embeddings"] = False
        values["rotary_dim"] = r.choice([4, 8])
    if row.rope in ("rope_parameters", "plain", "axes", "alpha"):
        values["rope_parameters"] = rope_values(row, r)
    if row.rope == "axes":
        quarter = values["hidden_size"] // values["num_attention_heads"] // 8
        sections = [2 * quarter, quarter, quarter]
        values["rope_parameters"]["mrope_section"] = sections
    if row.rope == "kinds":
        values["rope_parameters"] = {
            "full_attention": rope_values(row, r),
            "sliding_attention": {"rope_type": "default", "rope_theta": r.choice([50.0, 1e4])}}
    if row.sliding:
        windows(row, values, r)
    values.update({key: r.choice(choices) for key, choices in row.options.items()})
    if row.more:
        row.more(values, r)
    return {row.names.get(key, key): value for key, value in values.items()}

"""The classes of families_check.py whose layers have experts."""

from families_rows import BIAS, BIASES, FLAG, GRANITE, RMS, Row

NORMALIZE = {"norm_topk_prob": FLAG}


def experts(count="num_experts", chosen="num_experts_per_tok", inner="moe_intermediate_size"):
    """Draws the sizes of experts. inner: "" if that is intermediate_size."""
    def more(values, r):
        values[count] = r.choice([2, 3, 4, 9])
        values[chosen] = r.randint(1, values[count])
        if inner:
            values[inner] = r.choice([8, 16, 21])
    return more


def dense(*draws, first="", kinds=""):
    """Layers without experts, after the other draws."""
    def more(values, r):
        for one in draws:
            one(values, r)
        layers = values["num_hidden_layers"]
        if first and r.random() < 0.7:
            values[first] = r.randint(0, layers)
        if kinds and r.random() < 0.5:
            values[kinds] = [r.choice(["dense", "sparse"]) for _ in range(layers)]
    return more


def deepseek(count="n_routed_experts", shared="n_shared_experts", scale="routed_scaling_factor"):
    """Groups, a scale and shared experts, as DeepSeek V3 calls them."""
    def more(values, r):
        groups = r.choice([1, 1, 2, 3])
        values[count] = groups * r.choice([2, 3, 4])
        values["n_group"], values["topk_group"] = groups, r.randint(1, groups)
        eligible = values[count] // groups * values["topk_group"]
        values["num_experts_per_tok"] = r.randint(1, eligible)
        values["moe_intermediate_size"] = r.choice([8, 16, 21])
        values[shared] = r.choice([1, 2])
        values[scale] = r.choice([1.0, 2.5])
        values["norm_topk_prob"] = r.choice(FLAG)
    return more


def ernie(values, r):
    experts("moe_num_experts", "moe_k")(values, r)
    layers = values["num_hidden_layers"]
    values["moe_num_shared_experts"] = r.choice([0, 1, 2])
    values["moe_layer_start_index"] = r.randint(0, layers)
    values["moe_layer_end_index"] = r.choice([-1, -1, r.randint(0, layers)])
    values["moe_layer_interval"] = r.choice([1, 1, 2])


def minimax(values, r):
    experts("num_local_experts", inner="")(values, r)
    values["rotary_dim"] = values["head_dim"] // r.choice([1, 2])


def granite(values, r):
    experts("num_local_experts", inner="")(values, r)
    if r.random() < 0.7:
        values["shared_intermediate_size"] = r.choice([0, 8, 19])


def thetas(values, r):
    if r.random() < 0.7:
        values["rope_parameters"].update(rope_type="default")
        values["layer_rope_theta"] = [
            r.choice([0, 50.0, 1e4]) for _ in range(values["num_hidden_layers"])]


def granite_swa(values, r):
    granite(values, r)
    thetas(values, r)


def gpt_oss(values, r):
    experts("num_local_experts", inner="")(values, r)
    if r.random() < 0.5:
        values["rope_parameters"] = {
            "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "truncate": r.choice(FLAG),
            "original_max_position_embeddings": 24}


def phimoe(values, r):
    experts("num_local_experts", inner="")(values, r)
    values["num_experts_per_tok"] = 2
    values["rope_parameters"] = {"rope_type": "default", "rope_theta": r.choice([50.0, 1e4])}
    values["sliding_window"] = r.choice([None, 5])
    if values["lm_head_bias"]:
        values["tie_word_embeddings"] = False


def latent(more=None):
    """Latent attention: the widths of latents and parts of heads, and yarn with mscale."""
    def draw(values, r):
        if more:
            more(values, r)
        values.pop("head_dim", None)
        values["num_key_value_heads"] = values["num_attention_heads"]
        values["kv_lora_rank"] = r.choice([8, 12, 32])
        values["q_lora_rank"] = r.choice([None, 6, 16])
        values["qk_nope_head_dim"] = r.choice([4, 6, 16])
        values["qk_rope_head_dim"] = r.choice([4, 8])
        values["v_head_dim"] = r.choice([4, 10, 16])
        rope = {"rope_type": "default", "rope_theta": r.choice([50.0, 1e4])}
        if r.random() < 0.5:
            rope.update(rope_type="yarn", factor=4.0, original_max_position_embeddings=24,
                        beta_fast=32, beta_slow=1)
            rope.update(r.choice([{}, {"mscale": 1.0, "mscale_all_dim": 1.0},
                                  {"mscale": 0.707, "mscale_all_dim": 0.5}]))
        values["rope_parameters"] = rope
    return draw


def deepseek_v2(values, r):
    deepseek()(values, r)
    values["topk_method"] = r.choice(["greedy", "group_limited_greedy"])


def solar(values, r):
    deepseek()(values, r)
    del values["intermediate_size"]


EXPERTS = {
    "AriaTextForCausalLM": Row(
        "AriaTextConfig",
        RMS | BIAS | {"hidden_act": ["silu"], "moe_num_shared_experts": [1, 2, 3],
                      "mlp_bias": [False] * 4 + [True]},
        square=True, refused=("mlp_bias",), more=experts("moe_num_experts", "moe_topk", "")),
    "DeepseekV2ForCausalLM": Row(
        "DeepseekV2Config", RMS, square=True,
        more=latent(dense(deepseek_v2, first="first_k_dense_replace"))),
    "DeepseekV3ForCausalLM": Row(
        "DeepseekV3Config", RMS | {"rope_interleave": [True] * 5 + [False]}, square=True,
        refused=("rope_interleave",),
        more=latent(dense(deepseek(), first="first_k_dense_replace"))),
    "Dots1ForCausalLM": Row(
        "Dots1Config", RMS | BIAS | {"max_window_layers": [0, 1, 9]}, sliding="types",
        more=dense(deepseek(), first="first_k_dense_replace")),
    "Ernie4_5_MoeForCausalLM": Row(
        "Ernie4_5_MoeConfig", RMS | {"use_bias": [False] * 5 + [True]}, square=True,
        refused=("use_bias",), more=ernie),
    "ExaoneMoeForCausalLM": Row(
        "ExaoneMoeConfig", RMS | {"sliding_window_pattern": [2, 3, 4]}, sliding="types",
        more=dense(deepseek("num_experts", "num_shared_experts"), first="first_k_dense_replace",
                   kinds="mlp_layer_types")),
    "FlexOlmoForCausalLM": Row("FlexOlmoConfig", RMS | BIAS | NORMALIZE, square=True,
                               more=experts(inner="")),
    "Glm4MoeForCausalLM": Row(
        "Glm4MoeConfig", RMS | BIAS | {"use_qk_norm": FLAG}, parts=(0.5, 1.0, 0.25),
        more=dense(deepseek(), first="first_k_dense_replace")),
    "Glm4MoeLiteForCausalLM": Row(
        "Glm4MoeLiteConfig", RMS, more=latent(dense(deepseek(), kinds="mlp_layer_types"))),
    "GptOssForCausalLM": Row(
        "GptOssConfig",
        RMS | BIAS | {"hidden_act": ["silu"], "swiglu_limit": [0.8, 7.0],
                      "swiglu_alpha": [1.702, 0.7]},
        sliding="types", more=gpt_oss),
    "GraniteMoeForCausalLM": Row("GraniteMoeConfig", RMS | BIAS | GRANITE, square=True,
                                 more=experts("num_local_experts", inner="")),
    "GraniteMoeSharedForCausalLM": Row("GraniteMoeSharedConfig", RMS | BIAS | GRANITE,
                                       square=True, more=granite),
    "GraniteMoeSWAForCausalLM": Row("GraniteMoeSWAConfig", RMS | BIAS | GRANITE, square=True,
                                    sliding="types", more=granite_swa),
    "GraniteSWAForCausalLM": Row("GraniteSWAConfig", RMS | BIASES | GRANITE, square=True,
                                 sliding="types", more=thetas),
    "HunYuanMoEV1ForCausalLM": Row("HunYuanMoEV1Config", RMS | BIAS, rope="alpha",
                                   more=experts(chosen="moe_topk", inner="")),
    "HYV3ForCausalLM": Row(
        "HYV3Config",
        RMS | BIAS | {"num_shared_experts": [1, 2], "router_scaling_factor": [1.0, 2.8]},
        more=dense(experts(), kinds="mlp_layer_types")),
    "MellumForCausalLM": Row("MellumConfig", RMS | BIAS | NORMALIZE, rope="kinds",
                             sliding="types", more=dense(experts(), kinds="mlp_layer_types")),
    "MiniMaxM2ForCausalLM": Row("MiniMaxM2Config", RMS, more=minimax),
    "OlmoeForCausalLM": Row(
        "OlmoeConfig", RMS | BIAS | NORMALIZE | {"clip_qkv": [None] * 5 + [1.5]}, square=True,
        refused=("clip_qkv",), more=experts(inner="")),
    "PhimoeForCausalLM": Row(
        "PhimoeConfig",
        RMS | BIAS | {"router_jitter_noise": [0.01, 0.2, 0.6], "lm_head_bias": FLAG},
        rope="default", square=True, more=phimoe),
    "YoutuForCausalLM": Row("YoutuConfig", RMS, more=latent()),
    "SolarOpenForCausalLM": Row("SolarOpenConfig", RMS | BIAS, more=solar),
}

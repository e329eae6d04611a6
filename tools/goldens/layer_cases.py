"""The cases of the layer goldens by family: a name, a layer (see torch_layers.py), the shape of its
input, batch first. Batches of three and times of eight or nine, small everything else."""

from torch_layers import ACTIVATIONS


def layer(kind, /, *children, **fields):
    fields = {name.rstrip("_"): value for name, value in fields.items()}  # in_ is a keyword's name
    return {"kind": kind, "fields": fields} | ({"children": list(children)} if children else {})


def case(name, tree, shape, spread=1.0, vocab=0, masked=False):
    """spread: inputs are between -spread and spread. vocab: they are ids below it. masked: some
    positions are left out."""
    return {
        "name": name,
        "layer": tree,
        "input": shape,
        "spread": spread,
        "vocab": vocab,
        "masked": masked,
    }


def dense(inputs, outputs, activation="tanh", **more):
    return layer("Dense", in_=inputs, out=outputs, activation=activation, **more)


def dense_cases():
    # Wide inputs, so that both ends of every activation are met.
    yield from (case(f"dense_{a}", dense(5, 17, a), [3, 5], spread=5.0) for a in ACTIVATIONS)
    yield case("dense_without_bias", dense(4, 18, "linear", bias=False), [3, 2, 4])
    yield case("dense_of_whole_samples", dense(24, 3, "silu"), [3, 2, 3, 4])
    yield case("dense_long", dense(300, 2, "linear"), [3, 300])


def row_cases():
    yield case("rms_norm", layer("RMSNorm", width=6), [4, 6])
    yield case("rms_norm_large_eps", layer("RMSNorm", width=7, eps=0.1), [3, 2, 7])
    yield case("layer_norm", layer("LayerNorm", width=6), [4, 6])
    yield case("layer_norm_large_eps", layer("LayerNorm", width=7, eps=0.1), [3, 2, 7])
    for gate in ("silu", "gelu_tanh", "gelu_erf", "relu"):
        tree = layer("SwiGLU", width=4, inner=6, bias=gate != "silu", activation=gate)
        yield case(f"swiglu_{gate}", tree, [3, 2, 4], spread=2.0)
    yield case("embedding", layer("Embedding", vocab=7, width=3), [3, 8], vocab=7)
    padded = layer("Embedding", vocab=7, width=3, padding_id=2)
    yield case("embedding_padding", padded, [3, 8], vocab=7)
    curved = layer("Embedding", vocab=5, width=3, activation="tanh", padding_id=0)
    yield case("embedding_tanh", curved, [9], vocab=5)
    yield case("kmeans", layer("KMeans", clusters=4, width=3, temperature=0.7), [5, 3])
    features = layer("KMeans", clusters=4, width=3, mode="features", activation="tanh")
    yield case("kmeans_features", features, [3, 2, 3])


def conv_cases():
    def conv(name, kind, shape, **f):
        return case(name, layer(kind, **f), shape)

    yield conv("cnn1", "CNN1", [3, 2, 7], channels=2, filters=3, padding=1)
    f = dict(channels=4, filters=6, stride=2, dilation=2, groups=2, activation="gelu_tanh")
    yield conv("cnn1_strided_dilated_groups", "CNN1", [3, 4, 9], padding=2, **f)
    yield conv("cnn1_ragged", "CNN1", [3, 2, 8], channels=2, filters=2, stride=3, bias=False)
    f = dict(kernel=[3, 2], stride=[2, 1], padding=[1, 0], activation="tanh")
    yield conv("cnn2", "CNN2", [3, 2, 5, 4], channels=2, filters=3, **f)
    f = dict(channels=3, filters=3, groups=3, padding=1, bias=False)
    yield conv("cnn2_depthwise", "CNN2", [3, 3, 4, 3], **f)
    f = dict(channels=2, filters=4, groups=2, dilation=[1, 2], padding=[0, 2], activation="relu")
    yield conv("cnn2_dilated_groups", "CNN2", [3, 2, 4, 5], **f)
    f = dict(kernel=2, padding=[0, 1, 0], dilation=[1, 1, 2])
    yield conv("cnn3", "CNN3", [3, 2, 3, 2, 4], channels=2, filters=2, **f)
    f = dict(kernel=[1, 3, 2], stride=[1, 2, 1], padding=[0, 1, 1], groups=2, activation="silu")
    yield conv("cnn3_strided_groups", "CNN3", [3, 2, 2, 4, 3], channels=2, filters=4, **f)
    f = dict(stride=2, padding=1, output_padding=1, activation="tanh")
    yield conv("transposed1", "ConvTransposed1D", [3, 3, 4], channels=3, filters=2, **f)
    f = dict(kernel=4, stride=3, dilation=2, groups=2, padding=2, output_padding=2)
    yield conv("transposed1_everything", "ConvTransposed1D", [3, 4, 3], channels=4, filters=6, **f)
    f = dict(groups=2, kernel=[2, 3], stride=[1, 2], activation="silu")
    yield conv("transposed2", "ConvTransposed2D", [3, 4, 2, 3], channels=4, filters=2, **f)
    f = dict(stride=[2, 3], padding=[1, 0], output_padding=[1, 2], bias=False)
    yield conv("transposed2_padded", "ConvTransposed2D", [3, 2, 2, 2], channels=2, filters=2, **f)
    f = dict(kernel=2, dilation=[1, 2, 1], bias=False)
    yield conv("transposed3", "ConvTransposed3D", [3, 2, 2, 2, 2], channels=2, filters=2, **f)
    f = dict(kernel=[1, 2, 3], stride=[1, 2, 2], padding=[0, 0, 1], output_padding=[0, 1, 1])
    f |= dict(channels=2, filters=4, groups=2, activation="gelu_erf")
    yield conv("transposed3_strided_groups", "ConvTransposed3D", [3, 2, 2, 2, 2], **f)


def recurrent_cases():
    for kind in ("RNN", "LSTM", "GRU"):
        name = kind.lower()
        yield case(name, layer(kind, in_=3, hidden=4), [3, 9, 3])
        last = layer(kind, in_=3, hidden=4, return_sequence=False)
        yield case(f"{name}_last_state", last, [3, 8, 3])
        yield case(f"{name}_wide", layer(kind, in_=2, hidden=5), [2, 12, 2], spread=3.0)
    for activation in ("relu", "sigmoid", "silu"):
        tree = layer("RNN", in_=3, hidden=4, activation=activation)
        yield case(f"rnn_{activation}", tree, [3, 8, 3])
    last = layer("RNN", in_=3, hidden=4, activation="relu", return_sequence=False)
    yield case("rnn_relu_last_state", last, [3, 8, 3])
    stacked = layer("Sequential", layer("LSTM", in_=3, hidden=4), layer("GRU", in_=4, hidden=2))
    yield case("lstm_then_gru", stacked, [3, 8, 3])


def attention_cases():
    def mha(name, masked=False, **f):
        f = dict(width=8, heads=2, kv_heads=2, head_dim=4, rope=False, causal=False) | f
        return case(name, layer("MultiHeadAttention", **f), [3, 6, 8], masked=masked)

    # Those that nn.MultiheadAttention has.
    yield mha("attention_full")
    yield mha("attention_causal", causal=True)
    yield mha("attention_full_biases", bias=True, out_bias=True)
    yield mha("attention_causal_biases", causal=True, bias=True, out_bias=True)
    yield mha("attention_padded", masked=True)
    yield mha("attention_padded_causal", masked=True, causal=True, bias=True, out_bias=True)
    # Composed.
    yield mha("attention_grouped", heads=4, kv_heads=2, head_dim=2, causal=True)
    yield mha("attention_grouped_full", heads=4, kv_heads=2, head_dim=2, bias=True)
    yield mha("attention_multi_query", heads=3, kv_heads=1, head_dim=3, out_bias=True)
    yield mha("attention_multi_query_padded", masked=True, heads=4, kv_heads=1, head_dim=2)
    yield mha("attention_rope", rope=True, causal=True)
    yield mha("attention_rope_full", rope=True, rope_theta=100)
    f = dict(heads=4, kv_heads=2, causal=True, rope=True)
    yield mha("attention_rope_grouped_padded", masked=True, **f)
    f = dict(rope=True, causal=True, rope_theta=50, rope_factor=4)
    yield mha("attention_rope_linear", rope_scaling="linear", **f)
    f |= dict(rope_scaling="llama3", head_dim=8, rope_original=40)
    yield mha("attention_rope_llama3", **f)
    yield mha("attention_qk_norm", qk_norm=True, causal=True)
    yield mha("attention_qk_norm_rope_grouped", heads=4, qk_norm=True, rope=True, bias=True)
    yield mha("attention_window", window=3, causal=True)
    yield mha("attention_window_both_ways", window=2, rope=True)


def softmax_cases():
    def softmax(name, width, **f):
        return case(f"softmax_{name}", layer("Softmax", **f), [3, width], spread=2.0)

    yield softmax("standard", 6)
    yield softmax("rows_of_samples", 6) | {"input": [3, 2, 6]}
    yield softmax("temperature", 5, variant="temperature", temperature=0.3)
    yield softmax("masked", 7, variant="masked", mask=[1, 0, 1, 1, 0, 1], temperature=0.7)
    yield softmax("grid", 6, variant="grid", rows=2, cols=3, temperature=0.7)
    yield softmax("hierarchical", 8, variant="hierarchical", levels=[2, 3])
    deep = dict(variant="hierarchical", levels=[2, 2, 2], temperature=0.7)
    yield softmax("hierarchical_deep", 14, **deep)
    yield softmax("hierarchical_leaves", 6, variant="hierarchical", levels=[2, 3])
    yield softmax("sparse", 6, variant="sparse", temperature=1.4)
    yield softmax("entmax", 6, variant="entmax", alpha=1.5)
    yield softmax("adaptive", 6, variant="adaptive", temperature=0.7, kappa=0.8)
    yield softmax("mixture", 8, variant="mixture", rows=2, cols=3, temperature=0.7)
    yield softmax("mixture_uniform", 6, variant="mixture", rows=2, cols=3)


def container_cases():
    def parallel(name, children, **f):
        return case(f"parallel_{name}", layer("Parallel", *children, **f), [4, 3])

    same = [dense(3, 4), dense(3, 4, "silu"), dense(3, 4, "linear")]
    gated = [*same, dense(3, 3, "linear")]
    yield parallel("concat", [dense(3, 2), dense(3, 5)])
    yield parallel("add", same, combine="add")
    yield parallel("avg", same, combine="avg")
    f = dict(rows=2, cols=2, targets=[0, 1, 1, 0, 1, 1])
    yield parallel("scatter", same, combine="grid_scatter", **f)
    yield parallel("filter", gated, combine="filter")
    yield parallel("top_two", gated, combine="filter", top_k=2)
    yield parallel("top_two_balanced", gated, combine="filter", top_k=2, balance=0.3)
    times = layer("Parallel", layer("LSTM", in_=3, hidden=2), dense(3, 2), combine="add")
    yield case("parallel_over_time", times, [3, 8, 3])
    two = [dense(3, 5), dense(5, 3)]
    yield case("sequential", layer("Sequential", *two), [4, 3])
    yield case("residual", layer("Residual", *two), [4, 3])
    bare = layer("Sequential", dense(3, 3), dense(3, 3, "silu"), layer("Residual"))
    yield case("residual_after_in_sequence", bare, [4, 3])
    inner = layer("Parallel", dense(3, 3), layer("Residual", dense(3, 3)), combine="add")
    split = layer("Parallel", dense(3, 2), dense(3, 3))
    yield case("nested", layer("Sequential", inner, split, dense(5, 2)), [3, 3])
    mha = layer("MultiHeadAttention", width=4, heads=2, kv_heads=1, head_dim=2)
    attention = layer("Residual", layer("RMSNorm", width=4), mha)
    mlp = layer("Residual", layer("RMSNorm", width=4), layer("SwiGLU", width=4, inner=6))
    block = layer("Sequential", attention, mlp, layer("RMSNorm", width=4))
    yield case("transformer_block", block, [3, 6, 4])
    net = [layer("CNN1", channels=2, filters=3, activation="relu"), dense(15, 2, "linear")]
    yield case("cnn_then_dense", layer("Sequential", *net, layer("Softmax")), [3, 2, 7])


def decoder_cases():
    """Additions of decoders beyond Llama to layers."""

    def mha(name, **f):
        f = dict(width=8, heads=4, kv_heads=2, head_dim=4, rope=True, rope_theta=30) | f
        return case(name, layer("MultiHeadAttention", **f), [3, 6, 8])

    yield mha("attention_capped", soft_cap=0.5)
    yield mha("attention_capped_window", soft_cap=0.8, window=3, scale=0.7, bias=True)
    yield mha("attention_scaled", scale=0.9)
    yield mha("attention_part_turns", head_dim=6, rope_width=4, qk_norm=True)
    yield mha("attention_sub_norm", sub_norm=True, sub_norm_eps=0.01, out_bias=True)
    gated = dict(width=4, inner=6, sub_norm=True)
    yield case("swiglu_sub_norm", layer("SwiGLU", activation="relu2", **gated), [3, 2, 4])
    yield case("swiglu_sub_norm_biases", layer("SwiGLU", bias=True, **gated), [3, 2, 4])
    yield case("embedding_scaled", layer("Embedding", vocab=7, width=3, scale=2.5), [9], vocab=7)
    yield case("dense_capped", dense(5, 6, "linear", soft_cap=0.7), [3, 5], spread=2.0)


def channel_cases():
    def norm(name, kind, shape, **f):
        return case(name, layer(kind, channels=shape[1], **f), shape, spread=2.0)

    yield norm("group_norm", "GroupNorm", [3, 6, 5], groups=2)
    yield norm("group_norm_plain", "GroupNorm", [3, 6, 4, 3], groups=3, affine=False, eps=0.1)
    yield norm("group_norm_flat", "GroupNorm", [3, 8], groups=2)
    yield norm("group_norm_volume", "GroupNorm", [2, 4, 3, 2, 5], groups=1)
    yield norm("instance_norm", "InstanceNorm", [3, 4, 7])
    yield norm("instance_norm_affine", "InstanceNorm", [3, 5, 3, 4], affine=True, eps=0.1)


def pooling_cases():
    def pool(name, shape, **f):
        return case(f"pool_{name}", layer("Pool", **f), shape)

    yield pool("max", [3, 2, 6, 5])
    yield pool("max_overlapping", [3, 2, 7, 5], kernel=3, stride=2, padding=1)
    yield pool("max_ceil", [3, 2, 6, 7], kernel=[3, 2], stride=[2, 3], padding=[1, 0], ceil=True)
    yield pool("max_dilated", [3, 2, 9], kernel=3, stride=1, dilation=2, padding=1)
    yield pool("max_volume", [3, 2, 3, 4, 3], kernel=[1, 2, 2], stride=[1, 2, 1])
    yield pool("max_to_extents", [3, 2, 7, 5], output=[3, 2])
    yield pool("max_of_all", [3, 4, 3, 2], output=1)
    yield pool("average", [3, 2, 6, 5], kind="average")
    f = dict(kind="average", kernel=3, stride=2, padding=1)
    yield pool("average_inside", [3, 2, 7, 5], **f)
    yield pool("average_with_padding", [3, 2, 7, 5], include_padding=True, **f)
    yield pool("average_ceil", [3, 2, 6, 6], include_padding=True, ceil=True, **f)
    yield pool("average_ceil_inside", [3, 2, 8], ceil=True, **f)
    yield pool("average_volume", [3, 2, 3, 4, 3], kind="average", kernel=2, stride=1)
    yield pool("average_to_extents", [3, 2, 7, 5], kind="average", output=[3, 4])
    yield pool("average_to_more_extents", [3, 2, 4], kind="average", output=6)
    yield pool("average_of_all", [3, 4, 3, 5], kind="average", output=1)
    yield pool("norm_1", [3, 2, 7], kind="lp", p=1, kernel=3, stride=2)
    yield pool("norm_2", [3, 2, 6, 5], kind="lp", kernel=3, stride=2)


def moving_cases():
    yield case("flatten", layer("Flatten"), [3, 2, 4, 3])
    yield case("flatten_the_end", layer("Flatten", first=2), [3, 2, 4, 3])
    yield case("reshape", layer("Reshape", shape=[2, -1, 3]), [3, 4, 6])
    yield case("permute", layer("Permute", axes=[2, 0, 1]), [3, 2, 4, 3])
    yield case("permute_four", layer("Permute", axes=[1, 3, 2, 0]), [3, 2, 3, 2, 3])
    ends = dict(before=[2, 1], after=[1, 3])
    yield case("pad_constant", layer("Pad", value=-1.5, **ends), [3, 2, 4, 5])
    yield case("pad_reflect", layer("Pad", mode="reflect", **ends), [3, 2, 4, 5])
    yield case("pad_edge", layer("Pad", mode="edge", **ends), [3, 2, 3, 3])
    yield case("pad_wrap", layer("Pad", mode="wrap", **ends), [3, 2, 4, 5])
    yield case("pad_reflect_once", layer("Pad", mode="reflect", before=[3], after=[2]), [3, 2, 4])
    yield case("upsample", layer("Upsample"), [3, 2, 3, 4])
    yield case("upsample_axes", layer("Upsample", factor=[1, 3, 2]), [3, 2, 2, 2, 3])
    yield case("upsample_to_extents", layer("Upsample", output=[5, 3]), [3, 2, 3, 4])
    yield case("upsample_linear", layer("Upsample", mode="linear", factor=3), [3, 2, 5])
    yield case("upsample_bilinear", layer("Upsample", mode="linear"), [3, 2, 3, 4])
    f = dict(mode="linear", align_corners=True)
    yield case("upsample_corners", layer("Upsample", factor=2, **f), [3, 2, 3, 4])
    yield case("upsample_corners_to_extents", layer("Upsample", output=[7, 3], **f), [3, 2, 4, 5])
    yield case("upsample_down", layer("Upsample", mode="linear", output=[3, 2]), [3, 2, 7, 5])
    yield case("upsample_trilinear", layer("Upsample", mode="linear"), [2, 2, 2, 3, 2])
    yield case("pixel_shuffle", layer("PixelShuffle"), [3, 8, 3, 2])
    yield case("pixel_unshuffle", layer("PixelShuffle", factor=3, inverse=True), [3, 2, 6, 3])
    yield case("pixel_shuffle_1", layer("PixelShuffle", factor=3), [3, 6, 4])


FAMILIES = {
    "dense": dense_cases,
    "rows": row_cases,
    "convolution": conv_cases,
    "recurrent": recurrent_cases,
    "attention": attention_cases,
    "softmax": softmax_cases,
    "channels": channel_cases,
    "containers": container_cases,
    "decoders": decoder_cases,
    "pooling": pooling_cases,
    "moving": moving_cases,
}

#!/usr/bin/env python3
"""Model files for tests/convert, written by the official packages, and the values that they hold.

  tools/goldens/convert_cases.py tests/convert/golden
      (needs numpy, ml_dtypes, safetensors, onnx and gguf)

Every file is the same for each run. The network is Dense(5 -> 4, relu), Dense(4 -> 3):

  net.npz                  numpy; a description and float32 arrays by parameter path
  net_T.safetensors        safetensors; a state dict without a description, T is f64, f32, f16, bf16
  net_T.onnx               onnx; Gemm, Relu, Gemm; T is f32, f16, f64
  net_T.npz                numpy; T is f64, f16

The language model is a Llama of one block, width 32, with a byte-level BPE tokenizer of 37
tokens:

  llama.gguf               gguf; a different number type for each matrix
  llama/                   safetensors and JSON; F32, F16 and BF16

expected.safetensors has the values as float32. A name is FILE:PARAMETER, with the path that the
parameter has in Loom. rounded:T:PARAMETER is the first matrix of net.npz, rounded to the type T by
numpy or ml_dtypes. expected.json has the differences of pairs of files, the tokens, and the errors
of the GGUF types.
"""

import json
import sys
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

DESCRIPTION = {
    "loom": 1,
    "input": [5],
    "layers": [
        {"type": "Dense", "in": 5, "out": 4, "activation": "relu"},
        {"type": "Dense", "in": 4, "out": 3},
    ],
}
CELLS = ("(0, 0, 0, 0)", "(0, 0, 1, 0)")
NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
WIDTH, HEADS, KV_HEADS, VOCAB = 32, 2, 1, 37


def network() -> dict[str, np.ndarray]:
    """Parameters by path in float64, with a negative zero, a subnormal half and a large value."""
    rng = np.random.default_rng(38)
    out = {}
    for cell, (cols, rows) in zip(CELLS, ((5, 4), (4, 3))):
        out[f"{cell}/weight"] = rng.standard_normal((rows, cols))
        out[f"{cell}/bias"] = rng.standard_normal(rows)
    out[f"{CELLS[0]}/weight"][0, :4] = (-0.0, 3e-6, 60000.0, 1.0 / 3.0)
    return out


def as_type(value: np.ndarray, name: str) -> np.ndarray:
    return value.astype(NUMPY[name])


def floats(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float32)


def safetensors_bytes(arrays: dict[str, tuple[str, np.ndarray]]) -> bytes:
    return save({name: as_type(v, kind) for name, (kind, v) in arrays.items()}, {"format": "pt"})


def write_npz(path: Path, values: dict[str, np.ndarray], kind: str, described: bool) -> None:
    arrays = {name: as_type(v, kind) for name, v in values.items()}
    if described:
        text = json.dumps(DESCRIPTION).encode()
        arrays = {"loom/network": np.frombuffer(text, np.uint8), **arrays}
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def write_onnx(path: Path, values: dict[str, np.ndarray], kind: str) -> None:
    types = {"f64": TensorProto.DOUBLE, "f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}
    element = types[kind]
    weights = [numpy_helper.from_array(as_type(v, kind), name)
               for name, v in zip(("w0", "b0", "w1", "b1"), values.values())]
    nodes = [helper.make_node("Gemm", ["x", "w0", "b0"], ["h"], transB=1),
             helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "w1", "b1"], ["y"], transB=1)]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", element, ["n", 5])],
                              [helper.make_tensor_value_info("y", element, ["n", 3])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))


def write_networks(folder: Path, expected: dict[str, np.ndarray]) -> None:
    values = network()
    write_npz(folder / "net.npz", values, "f32", True)
    files = {"net.npz": "f32"}
    for kind in ("f64", "f16"):
        write_npz(folder / f"net_{kind}.npz", values, kind, True)
        files[f"net_{kind}.npz"] = kind
    names = dict(zip(values, ("0.weight", "0.bias", "2.weight", "2.bias")))
    for kind in NUMPY:
        tensors = {names[path]: (kind, v) for path, v in values.items()}
        (folder / f"net_{kind}.safetensors").write_bytes(safetensors_bytes(tensors))
        files[f"net_{kind}.safetensors"] = kind
    for kind in ("f64", "f32", "f16"):
        write_onnx(folder / f"net_{kind}.onnx", values, kind)
        files[f"net_{kind}.onnx"] = kind
    for file, kind in files.items():
        for path, v in values.items():
            expected[f"{file}:{path}"] = floats(as_type(v, kind))
    first = f"{CELLS[0]}/weight"
    for kind in NUMPY:
        expected[f"rounded:{kind}:{first}"] = floats(as_type(floats(values[first]), kind))


def paired(rows: np.ndarray, heads: int) -> np.ndarray:
    """The order of q and k rows in a GGUF file of a Llama, as llama.cpp's converter writes it."""
    split = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return split.swapaxes(1, 2).reshape(rows.shape)


# Each matrix of the language model: its names in the folder, in GGUF and in Loom, its shape, and
# its types in GGUF and in the folder.
HEAD_DIM = WIDTH // HEADS
TENSORS = [
    ("embed_tokens.weight", "token_embd.weight", "(0, 0, 0, 0)/weight", (VOCAB, WIDTH), "Q8_0",
     "bf16"),
    ("layers.0.input_layernorm.weight", "blk.0.attn_norm.weight", "(1, 0, 0, 0)/0/gamma", (WIDTH,),
     "F32", "f32"),
    ("layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight", "(1, 0, 0, 0)/1/q", (WIDTH, WIDTH),
     "F16", "f16"),
    ("layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight", "(1, 0, 0, 0)/1/k",
     (KV_HEADS * HEAD_DIM, WIDTH), "BF16", "bf16"),
    ("layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight", "(1, 0, 0, 0)/1/v",
     (KV_HEADS * HEAD_DIM, WIDTH), "F32", "f32"),
    ("layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight", "(1, 0, 0, 0)/1/o",
     (WIDTH, WIDTH), "Q4_0", "f16"),
    ("layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight", "(1, 0, 0, 1)/0/gamma",
     (WIDTH,), "F32", "f32"),
    ("layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight", "(1, 0, 0, 1)/1/gate",
     (WIDTH, WIDTH), "Q4_1", "bf16"),
    ("layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight", "(1, 0, 0, 1)/1/up", (WIDTH, WIDTH),
     "Q5_0", "f16"),
    ("layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight", "(1, 0, 0, 1)/1/down",
     (WIDTH, WIDTH), "Q5_1", "bf16"),
    ("norm.weight", "output_norm.weight", "(2, 0, 0, 0)/gamma", (WIDTH,), "F32", "f32"),
]


# Byte-level BPE writes a space as U+0120.
LETTERS = [*"\u0120abcdefghijklmnopqrstuvwxyz.,"]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 w"]
TOKENS = [*LETTERS, *(m.replace(" ", "") for m in MERGES), "<s>", "</s>", "<pad>"]
SPECIAL = {name: TOKENS.index(name) for name in ("<s>", "</s>", "<pad>")}


def tokenizer_json() -> str:
    return json.dumps({
        "version": "1.0",
        "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for name, i in SPECIAL.items()],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(TOKENS[:-3])},
                  "merges": MERGES},
    })


def write_gguf(path: Path, values: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("golden")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(5000.0)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_vocab_size(VOCAB)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3 if t in SPECIAL else 1 for t in TOKENS])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(SPECIAL["<s>"])
    writer.add_eos_token_id(SPECIAL["</s>"])
    writer.add_pad_token_id(SPECIAL["<pad>"])
    for _, name, loom, _, kind, _ in TENSORS:
        heads = {"q": HEADS, "k": KV_HEADS}.get(loom.rsplit("/", 1)[1])
        value = floats(values[loom])
        number_type = gguf.GGMLQuantizationType[kind]
        data = gguf.quants.quantize(paired(value, heads) if heads else value, number_type)
        writer.add_tensor(name, data, raw_dtype=number_type)
        stored = gguf.quants.quantize(value, number_type)
        expected[f"llama.gguf:{loom}"] = floats(gguf.quants.dequantize(stored, number_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_folder(folder: Path, values: dict[str, np.ndarray],
                 expected: dict[str, np.ndarray]) -> None:
    folder.mkdir(exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": WIDTH, "intermediate_size": WIDTH, "num_hidden_layers": 1,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 5000.0,
        "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "bos_token_id": SPECIAL["<s>"], "eos_token_id": SPECIAL["</s>"],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "tokenizer.json").write_text(tokenizer_json())
    tensors = {f"model.{hf}": (kind, values[loom]) for hf, _, loom, _, _, kind in TENSORS}
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors))
    for _, _, loom, _, _, kind in TENSORS:
        expected[f"llama:{loom}"] = floats(as_type(values[loom], kind))


def difference(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """The facts of `loom diff` about two tensors, computed in float64."""
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    bits = [v.astype(np.float32).ravel().view(np.int32).astype(np.int64) for v in (a, b)]
    order = [np.where(v < 0, -(v & 0x7FFFFFFF), v) for v in bits]
    return {
        "different": int(np.count_nonzero(bits[0] != bits[1])),
        "max_ulp": int(np.max(np.abs(order[0] - order[1]))),
        "max_abs": float(np.max(np.abs(x - y))),
        "relative": float(np.sqrt(np.sum((x - y) ** 2) / np.sum(x * x))),
        "cosine": float(np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))),
    }


def differences(expected: dict[str, np.ndarray]) -> list[dict]:
    rows = []
    for a, b in (("net.npz", "net_f16.npz"), ("net_f32.safetensors", "net_bf16.safetensors"),
                 ("net_f32.onnx", "net_f16.onnx"), ("net_f16.npz", "net_bf16.safetensors"),
                 ("llama", "llama.gguf")):
        for key in [k for k in expected if k.startswith(f"{a}:")]:
            name = key.split(":", 1)[1]
            rows.append({"a": a, "b": b, "name": name,
                         **difference(expected[key], expected[f"{b}:{name}"])})
    return rows


def rms_errors(value: np.ndarray) -> dict[str, float]:
    """The error of `value` in each type that the package can write into a GGUF file."""
    out = {}
    for loom, kind in (("float16", "F16"), ("bfloat16", "BF16"), ("q8_0", "Q8_0"), ("q4_0", "Q4_0"),
                       ("q4_1", "Q4_1"), ("q5_0", "Q5_0"), ("q5_1", "Q5_1")):
        number_type = gguf.GGMLQuantizationType[kind]
        back = gguf.quants.dequantize(gguf.quants.quantize(value, number_type), number_type)
        out[loom] = float(np.sqrt(np.mean((back.astype(np.float64) - value) ** 2)))
    return out


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    expected: dict[str, np.ndarray] = {}
    write_networks(folder, expected)
    rng = np.random.default_rng(2026)
    values = {loom: rng.standard_normal(shape) for _, _, loom, shape, _, _ in TENSORS}
    write_gguf(folder / "llama.gguf", values, expected)
    write_folder(folder / "llama", values, expected)
    (folder / "expected.safetensors").write_bytes(
        save({name: np.ascontiguousarray(v) for name, v in sorted(expected.items())}))
    facts = {"differences": differences(expected), "tokens": TOKENS, "special": SPECIAL,
             "rms": rms_errors(floats(values["(1, 0, 0, 0)/1/v"]))}
    (folder / "expected.json").write_text(json.dumps(facts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

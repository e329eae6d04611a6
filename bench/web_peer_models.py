#!/usr/bin/env python3
"""The models that bench/web_peer.mjs measures: a Llama of 38 million random weights as GGUF, and
networks as ONNX.

  python bench/web_peer_models.py LOOM FOLDER      (a Python with numpy, onnx, onnxruntime)

LOOM is the program. Writes FOLDER/llama-q8_0.gguf, -q4_0.gguf and -f32.gguf, with the tokenizer of
tests/data/stories, and FOLDER/llama/onnx for transformers.js; for each network NAME.onnx, and
dense-int8.onnx as ONNX Runtime quantizes it (weights int8, activations uint8 at run time).
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from web_peer_llama import write_onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]
HIDDEN, INNER, LAYERS, HEADS, KV = 768, 2048, 6, 12, 4


def llama_shapes(vocab):
    yield "model.embed_tokens.weight", (vocab, HIDDEN)
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        width = HIDDEN // HEADS * KV
        for name, shape in (("self_attn.q_proj", (HIDDEN, HIDDEN)),
                            ("self_attn.k_proj", (width, HIDDEN)),
                            ("self_attn.v_proj", (width, HIDDEN)),
                            ("self_attn.o_proj", (HIDDEN, HIDDEN)),
                            ("mlp.gate_proj", (INNER, HIDDEN)), ("mlp.up_proj", (INNER, HIDDEN)),
                            ("mlp.down_proj", (HIDDEN, INNER))):
            yield f"{at}{name}.weight", shape
        yield at + "input_layernorm.weight", (HIDDEN,)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)
    yield "model.norm.weight", (HIDDEN,)


def broken(source):
    """Ids of tokens that are not ASCII text: wllama fails if a reply is not UTF-8."""
    vocab = json.loads((source / "tokenizer.json").read_text())["model"]["vocab"]
    return [i for text, i in vocab.items()
            if not text.replace("\u0120", " ").replace("\u010a", " ").isascii()]


def write_llama(folder):
    """A checkpoint as transformers writes it: the tokenizer of the stories, random weights."""
    source = ROOT / "tests/data/stories"
    folder.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json",
                 "chat_template.jinja"):
        shutil.copy(source / name, folder)
    config = json.loads((source / "config.json").read_text())
    config.update(hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS,
                  num_attention_heads=HEADS, num_key_value_heads=KV, head_dim=HIDDEN // HEADS,
                  dtype="float32")
    (folder / "config.json").write_text(json.dumps(config))
    draw = np.random.default_rng(1)
    header, parts, at = {}, [], 0
    for name, shape in llama_shapes(config["vocab_size"]):
        values = np.ones(shape) if len(shape) == 1 else draw.normal(0, 0.03, shape)
        values = values.astype(np.float32)
        if "embed" in name:
            values[broken(source)] = 0  # the likeliest token has a logit above 0
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [at, at + values.nbytes]}
        parts.append(values.tobytes())
        at += values.nbytes
    head = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(head)) + head)
        out.writelines(parts)


def weight(draw, name, *shape):
    fan = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
    return numpy_helper.from_array((draw.normal(0, 1, shape) / fan**0.5).astype(np.float32), name)


def network(nodes, weights, x, y):
    ends = [helper.make_tensor_value_info(*end) for end in
            (("x", TensorProto.FLOAT, x), ("y", TensorProto.FLOAT, y))]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def dense(*widths):
    draw, nodes, weights, at = np.random.default_rng(2), [], [], "x"
    for i in range(len(widths) - 1):
        last = i == len(widths) - 2
        weights += [weight(draw, f"w{i}", widths[i], widths[i + 1]),
                    numpy_helper.from_array(np.zeros(widths[i + 1], np.float32), f"b{i}")]
        nodes += [helper.make_node("MatMul", [at, f"w{i}"], [f"m{i}"]),
                  helper.make_node("Add", [f"m{i}", f"b{i}"], ["y" if last else f"a{i}"])]
        if not last:
            nodes.append(helper.make_node("Relu", [f"a{i}"], [f"r{i}"]))
        at = f"r{i}"
    return network(nodes, weights, ["n", widths[0]], ["n", widths[-1]])


def conv(channels, filters, side):
    draw = np.random.default_rng(3)
    weights = [weight(draw, "w0", filters, channels, 3, 3),
               weight(draw, "w1", filters, filters, 3, 3)]
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c0"], pads=[1] * 4),
             helper.make_node("Relu", ["c0"], ["r0"]),
             helper.make_node("Conv", ["r0", "w1"], ["y"], pads=[1] * 4)]
    return network(nodes, weights, ["n", channels, side, side],
                   ["n", filters, side, side])


def main():
    loom, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    write_llama(folder / "llama")
    write_onnx(folder / "llama")
    for dtype in ("q8_0", "q4_0", "f32"):
        subprocess.run([loom, "convert", folder / "llama", folder / f"llama-{dtype}.gguf",
                        "--dtype", dtype, "--force", "--quiet"], check=True)
    warnings.simplefilter("ignore")
    for name, model in (("dense", dense(1024, 4096, 4096, 1024)), ("conv", conv(32, 64, 56))):
        onnx.checker.check_model(model)
        onnx.save(model, folder / f"{name}.onnx")
    quantize_dynamic(folder / "dense.onnx", folder / "dense-int8.onnx",
                     weight_type=QuantType.QInt8)


if __name__ == "__main__":
    main()

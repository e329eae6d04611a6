"""A Llama checkpoint as the ONNX graph that transformers.js runs: ids, a mask and caches in; logits
and longer caches out. In f32, of the opset's plain operators, which ONNX Runtime fuses itself.
"""
import json
import pathlib
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def read_checkpoint(folder):
    """Name -> array of a model.safetensors in f32."""
    data = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        begin, end = (8 + size + at for at in entry["data_offsets"])
        out[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return out


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def constant(self, values, dtype=np.int64):
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), f"c{self.count}"))
        return f"c{self.count}"

    def __call__(self, op, *inputs, out=None, **fields):
        self.count += 1
        out = out or f"t{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **fields))
        return out


class Llama:
    """The nodes of a decoder, as `transformers` computes it."""

    def __init__(self, config, weights):
        self.g, self.weights, self.config = Graph(), weights, config
        self.heads, self.kv = config["num_attention_heads"], config["num_key_value_heads"]
        self.width = config["head_dim"]

    def linear(self, x, name):
        return self.g("MatMul", x, self.g.constant(self.weights[name + ".weight"].T, np.float32))

    def norm(self, x, name):
        g = self.g
        square = g("ReduceMean", g("Mul", x, x), axes=[-1], keepdims=1)
        size = g("Sqrt", g("Add", square, g.constant(self.config["rms_norm_eps"], np.float32)))
        scale = g.constant(self.weights[name + ".weight"], np.float32)
        return g("Mul", g("Div", x, size), scale)

    def angles(self):
        theta = self.config.get("rope_theta") or self.config["rope_parameters"]["rope_theta"]
        rates = theta ** -(np.arange(0, self.width, 2) / self.width)
        angle = np.outer(np.arange(2048), np.concatenate([rates, rates]))
        tables = [self.g.constant(of(angle), np.float32) for of in (np.cos, np.sin)]
        one = self.g.constant([1])
        return [self.g("Unsqueeze", self.g("Gather", table, "position_ids"), one)
                for table in tables]

    def turned(self, x):
        g, half, axis = self.g, self.width // 2, self.g.constant([3])
        low = g("Slice", x, g.constant([0]), g.constant([half]), axis)
        high = g("Slice", x, g.constant([half]), g.constant([self.width]), axis)
        other = g("Concat", g("Neg", high), low, axis=3)
        return g("Add", g("Mul", x, self.cos), g("Mul", other, self.sin))

    def split(self, x, heads):
        shape = self.g.constant([0, 0, heads, self.width])
        return self.g("Transpose", self.g("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attention(self, x, at, i):
        g, group = self.g, self.heads // self.kv
        q = self.turned(self.split(self.linear(x, at + "q_proj"), self.heads))
        k = self.turned(self.split(self.linear(x, at + "k_proj"), self.kv))
        v = self.split(self.linear(x, at + "v_proj"), self.kv)
        k = g("Concat", f"past_key_values.{i}.key", k, axis=2, out=f"present.{i}.key")
        v = g("Concat", f"past_key_values.{i}.value", v, axis=2, out=f"present.{i}.value")
        # [batch, kv heads, heads of each, positions, width]: keys and values serve several heads.
        rows = g.constant([0, self.kv, group, -1, self.width])
        q, two = g("Reshape", q, rows), g.constant([2])
        k = g("Transpose", g("Unsqueeze", k, two), perm=[0, 1, 2, 4, 3])
        scores = g("Mul", g("MatMul", q, k), g.constant(self.width ** -0.5, np.float32))
        shares = g("Softmax", g("Add", scores, self.mask), axis=-1)
        mixed = g("MatMul", shares, g("Unsqueeze", v, two))
        mixed = g("Reshape", mixed, g.constant([0, self.heads, -1, self.width]))
        mixed = g("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = g("Reshape", mixed, g.constant([0, 0, self.heads * self.width]))
        return self.linear(mixed, at + "o_proj")

    def inner(self, x, at):
        g, gate = self.g, self.linear(x, at + "gate_proj")
        silu = g("Mul", gate, g("Sigmoid", gate))
        return self.linear(g("Mul", silu, self.linear(x, at + "up_proj")), at + "down_proj")

    def model(self):
        g, layers = self.g, self.config["num_hidden_layers"]
        self.cos, self.sin = self.angles()
        # A position sees those up to its own.
        shape = g("Shape", "attention_mask")
        length = g("Squeeze", g("Slice", shape, g.constant([1]), g.constant([2])))
        keys = g("Range", g.constant(0), length, g.constant(1))
        own = g("Unsqueeze", "position_ids", g.constant([1, 2, 4]))
        never, fine = g.constant(-1e9, np.float32), g.constant(0, np.float32)
        self.mask = g("Where", g("Greater", keys, own), never, fine)
        embedding = g.constant(self.weights["model.embed_tokens.weight"], np.float32)
        x = g("Gather", embedding, "input_ids")
        for i in range(layers):
            at = f"model.layers.{i}."
            y = self.norm(x, at + "input_layernorm")
            x = g("Add", x, self.attention(y, at + "self_attn.", i))
            y = self.norm(x, at + "post_attention_layernorm")
            x = g("Add", x, self.inner(y, at + "mlp."))
        head = g.constant(self.weights["model.embed_tokens.weight"].T, np.float32)
        g("MatMul", self.norm(x, "model.norm"), head, out="logits")
        return self.finished(layers)

    def finished(self, layers):
        def end(name, kind, *shape):
            return helper.make_tensor_value_info(name, kind, list(shape))

        ids, real = TensorProto.INT64, TensorProto.FLOAT
        inputs = [end("input_ids", ids, "b", "s"), end("attention_mask", ids, "b", "t"),
                  end("position_ids", ids, "b", "s")]
        outputs = [end("logits", real, "b", "s", "v")]
        for i in range(layers):
            for what in ("key", "value"):
                past, now = f"past_key_values.{i}.{what}", f"present.{i}.{what}"
                inputs.append(end(past, real, "b", self.kv, "p", self.width))
                outputs.append(end(now, real, "b", self.kv, "t", self.width))
        graph = helper.make_graph(self.g.nodes, "llama", inputs, outputs, self.g.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        return model


def write_onnx(folder):
    """Writes FOLDER/onnx/model.onnx to the checkpoint; transformers.js reads its other files."""
    config = json.loads((folder / "config.json").read_text())
    model = Llama(config, read_checkpoint(folder)).model()
    onnx.checker.check_model(model)
    (folder / "onnx").mkdir(exist_ok=True)
    onnx.save(model, folder / "onnx/model.onnx")


if __name__ == "__main__":
    import sys
    write_onnx(pathlib.Path(sys.argv[1]))

#!/usr/bin/env python3
"""Small models after ONNX Runtime's optimizer and its quantizers, in Loom's evaluator and in ONNX
Runtime: a transformer, a convolutional network, an MLP and an LSTM; optimized (extended), quantized
statically as operators and as pairs of Q and DQ, dynamically, and to weights of 4 and 8 bits.

  onnx_optimized.py --program build/dev/tests/evaluate_runner [--verbose]

Each model names the operators that the tool is known to write into it; a version of ONNX Runtime
that writes none of them is skipped. Exit status 1 if any result is off.
"""

import argparse
import logging
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

from onnx_standard import load_values, run, save_values

logging.disable(logging.WARNING)


class Net:
    """A graph of float values under construction; its input is x."""

    def __init__(self, shape, seed):
        self.g = np.random.default_rng(seed)
        self.shape, self.nodes, self.initializers, self.count = shape, [], [], 0

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def const(self, values):
        name = self.name()
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weights(self, *shape):
        scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.3
        return self.const(self.g.normal(0, scale, shape).astype(np.float32))

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, self.name(), **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x, n, m):
        return self.add("Add", self.add("MatMul", x, self.weights(n, m)), self.weights(m))

    def model(self, output):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "g", [value("x", TensorProto.FLOAT, self.shape)],
                                  [value(output, TensorProto.FLOAT, None)], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        return onnx.shape_inference.infer_shapes(model)


def transformer():
    width, heads, rows = 32, 4, 6
    g = Net([2, rows, width], 1)
    norm = lambda x: g.add("LayerNormalization", x, g.weights(width), g.weights(width), axis=-1,
                           epsilon=1e-5)
    split = g.const(np.asarray([0, 0, heads, width // heads], np.int64))
    joined = g.const(np.asarray([0, 0, width], np.int64))
    by_heads = lambda x, order: g.add("Transpose", g.add("Reshape", x, split), perm=order)
    x = norm("x")
    q, k, v = (by_heads(g.linear(x, width, width), o)
               for o in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = g.add("Div", g.add("MatMul", q, k),
                   g.const(np.float32(np.sqrt(width / heads))))
    y = g.add("Transpose", g.add("MatMul", g.add("Softmax", scores, axis=-1), v),
              perm=[0, 2, 1, 3])
    x = norm(g.add("Add", g.linear(g.add("Reshape", y, joined), width, width), x))
    h = g.linear(x, width, 2 * width)
    erf = g.add("Erf", g.add("Div", h, g.const(np.float32(np.sqrt(2)))))
    half = g.add("Mul", g.add("Mul", h, g.add("Add", erf, g.const(np.float32(1)))),
                 g.const(np.float32(0.5)))
    return g.model(norm(g.add("Add", g.linear(half, 2 * width, width), x)))


def convolutions():
    g = Net([2, 3, 12, 12], 2)
    conv = lambda x, n, m: g.add("Conv", x, g.weights(m, n, 3, 3), g.weights(m), pads=[1] * 4,
                                 kernel_shape=[3, 3])
    a = g.add("Relu", conv("x", 3, 8))
    b = g.add("LeakyRelu", conv(a, 8, 8), alpha=0.2)
    c = g.add("Relu", g.add("Add", conv(b, 8, 8), a))
    d = g.add("Concat", c, g.add("Sigmoid", b), axis=1)
    e = g.add("AveragePool", d, kernel_shape=[2, 2], strides=[2, 2])
    f = g.add("Flatten", g.add("GlobalAveragePool", conv(e, 16, 8)))
    return g.model(g.add("Gemm", f, g.weights(5, 8), g.weights(5), transB=1))


def mlp():
    g = Net([4, 64], 3)
    a = g.add("Relu", g.add("Gemm", "x", g.weights(64, 64), g.weights(64), transB=1))
    b = g.add("Mul", a, g.add("Sigmoid", g.add("Mul", a, g.const(np.float32(1.702)))))
    c = g.add("MatMul", b, g.weights(64, 32))
    d = g.add("MatMul", g.add("Transpose", c, perm=[1, 0]), c)
    return g.model(g.linear(d, 32, 7))


def recurrent():
    g = Net([5, 2, 8], 4)
    y = g.add("LSTM", "x", g.weights(1, 64, 8), g.weights(1, 64, 16), g.weights(1, 128),
              outputs=3, hidden_size=16)
    return g.model(g.add("Squeeze", y[1], g.const(np.asarray([0], np.int64))))


class Reader(quantization.CalibrationDataReader):
    def __init__(self, shape):
        g = np.random.default_rng(5)
        self.rest = [{"x": g.normal(0, 1, shape).astype(np.float32)} for _ in range(4)]

    def get_next(self):
        return self.rest.pop() if self.rest else None


def input_shape(path):
    return [d.dim_value for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]


def optimized(source, to):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = to
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def static(form, signed):
    def quantize(source, to):
        kind = quantization.QuantType.QInt8 if signed else quantization.QuantType.QUInt8
        quantization.quantize_static(source, to, Reader(input_shape(source)), quant_format=form,
                                     activation_type=kind, weight_type=kind)
    return quantize


def dynamic(source, to):
    quantization.quantize_dynamic(source, to, weight_type=quantization.QuantType.QUInt8)


def then_optimized(first):
    def both(source, to):
        first(source, to + ".between")
        optimized(to + ".between", to)
    return both


def weights(bits, symmetric):
    def quantize(source, to):
        from onnxruntime.quantization import matmul_nbits_quantizer as nbits
        made = nbits.MatMulNBitsQuantizer(onnx.load(source), bits=bits, block_size=32,
                                          is_symmetric=symmetric)
        made.process()
        onnx.save(made.model.model, to)
    return quantize


QOPERATOR, QDQ = quantization.QuantFormat.QOperator, quantization.QuantFormat.QDQ
# Model, its treatment, tolerance (of the largest value), operators that are then present.
MODELS = [
    (transformer, "optimized", optimized, 1e-4, "Attention SkipLayerNormalization BiasGelu"),
    (transformer, "dynamic", dynamic, 0.02, "MatMulInteger"),
    (transformer, "dynamic, optimized", then_optimized(dynamic), 0.02,
     "DynamicQuantizeMatMul QAttention"),
    (transformer, "4 bits", weights(4, True), 1e-3, "MatMulNBits"),
    (transformer, "4 bits with zeros", weights(4, False), 1e-3, "MatMulNBits"),
    (convolutions, "optimized", optimized, 1e-4, "FusedConv"),
    (convolutions, "static", static(QOPERATOR, False), 0.03,
     "QLinearConv QLinearAdd QLinearConcat"),
    (convolutions, "static, signed", static(QOPERATOR, True), 0.03, "QLinearConv QLinearSigmoid"),
    (convolutions, "Q and DQ, optimized", then_optimized(static(QDQ, False)), 0.03, "QLinearAdd"),
    (mlp, "optimized", optimized, 1e-4, "FusedGemm QuickGelu FusedMatMul"),
    (mlp, "static", static(QOPERATOR, False), 0.03, "QGemm"),
    (mlp, "dynamic, optimized", then_optimized(dynamic), 0.02, "DynamicQuantizeMatMul"),
    (mlp, "8 bits", weights(8, True), 1e-3, "MatMulNBits"),
    (recurrent, "dynamic", dynamic, 0.02, "DynamicQuantizeLSTM"),
]


def prepared(folder, row):
    """The path of a case, its inputs, the results of ONNX Runtime, and its operators."""
    maker, _, change, _, _ = row
    path = os.path.join(folder, f"{MODELS.index(row)}")
    onnx.save(maker(), path + ".source")
    change(path + ".source", path + ".onnx")
    model = onnx.load(path + ".onnx")
    x = np.random.default_rng(6).normal(0, 1, input_shape(path + ".source")).astype(np.float32)
    save_values([x], path + ".in")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path + ".onnx", options,
                                           providers=["CPUExecutionProvider"])
    return path, session.run(None, {"x": x})[0], {n.op_type for n in model.graph.node}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    right = wrong = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        known = []
        for row in MODELS:
            title = f"{row[0].__name__}, {row[1]}"
            try:
                path, want, operators = prepared(folder, row)
            except Exception as error:  # pylint: disable=broad-except
                print(f"skipped: {title}: {str(error)[:200]}")
                skipped += 1
                continue
            missing = set(row[4].split()) - operators
            if missing:
                print(f"note: {title}: this ONNX Runtime writes no {' '.join(sorted(missing))}")
            known.append((path, title, row[3], want, operators))
        for (path, title, most, want, operators), answer in zip(
                known, run(args.program, [k[0] for k in known])):
            why = answer
            if answer == "ok":
                off = np.abs(load_values(path + ".out")[0] - want).max() / np.abs(want).max()
                why = "" if off <= most else f"off by {off:.2g} of the largest value"
            right, wrong = right + (not why), wrong + bool(why)
            if why or args.verbose:
                verdict = f"wrong: {title}: {why}" if why else f"right: {title}"
                print(f"{verdict} ({' '.join(sorted(operators))})")
    print(f"{right} passed, {wrong} failed, {skipped} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

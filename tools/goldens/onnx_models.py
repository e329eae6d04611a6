#!/usr/bin/env python3
"""Writes small ONNX files as PyTorch exports them, with inputs and the results of PyTorch, to
tests/formats/golden/: NAME.onnx, and onnx.safetensors with NAME/x and NAME/y.

  python tools/goldens/onnx_models.py              (needs torch, onnx, onnxscript, safetensors)
  python tools/goldens/onnx_models.py --out DIR    elsewhere, to compare
  python tools/goldens/onnx_models.py --ops        also print the operators of every file

Both exporters of PyTorch are used: "script" (TorchScript) and "dynamo". Sizes are tiny; weights
come from a fixed seed. Outputs are computed in float64.
"""

import argparse
import collections
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from safetensors.numpy import save_file
from torch import nn

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "bridge" / "golden"
BATCH = 3


class Last(nn.Module):
    """A recurrent net that gives its last state through a Linear."""

    def __init__(self, cell, width, hidden, out):
        super().__init__()
        self.cell = cell(width, hidden, batch_first=True)
        self.out = nn.Linear(hidden, out)

    def forward(self, x):
        y, _ = self.cell(x)
        return self.out(y[:, -1])


class States(nn.Module):
    """All states of two recurrent layers."""

    def __init__(self, cell, width, hidden):
        super().__init__()
        self.one = cell(width, hidden, batch_first=True)
        self.two = cell(hidden, hidden + 1, batch_first=True)

    def forward(self, x):
        return self.two(self.one(x)[0])[0]


class Skip(nn.Module):
    def __init__(self, *inner):
        super().__init__()
        self.inner = nn.Sequential(*inner)

    def forward(self, x):
        return x + self.inner(x)


class Attention(nn.Module):
    """Self-attention from Linear layers and scaled_dot_product_attention."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (
            f(x).view(b, t, self.heads, w // self.heads).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.o(y.transpose(1, 2).reshape(b, t, w))


class Rms(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gamma


class GatedMlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def conv_net():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 4, 3, stride=2, groups=2), nn.SiLU(),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(36, 3))


def residual_net():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
        Skip(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
             nn.Conv2d(4, 4, 1)), nn.ReLU(), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(4, 3))


def decoder():
    return nn.Sequential(
        nn.Embedding(11, 8), Skip(nn.LayerNorm(8), Attention(8, 2, True)),
        Skip(nn.LayerNorm(8), nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8)),
        nn.LayerNorm(8), nn.Linear(8, 11))


# name: (model, input shape of one sample, vocabulary or 0)
MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 7), nn.GELU(),
                                  nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 4),
                                  nn.Softmax(-1)), [6], 0),
    "activations": (lambda: nn.Sequential(
        nn.Linear(4, 4), nn.SiLU(), nn.Linear(4, 4), nn.GELU("tanh"), nn.Linear(4, 4), nn.Mish(),
        nn.Linear(4, 4), nn.Softplus(), nn.Linear(4, 4), nn.ELU(), nn.Linear(4, 4),
        nn.Hardswish(), nn.Linear(4, 4), nn.LeakyReLU(), nn.Linear(4, 4), nn.Sigmoid()), [4], 0),
    "cnn": (conv_net, [2, 8, 8], 0),
    "resnet": (residual_net, [2, 6, 6], 0),
    "cnn1": (lambda: nn.Sequential(nn.Conv1d(2, 3, 3, padding=2, dilation=2), nn.Tanh(),
                                   nn.ConvTranspose1d(3, 2, 4, stride=2, padding=1)), [2, 9], 0),
    "lstm": (lambda: Last(nn.LSTM, 3, 5, 2), [6, 3], 0),
    "gru": (lambda: Last(nn.GRU, 3, 5, 2), [6, 3], 0),
    "rnn": (lambda: States(nn.RNN, 3, 4), [5, 3], 0),
    "layernorm": (lambda: nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.ReLU(),
                                        Skip(nn.Linear(8, 8), nn.ReLU()), nn.ReLU(),
                                        nn.Linear(8, 3)), [5], 0),
    "gated": (lambda: nn.Sequential(Skip(Rms(6), GatedMlp(6, 10)), Rms(6)), [4, 6], 0),
    "decoder": (decoder, [7], 11),
    "batchnorm": (lambda: nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(),
                                        nn.BatchNorm1d(6)), [5], 0),
}
FORMS = [("script", 17), ("dynamo", 18), ("dynamo", 20)]


def randomize(model):
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if p.dtype.is_floating_point:
            low = 0.5 if "var" in name or "gamma" in name else -0.6
            p.data.uniform_(low, low + 1.2)


def export(model, x, form, opset, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "script":
            torch.onnx.export(model, (x,), str(path), opset_version=opset, dynamo=False,
                              input_names=["x"], output_names=["y"],
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
        else:
            torch.onnx.export(model, (x,), str(path), opset_version=opset, dynamo=True,
                              input_names=["x"], output_names=["y"], external_data=False,
                              dynamic_shapes=({0: torch.export.Dim("batch")},), verbose=False)
    strip(path)


def strip(path):
    """Without the traces that exporters leave for debugging."""
    model = onnx.load(path)
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=OUT)
    parser.add_argument("--ops", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, (make, sample, vocab) in MODELS.items():
        for form, opset in FORMS:
            if name == "rnn" and form == "dynamo":
                continue  # written step by step, without an RNN operator
            torch.manual_seed(7)
            model = make().eval()
            randomize(model)
            x = torch.randint(vocab, [BATCH, *sample]) if vocab else torch.randn(BATCH, *sample)
            case = f"{name}_{form}{opset}"
            path = options.out / f"{case}.onnx"
            export(model, x, form, opset, path)
            y = model.double()(x if vocab else x.double())
            tensors[f"{case}/x"] = x.numpy().astype(np.int32 if vocab else np.float32)
            tensors[f"{case}/y"] = np.ascontiguousarray(y.detach().numpy().astype(np.float32))
            if options.ops:
                ops = collections.Counter(n.op_type for n in onnx.load(path).graph.node)
                print(f"{case}: {path.stat().st_size} bytes: {dict(ops)}")
    save_file(tensors, options.out / "onnx.safetensors")
    size = sum(path.stat().st_size for path in options.out.glob("*.onnx"))
    print(f"{len(tensors) // 2} files, {size / 1000:.0f} kB, torch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes small TFLite models as seeds of fuzz/fuzz_tflite.cpp: one of each kind of table, operator
and constant.

tests/outside/tflite_seeds.py fuzz/corpus/tflite      needs ai-edge-litert, flatbuffers and numpy
"""

import pathlib
import sys

import numpy as np

from tflite_file import Model
from tflite_ops import OPERATORS
from tflite_steps import STEPS

WANTED = (
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "TRANSPOSE_CONV",
    "AVERAGE_POOL_2D",
    "FULLY_CONNECTED",
    "ADD",
    "PRELU",
    "MEAN",
    "STRIDED_SLICE",
    "SPLIT_V",
    "PACK",
    "UNPACK",
    "GATHER",
    "ids",
    "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR",
    "SOFTMAX",
    "ARG_MAX",
    "SHAPE",
    "float16",
    "int8 weights",
    "BATCH_MATMUL",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "MIRROR_PAD",
    "q CONV_2D",
    "q ADD",
)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate(WANTED):
        model, r = Model(), np.random.default_rng(100 + i)
        made = STEPS[name](model, r)[0] if name in STEPS else OPERATORS[name](model, r)
        model.outputs = made if isinstance(made, list) else [made]
        (folder / name.lower().replace(" ", "_")).write_bytes(model.bytes())


if __name__ == "__main__":
    main()

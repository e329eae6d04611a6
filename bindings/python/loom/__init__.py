"""Loom: a neural engine. Networks that learn, language models that write, the same bits everywhere.

net = loom.Sequential([loom.Dense(4, 16, activation="relu"), loom.Dense(16, 3)], input=4)
net.fit(x, y, epochs=20)
net.predict(x).argmax(1)
net.save("iris.entity")

llm = loom.LLM("models/stories.entity")
for token in llm.stream("Once upon a time"):
    print(token, end="")
"""

import os
from typing import Any, Union

from . import layers
from ._layer import Layer
from ._library import lib as _lib
from .arrays import Array
from .engine import Engine
from .errors import (
    BadFileError,
    CancelledError,
    InternalError,
    InvalidArgumentError,
    IoError,
    LoomError,
    NotFoundError,
    OutOfMemoryError,
    OutOfRangeError,
    UnsupportedError,
)
from .layers import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTransposed1d,
    ConvTransposed2d,
    ConvTransposed3d,
    Dense,
    Embedding,
    Gru,
    KMeans,
    LayerNorm,
    Lstm,
    MultiHeadAttention,
    Parallel,
    Residual,
    RmsNorm,
    Rnn,
    Softmax,
    SwiGlu,
)
from .llm import LLM, Generation, Token
from .network import Network, Sequential, Session
from .optimizers import (
    Adam,
    AdamW,
    Lbfgs,
    Lion,
    Momentum,
    Nesterov,
    Optimizer,
    RmsProp,
    Schedule,
    Sgd,
)
from .training import Dataset, Epoch, Evaluation, History, Trainer



def load(source: "Union[str, os.PathLike[str], bytes]", **options: Any) -> "Union[Network, LLM]":
    """A network or a language model, whichever the file (or its bytes) holds.

    The options are those of Network.load() or LLM().
    """
    try:
        return Network.load(source, **options)
    except UnsupportedError as error:
        if "language model" not in str(error):
            raise
    return LLM(source, **options)


__version__ = _lib.loom_version().decode()

__all__ = [
    "Adam",
    "AdamW",
    "Array",
    "BadFileError",
    "CancelledError",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTransposed1d",
    "ConvTransposed2d",
    "ConvTransposed3d",
    "Dataset",
    "Dense",
    "Embedding",
    "Engine",
    "Epoch",
    "Evaluation",
    "Generation",
    "Gru",
    "History",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "KMeans",
    "LLM",
    "Layer",
    "LayerNorm",
    "Lbfgs",
    "Lion",
    "LoomError",
    "Lstm",
    "Momentum",
    "MultiHeadAttention",
    "Nesterov",
    "Network",
    "NotFoundError",
    "Optimizer",
    "OutOfMemoryError",
    "OutOfRangeError",
    "Parallel",
    "Residual",
    "RmsNorm",
    "RmsProp",
    "Rnn",
    "Schedule",
    "Sequential",
    "Session",
    "Sgd",
    "Softmax",
    "SwiGlu",
    "Token",
    "Trainer",
    "UnsupportedError",
    "layers",
    "load",
]

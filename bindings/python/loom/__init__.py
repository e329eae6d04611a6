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
from .evolution import Genome, Population, splice
from .graph import Graph
from .layers import *  # noqa: F403  every kind; Sequential is the one of .network
from .llm import LLM, Generation, Token, Tokenizer
from .mesh import Mesh, MeshLink
from .network import Network, Sequential, Session  # type: ignore[assignment]
from .options import (
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    AdamW,
    Adamax,
    Augment,
    Kfac,
    Lamb,
    Lbfgs,
    Lion,
    Momentum,
    Muon,
    NAdam,
    Nesterov,
    Optimizer,
    RAdam,
    RmsProp,
    Schedule,
    Sgd,
    Sophia,
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


def absorb(model: Any, example_inputs: Any = None, **options: Any) -> Any:
    """A model of another framework as a Network, with its proof; see loom.bridge.absorb()."""
    from . import bridge

    return bridge.absorb(model, example_inputs, **options)


def verify_proof(path: "Union[str, os.PathLike[str]]", *, engine: Any = None) -> Any:
    """Repeats the proof in the file of an absorbed model; see loom.bridge.verify_proof()."""
    from . import bridge

    return bridge.verify_proof(path, engine=engine)


__version__ = _lib.loom_version().decode()

__all__ = [
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Array",
    "Augment",
    "BadFileError",
    "CancelledError",
    "Dataset",
    "Engine",
    "Epoch",
    "Evaluation",
    "Generation",
    "Genome",
    "Graph",
    "History",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "Kfac",
    "LLM",
    "Lamb",
    "Layer",
    "Lbfgs",
    "Lion",
    "LoomError",
    "Momentum",
    "Muon",
    "NAdam",
    "Nesterov",
    "Network",
    "NotFoundError",
    "Optimizer",
    "OutOfMemoryError",
    "OutOfRangeError",
    "Population",
    "RAdam",
    "RmsProp",
    "Schedule",
    "Sequential",
    "Session",
    "Sgd",
    "Sophia",
    "Token",
    "Tokenizer",
    "Trainer",
    "UnsupportedError",
    "absorb",
    "layers",
    "load",
    "splice",
    "verify_proof",
]
__all__ += layers.__all__

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
from typing import TYPE_CHECKING, Any, Optional, Union

from . import layers
from ._layer import Layer
from ._library import lib as _lib
from ._loading import load
from ._model import LookupText, Rules, Tokenizer, check_rules, cosine
from .arrays import Array
from .cluster import Clusters, Linkage, kmeans, linkage, linkage_of_distances, silhouette
from .engine import Engine
from .ensemble import (
    complementary_pairs,
    greedy_cover,
    majority_vote,
    soft_vote,
    stack,
    stack_inputs,
)
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
from .evaluation import AdaptationTracker, DeviationMetrics
from .evaluator import Evaluator
from .evolution import Genome, Population, SampleFitness, dna_similarity, splice
from .files import ModelFile, convert, diff, merge, quantize
from .graph import Graph
from .layers import *  # noqa: F403  every kind; Sequential is the one of .network
from .llm import LLM, Generation, Token
from .mesh import Mesh, MeshEpoch, MeshLink, MeshTrainer
from ._sequential import Sequential  # type: ignore[assignment]
from .network import Network
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
from .session import Session
from .search import ArchitectureSearch, DartsSearch
from .telemetry import Telemetry
from .history import Epoch, History
from .training import Dataset, Evaluation, Trainer

if TYPE_CHECKING:
    from .bridge.proof import Proof


def absorb(
    model: Any,
    example_inputs: Any = None,
    *,
    plan_only: bool = False,
    abs_tol: float = 1e-5,
    rel_tol: float = 1e-4,
    fresh_process: bool = True,
    tokenizer: Any = None,
    folder: Optional[str] = None,
    engine: Optional[Engine] = None,
) -> Any:
    """A model of another framework as a Network, with its proof; see loom.bridge.absorb()."""
    from . import bridge

    return bridge.absorb(
        model,
        example_inputs,
        plan_only=plan_only,
        abs_tol=abs_tol,
        rel_tol=rel_tol,
        fresh_process=fresh_process,
        tokenizer=tokenizer,
        folder=folder,
        engine=engine,
    )


def verify_proof(
    path: "Union[str, os.PathLike[str]]", *, engine: Optional[Engine] = None
) -> "Proof":
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
    "AdaptationTracker",
    "ArchitectureSearch",
    "Array",
    "Augment",
    "BadFileError",
    "CancelledError",
    "Clusters",
    "DartsSearch",
    "Dataset",
    "DeviationMetrics",
    "Engine",
    "Epoch",
    "Evaluation",
    "Evaluator",
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
    "Linkage",
    "Lion",
    "LookupText",
    "LoomError",
    "Mesh",
    "MeshEpoch",
    "MeshLink",
    "MeshTrainer",
    "ModelFile",
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
    "Rules",
    "SampleFitness",
    "Schedule",
    "Sequential",
    "Session",
    "Sgd",
    "Sophia",
    "Telemetry",
    "Token",
    "Tokenizer",
    "Trainer",
    "UnsupportedError",
    "absorb",
    "check_rules",
    "complementary_pairs",
    "convert",
    "cosine",
    "diff",
    "dna_similarity",
    "greedy_cover",
    "kmeans",
    "layers",
    "linkage",
    "linkage_of_distances",
    "load",
    "majority_vote",
    "merge",
    "quantize",
    "silhouette",
    "soft_vote",
    "splice",
    "stack",
    "stack_inputs",
    "verify_proof",
]
__all__ += layers.__all__

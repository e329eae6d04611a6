"""Absorbing models of other frameworks, each with its proof.

net = loom.absorb(torch_module, example_inputs=(torch.randn(1, 3, 64, 64),))
net.proof            # what the framework computed, and what the engine does in a fresh process
loom.absorb(model, example_inputs=x, plan_only=True)   # all that has no rule, at once
"""

import os
import sys
from typing import Any, List, Optional

from ..errors import InvalidArgumentError, UnsupportedError
from ..network import Network
from . import transformers
from .files import read_file
from .plan import Plan, Problem, Step, Unabsorbable
from .proof import Proof, prove, verify_proof
from .stream import stream

__all__ = ["Plan", "Problem", "Proof", "Step", "Unabsorbable", "absorb", "stream", "verify_proof"]


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
    engine: Any = None,
) -> Any:
    """A model of another framework as a Network, proven on the example inputs.

    example_inputs: an array, or a tuple of them, in the order of the model's arguments; the first
    axis of each is the batch, and any batch may be asked later. plan_only: returns the Plan, whose
    `problems` are all that has no rule; nothing is built. The engine must agree with the model
    within |a - b| <= abs_tol + rel_tol |b|. It must agree with itself in a fresh process bit for
    bit (`fresh_process`). The Network's `proof` has the results, and its .entity file stores it.
    For a PyTorch module that trains, one step of SGD must change each parameter as it does there.

    Models of LightGBM and XGBoost may be files as well, by their paths: the library reads them.
    Without example_inputs they and estimators of scikit-learn are asked with rows made up here.

    A causal language model of transformers becomes an LLM, by the loader of Hugging Face folders:
    example_inputs are then token ids [1, T], or left out; `tokenizer` is a fast one of its kind,
    without which the LLM takes ids alone; `folder` keeps what is read (config.json,
    model.safetensors, tokenizer.json), for `loom convert` and others. Classes that the loader does
    not know become a Network of ids [1, T], as many as the example has, and logits [1, T, vocab].

    Raises Unabsorbable (an UnsupportedError) with every problem. It raises InvalidArgumentError if
    the inputs or the kind of the model do not fit, and ArithmeticError if the proof fails.
    """
    inputs = _listed(example_inputs)
    if isinstance(model, (str, os.PathLike)):
        model = read_file(os.fspath(model))
    if transformers.is_language_model(model):
        llm = transformers.absorb_language_model(
            model,
            inputs,
            tokenizer=tokenizer,
            folder=folder,
            plan_only=plan_only,
            abs_tol=abs_tol,
            rel_tol=rel_tol,
            fresh_process=fresh_process,
            engine=engine,
        )
        if llm is not None:
            return llm
    elif tokenizer is not None or folder is not None:
        raise InvalidArgumentError("tokenizer and folder are for language models of transformers")
    known = transformers.is_language_model(model)
    planet = transformers.absorb_graph if known else _planet_of(model)
    plan, inputs, expected = planet(model, inputs)
    if plan_only:
        return plan
    if plan.torch is not None:
        plan.torch.find(plan, engine)
    network = _loaded(plan, engine)
    if plan.torch is not None and not plan.torch.holds(network, plan):
        network = _loaded(plan, engine)
    _same_training(plan, network)
    here = "native, engine" + (", gradients" if _learns_the_same(plan, inputs, engine) else "")
    proof = prove(network, inputs, expected, plan.source, abs_tol, rel_tol, fresh_process, here)
    if not proof.passed:
        raise ArithmeticError(f"the engine computes something else than the model: {proof}")
    network.plan = plan
    return network


def _loaded(plan: Any, engine: Any) -> Network:
    return Network.load(plan.serialize(), name=f"{plan.name}.onnx", engine=engine)


def _same_training(plan: Any, network: Any) -> None:
    """Training has to change as many numbers as in the source."""
    wanted, made = plan.source_parameters, network.info["trainable"]
    if wanted is not None and wanted != made:
        raise UnsupportedError(
            f"training would change {made} numbers, in the source {wanted}; it computes with "
            "its parameters in a way that no layer has"
        )


def _learns_the_same(plan: Any, inputs: List[Any], engine: Any) -> bool:
    """Whether one step of training was compared. plan.gradients tells the figures, or why not."""
    if plan.torch is None or not plan.torch.names:
        return False
    from .torch_gradients import compare_gradients

    found = plan.gradients = compare_gradients(plan.torch, lambda: _loaded(plan, engine), inputs)
    if found.compared and not found.held:
        raise ArithmeticError(f"the network learns something else than the model: {found.text}")
    return found.held and found.compared > 0


def _listed(example_inputs: Any) -> List[Any]:
    if example_inputs is None:
        return []
    return list(example_inputs) if isinstance(example_inputs, (tuple, list)) else [example_inputs]


def _planet_of(model: Any) -> Any:
    bases = [c.__module__.split(".")[0] for c in type(model).__mro__]
    if "keras" in bases:
        return _keras
    if "torch" in bases:
        return _torch
    if "lightgbm" in bases:
        return _lightgbm
    if "xgboost" in bases:
        return _xgboost
    if "sklearn" in bases:
        return _sklearn
    if "flax" in bases or ("jax" in sys.modules and callable(model)):
        return _jax
    raise InvalidArgumentError(
        f"{type(model).__module__}.{type(model).__qualname__} is not a model that can be absorbed: "
        "give a torch.nn.Module, a Keras model, a fitted estimator of scikit-learn, LightGBM or "
        "XGBoost, a function of JAX or a module of flax"
    )


def _keras(model: Any, inputs: List[Any]) -> Any:
    from . import keras as rules

    if not inputs:
        raise InvalidArgumentError("a Keras model needs example_inputs, a tuple of arrays")
    return rules.absorb_model(model, inputs)


def _jax(function: Any, inputs: List[Any]) -> Any:
    from . import jax as rules

    if not inputs:
        raise InvalidArgumentError("a function of JAX needs example_inputs, a tuple of arrays")
    return rules.absorb_function(function, inputs)


def _lightgbm(model: Any, inputs: List[Any]) -> Any:
    from . import lightgbm as rules

    return rules.absorb_model(model, inputs)


def _xgboost(model: Any, inputs: List[Any]) -> Any:
    from . import xgboost as rules

    return rules.absorb_model(model, inputs)


def _sklearn(estimator: Any, inputs: List[Any]) -> Any:
    import numpy as np

    from . import sklearn as rules

    plan = rules.plan_of(estimator)
    width = getattr(estimator, "n_features_in_", 1)
    x: Optional[Any] = inputs[0] if inputs else None
    if x is None:
        x = np.random.default_rng(0).normal(size=(64, width))
    if plan.problems:
        return plan, [x], []
    x = np.ascontiguousarray(np.asarray(x), dtype=np.float32)
    if x.ndim != 2 or x.shape[1] != width:
        raise InvalidArgumentError(f"example inputs must be [n, {width}]; got {list(x.shape)}")
    return plan, [x], [rules.native(estimator, x)]


def _torch(module: Any, inputs: List[Any]) -> Any:
    from . import torch as rules

    if not inputs:
        raise InvalidArgumentError("a torch module needs example_inputs, a tuple of tensors")
    return rules.absorb_module(module, tuple(inputs))

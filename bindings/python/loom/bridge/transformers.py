"""Language models of `transformers` by their class: what config and weights say, as an LLM.

The live object is written as a folder of config.json, model.safetensors and tokenizer.json and read
by the loader of Hugging Face folders: that loader knows the architectures, and refuses every field
of a config that it does not follow. Nothing is asked of the own way of transformers to save.
"""

import copy
import ctypes
import json
import os
import struct
import tempfile
from importlib import import_module
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .. import _ffi
from .._library import Callbacks, check, lib
from ..errors import InternalError, InvalidArgumentError, LoomError
from ..llm import LLM
from .plan import Problem, Unabsorbable
from .proof import Proof, ask_fresh, compare, digest

_FRESH = """
import json, sys
import loom
from loom.bridge.proof import digest
from loom.bridge.transformers import all_logits
print(digest([all_logits(loom.LLM(sys.argv[1]), json.loads(sys.argv[2]))]))
"""
# torch -> safetensors.
_DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def is_language_model(model: Any) -> bool:
    """A class of transformers with logits for each token, as its name says."""
    name = type(model).__name__
    kinds = [c.__module__.split(".")[0] for c in type(model).__mro__]
    named = name.endswith(("ForCausalLM", "LMHeadModel"))
    return "transformers" in kinds and named and hasattr(model, "config")


def absorb_graph(model: Any, inputs: List[Any]) -> Any:
    """Plan, inputs and logits of a class that the loader does not know, as PyTorch runs it.

    It takes ids [1, tokens], as many as the example has, and gives logits [1, tokens, vocab].
    """
    from . import torch as rules

    torch: Any = import_module("torch")

    class Logits(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any) -> Any:
            return self.model(input_ids=ids, use_cache=False).logits

    whole = Logits().train(model.training)
    found = rules.absorb_module(whole, (torch.tensor([_ids_of(model, inputs)]),), open_batch=False)
    found[0].name = type(model).__name__
    if found[0].torch is not None:
        found[0].torch.target, found[0].torch.prefix = model, "model."
    return found


def absorb_language_model(
    model: Any,
    inputs: List[Any],
    *,
    tokenizer: Any,
    folder: Optional[str],
    plan_only: bool,
    abs_tol: float,
    rel_tol: float,
    fresh_process: bool,
    engine: Any,
) -> Any:
    """An LLM with its `proof`; with plan_only what has `problems`, as a plan does.

    None: the loader does not know the class, and no tokenizer or folder asks for it.
    """
    ids = _ids_of(model, inputs)
    with tempfile.TemporaryDirectory(prefix="loom_absorb_") as scratch:
        place = scratch if folder is None else folder
        os.makedirs(place, exist_ok=True)
        write_folder(model, place, tokenizer)
        try:
            llm = LLM(place, engine=engine, context=max(len(ids), _context(model)))
        except LoomError as error:
            if "architectures" in str(error) and tokenizer is None and folder is None:
                return None
            problem = Problem("", type(model).__name__, str(error).replace(place + "/", ""))
            if plan_only:
                return _Plan([problem])
            raise Unabsorbable([problem]) from None
        if plan_only:
            return _Plan([])
        wheel = _fresh_hash(place, ids) if fresh_process else None
    llm.proof = _proof_of(model, llm, ids, abs_tol, rel_tol, wheel)
    if not llm.proof.passed:
        raise ArithmeticError(f"the engine computes something else than the model: {llm.proof}")
    return llm


class _Plan:
    """Only the problems of a model that is read in full."""

    def __init__(self, problems: List[Problem]) -> None:
        self.problems = problems


def _context(model: Any) -> int:
    return min(2048, int(getattr(model.config, "max_position_embeddings", 2048)))


def _ids_of(model: Any, inputs: List[Any]) -> List[int]:
    """The tokens of the proof: one row of ids; without any, some of the vocabulary."""
    if not inputs:
        return [int(i * 7919 % model.config.vocab_size) for i in range(1, 17)]
    given = inputs[0].detach().cpu().numpy() if hasattr(inputs[0], "detach") else inputs[0]
    ids = np.asarray(given)
    if ids.ndim == 2 and len(ids) == 1:
        ids = ids[0]
    if len(inputs) != 1 or ids.ndim != 1 or ids.dtype.kind not in "iu" or not ids.size:
        raise InvalidArgumentError(
            "a language model is proven on one row of token ids: give example_inputs of shape "
            f"[1, tokens]; got {[list(np.shape(i)) for i in inputs]}"
        )
    return [int(i) for i in ids]


# ---- the folder ----------------------------------------------------------------------------------


def write_folder(model: Any, folder: str, tokenizer: Any = None) -> None:
    """config.json, generation_config.json, model.safetensors and, with a fast tokenizer,
    tokenizer.json, of the live object."""
    config: Dict[str, Any] = json.loads(model.config.to_json_string(use_diff=False))
    config["architectures"] = [type(model).__name__]
    vocabulary = int(config.get("vocab_size", 0))
    _write_json(folder, "config.json", _without_far_tokens(config, vocabulary))
    if getattr(model, "generation_config", None) is not None:
        generation = json.loads(model.generation_config.to_json_string())
        _write_json(folder, "generation_config.json", _without_far_tokens(generation, vocabulary))
    write_safetensors(os.path.join(folder, "model.safetensors"), _weights(model))
    if tokenizer is None:
        return
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        raise InvalidArgumentError(
            f"{type(tokenizer).__name__} is not a fast tokenizer of transformers: it has no "
            "tokenizer.json"
        )
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
        file.write(fast.to_str())
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, str):
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as file:
            file.write(template)


def _without_far_tokens(config: Dict[str, Any], vocabulary: int) -> Dict[str, Any]:
    """Ids that the class has by default, and a small vocabulary has not, end or begin no text."""
    out = dict(config)
    for key in ("bos_token_id", "eos_token_id"):
        if isinstance(out.get(key), int) and out[key] >= vocabulary:
            out[key] = None
    return out


def _write_json(folder: str, name: str, value: Any) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)


def _weights(model: Any) -> List[Tuple[str, Any]]:
    """Names and tensors; a tied one once, under the name that the model registers first."""
    seen: Dict[Tuple[int, int], str] = {}
    out = []
    for name, tensor in model.state_dict().items():
        key = (tensor.untyped_storage().data_ptr(), tensor.storage_offset())
        if key in seen and tensor.numel():
            continue
        seen[key] = name
        out.append((name, tensor))
    return out


def write_safetensors(path: str, tensors: List[Tuple[str, Any]]) -> None:
    """A tensor at a time, so that nothing is held twice."""
    torch: Any = import_module("torch")
    header: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors:
        kind = str(tensor.dtype).replace("torch.", "")
        if kind not in _DTYPES:
            raise Unabsorbable([Problem(name, kind, "weights are float32, float16 or bfloat16")])
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _DTYPES[kind],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in tensors:
            plain = tensor.detach().cpu().contiguous()
            file.write(plain.view(-1).view(torch.uint8).numpy().tobytes())


# ---- the proof -----------------------------------------------------------------------------------


def all_logits(llm: LLM, ids: List[int]) -> Any:
    """Logits of every position, float32 [tokens, vocab]."""
    rows: List[Any] = []
    callbacks = Callbacks()

    def seen(position: int, logits: Any, count: int) -> None:
        rows.append(np.array(logits[:count], dtype=np.float32))

    sink = callbacks.wrap(_ffi.loom_logits_fn, seen)
    array = (ctypes.c_int32 * len(ids))(*ids)
    with llm._lock:
        session = llm._session.handle
        check(lib.loom_model_session_rewind(session, 0))
        callbacks.check(lib.loom_model_session_feed_all(session, array, len(ids), sink, None))
    return np.stack(rows)


def native_logits(model: Any, ids: List[int]) -> Any:
    """The same of the source, in float32 from the weights as they are rounded."""
    torch: Any = import_module("torch")
    narrow = any(p.dtype != torch.float32 for p in model.parameters())
    asked = copy.deepcopy(model).float() if narrow else model
    training = asked.training
    try:
        asked.eval()
        with torch.no_grad():
            said = asked(torch.tensor([ids], device=next(asked.parameters()).device))
    finally:
        asked.train(training)
    return said.logits[0].detach().cpu().float().numpy()


def _fresh_hash(folder: str, ids: List[int]) -> str:
    return ask_fresh(_FRESH, folder, json.dumps(ids)).strip()


def _proof_of(
    model: Any,
    llm: LLM,
    ids: List[int],
    abs_tol: float,
    rel_tol: float,
    wheel: Optional[str],
) -> Proof:
    transformers: Any = import_module("transformers")
    wanted, got = native_logits(model, ids), all_logits(llm, ids)
    figures = compare(wanted, got, abs_tol, rel_tol)
    hashed = digest([got])
    if wheel is not None and wheel != hashed:
        raise InternalError("the written folder computes other bits in a fresh process")
    report = {
        "source": f"transformers {transformers.__version__}: {type(model).__name__}",
        "rungs": "native, engine" + ("" if wheel is None else ", file, wheel"),
        "abs_tol": abs_tol,
        "rel_tol": rel_tol,
        "outputs": [figures],
        "inputs_sha256": digest([np.array(ids, np.int32)]),
        "expected_sha256": digest([wanted]),
        "outputs_sha256": hashed,
    }
    holds = figures["first_beyond"] < 0
    report["problem"] = "" if holds else f"value {figures['first_beyond']} is beyond the tolerance"
    return Proof({"holds": holds, **report})

"""loom.load(): the object for a file, by its contents."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from ._library import is_bytes
from .engine import Engine
from .errors import InvalidArgumentError, UnsupportedError
from .evaluator import Evaluator
from .llm import LLM
from .network import Network

if TYPE_CHECKING:
    from ._model import Tokenizer

Source = Union[str, "os.PathLike[str]", bytes]
_DATA = (".csv", ".tsv", ".npy", ".idx", ".png", ".jpg", ".jpeg", ".wav", ".flac", ".parquet")


def _kind(source: Source, name: Optional[str]) -> str:
    """The ending of a file, "folder", or "gguf" by its first bytes."""
    if is_bytes(source):
        return "gguf" if bytes(source[:4]) == b"GGUF" else Path(name or "").suffix.lower()[1:]
    path = Path(os.fspath(source))
    if path.is_dir():
        return "folder"
    if path.name == "tokenizer.json":
        return "tokenizer"
    if path.suffix.lower() in _DATA:
        return "data"
    return path.suffix.lower()[1:]


def load(
    source: Source,
    *,
    name: Optional[str] = None,
    dtype: Optional[str] = None,
    engine: Optional[Engine] = None,
    progress: Optional[Callable[[int, int], Any]] = None,
) -> "Union[Network, LLM, Evaluator, Tokenizer]":
    """The object for a file or its bytes.

    A Network for a network (.entity, .json, .onnx, .tflite, .npz, .safetensors). An LLM for a
    language model (.entity, .gguf, a folder of Hugging Face). An Evaluator for a graph of ONNX or
    TFLite that no network can be. A Tokenizer for a tokenizer.json. The classes have further
    options. dtype: None, as stored. progress(done, total) stops by returning False.
    """
    kind = _kind(source, name)
    if kind == "data":
        raise InvalidArgumentError(
            f"{source!s} has data, not a model; read it with loom.Dataset.from_file(), or give "
            "the path to fit() or predict()"
        )
    if kind == "tokenizer":
        from ._model import Tokenizer

        return Tokenizer(source, name=name, engine=engine)
    if kind in ("folder", "gguf"):
        return LLM(source, name=name, dtype=dtype, engine=engine, progress=progress)
    try:
        return Network.load(source, name=name, dtype=dtype, engine=engine, progress=progress)
    except UnsupportedError as error:
        if "language model" in str(error):
            return LLM(source, name=name, dtype=dtype, engine=engine, progress=progress)
        if kind not in ("onnx", "tflite"):
            raise
        try:
            return Evaluator(source, name=name, engine=engine)
        except UnsupportedError:
            raise error from None

"""Files that models of other frameworks are saved in, as the objects those frameworks make."""

from importlib import import_module
from typing import Any

from ..errors import BadFileError, InvalidArgumentError, NotFoundError


def read_file(path: str) -> Any:
    """The booster in a file of LightGBM (text) or XGBoost (JSON, UBJSON), recognized by its first
    bytes.

    The library itself reads it, as a proof needs what it says. Raises NotFoundError where there is
    no such file, InvalidArgumentError where the library is not installed, BadFileError for others.
    """
    try:
        with open(path, "rb") as file:
            begin = file.read(64).lstrip()
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    if begin[:5] in (b"tree\n", b"tree\r"):
        name, called = "lightgbm", "LightGBM"
    elif begin[:1] == b"{":
        name, called = "xgboost", "XGBoost"
    else:
        raise BadFileError(
            f"{path}: no model of LightGBM (text) or XGBoost (JSON, UBJSON); other files are for "
            "loom.Network.load, and models of frameworks are given as objects"
        )
    try:
        import_module(name)
    except ImportError:
        raise InvalidArgumentError(
            f"{path} is a model of {called}, whose predictions the proof needs: pip install {name}"
        ) from None
    rules = import_module(f"{__package__}.{name}")
    return rules.load_file(path)

"""Sequential: a network of layers one after the other, with widths that follow from its input."""

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import dataclasses

from ._layer import Layer
from .engine import Engine
from .errors import BadFileError, InvalidArgumentError
from .network import Network

_SAME_INPUT = ("Parallel",)  # containers whose children all read the input
_CHAINS = ("Sequential", "Residual")  # containers whose children follow each other


def _described(layers: Sequence[Dict[str, Any]], shape: Sequence[int]) -> Dict[str, Any]:
    cells = [{"at": [0, 0, i, 0], **layer} for i, layer in enumerate(layers)]
    return {"loom": 1, "grid": [1, 1, max(len(cells), 1), 1], "input": list(shape), "cells": cells}


def _made(
    layers: Sequence[Layer],
    shape: Sequence[int],
    *,
    dtype: Optional[str] = None,
    seed: Optional[int] = None,
    engine: Optional[Engine] = None,
) -> Network:
    description = _described([layer.description() for layer in layers], shape)
    try:
        return Network.from_json(description, dtype=dtype, seed=seed, engine=engine)
    except BadFileError as error:
        # There is no file here: the layers do not fit, or one has a value out of range.
        raise InvalidArgumentError(str(error).replace("the description: ", "", 1)) from None


def _output(layer: Layer, shape: Tuple[int, ...]) -> Tuple[int, ...]:
    with _made([layer], shape) as alone:
        found: Tuple[int, ...] = alone.info["output"]
        return found


def _settled(layers: Sequence[Layer], shape: Tuple[int, ...]) -> List[Layer]:
    """The layers with all widths, for samples of this shape."""
    out: List[Layer] = []
    last = max((i for i, layer in enumerate(layers) if layer._is_open), default=-1)
    for i, layer in enumerate(layers):
        if layer._is_open:
            layer = _with_children(layer._after(shape), shape)
        out.append(layer)
        if i < last:
            shape = _output(layer, shape)
    return out


def _with_children(layer: Layer, shape: Tuple[int, ...]) -> Layer:
    """The layer with the widths of its children, which are read in the order of the container."""
    if not layer._is_open:
        return layer
    container: Any = layer
    if layer.TYPE in _CHAINS:
        children = _settled(container.children, shape)
    elif layer.TYPE in _SAME_INPUT:
        children = [_settled([child], shape)[0] for child in container.children]
    else:
        raise InvalidArgumentError(
            f"{type(layer).__name__}: the widths of its children are not known; give them"
        )
    made: Layer = dataclasses.replace(container, children=tuple(children))
    return made


def Sequential(
    layers: Sequence[Layer],
    *,
    input: Union[int, Sequence[int], None] = None,
    seed: int = 1,
    dtype: Optional[str] = None,
    engine: Optional[Engine] = None,
) -> Network:
    """A network of layers one after the other. `input`: shape of one sample; ids: (T,).

    Without `input`, the first fit() or predict() gives it. Widths of inputs may be left out:
    Dense(32) reads the output of the layer before. Dense reads samples of three or more extents
    as one row.
    """
    kept = list(layers)

    def make(shape: Sequence[int]) -> Network:
        sample = tuple(int(extent) for extent in shape)
        return _made(_settled(kept, sample), sample, dtype=dtype, seed=seed, engine=engine)

    if input is not None:
        return make([input] if isinstance(input, int) else input)
    return Network._pending(make)


__all__ = ["Sequential"]

"""Ensembles: several models that answer together: votes, stacking, and which of them complement.

loom.soft_vote([pa, pb], weights=[0.6, 0.4])
loom.majority_vote([[0, 1, 1], [0, 1, 2], [2, 1, 2]])  # 0, 1, 2
judge = loom.stack([pa, pb], labels)
judge.predict(loom.stack_inputs([pa, pb]))
"""

import ctypes
from dataclasses import dataclass
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from . import _ffi
from ._library import handle_from, lib
from ._options import Options
from .arrays import as_tensor, numpy_module, result
from .cluster import _labels
from .engine import Engine, engine_handle
from .network import Network
from .options import STACK_OPTIONS


class Pair(NamedTuple):
    """Two models that complement each other."""

    a: int
    b: int
    coverage: float  # share of samples that at least one of them has right
    overlap: float  # share that both have right


@dataclass(frozen=True)
class Cover:
    """Few models that together cover what all of them do."""

    models: Tuple[int, ...]  # in the order taken
    coverage: Tuple[float, ...]  # of the samples, after each


def _tensors(shares: Sequence[Any]) -> Tuple[Any, int, List[Any]]:
    """As C takes a list of tensors; the last part keeps their memory."""
    kept = [as_tensor(share) for share in shares]
    return (_ffi.loom_tensor * len(kept))(*(k.tensor for k in kept)), len(kept), kept


def _weights(weights: Optional[Sequence[float]], count: int) -> Any:
    if weights is None:
        return None
    if len(weights) != count:
        raise ValueError(f"{len(weights)} weights for {count} models; give one each")
    return (ctypes.c_double * count)(*map(float, weights))


def _masks(masks: Any) -> Any:
    numpy = numpy_module()  # whose booleans are not numbers
    return as_tensor(masks if numpy is None else numpy.asarray(masks).astype("uint8"))


def _rows(handle: int) -> List[List[float]]:
    found: List[List[float]] = result(handle).tolist()
    return found


def complementary_pairs(masks: Any, *, least: float = 0.0) -> List[Pair]:
    """Pairs of models that cover at least `least` of the samples, the best coverage first.

    masks: [models, samples], true where a model was right.
    """
    tensor = _masks(masks)
    rows = _rows(handle_from(lib.loom_complementary_pairs, tensor.pointer, least))
    return [Pair(int(a), int(b), coverage, overlap) for a, b, coverage, overlap in rows]


def greedy_cover(masks: Any, *, most: int = 0) -> Cover:
    """Few models that together cover what all do: always the one that adds most.

    masks: [models, samples], true where a model was right. most: 0, no limit.
    """
    rows = _rows(handle_from(lib.loom_greedy_cover, _masks(masks).pointer, most))
    return Cover(tuple(int(model) for model, _ in rows), tuple(share for _, share in rows))


def majority_vote(said: Any, *, weights: Optional[Sequence[float]] = None) -> Any:
    """The class of each sample with the largest sum of weights, of classes [models, samples]."""
    numpy = numpy_module()
    if numpy is not None and numpy.asarray(said).dtype.kind in "iu":
        said = numpy.asarray(said).astype("int64")
    tensor = as_tensor(said)
    return result(
        handle_from(lib.loom_majority_vote, tensor.pointer, _weights(weights, len(said)))
    )


def soft_vote(shares: Sequence[Any], *, weights: Optional[Sequence[float]] = None) -> Any:
    """The weighted mean of the models' probabilities, all of one shape."""
    tensors, count, _kept = _tensors(shares)
    return result(handle_from(lib.loom_soft_vote, tensors, count, _weights(weights, count)))


def stack_inputs(shares: Sequence[Any]) -> Any:
    """The models' answers [n, classes] side by side, as stack() wants them."""
    tensors, count, _kept = _tensors(shares)
    return result(handle_from(lib.loom_stack_inputs, tensors, count))


def stack(
    shares: Sequence[Any],
    labels: Any,
    *,
    # options: generated from api/options, StackOptions
    seed: int = 1,
    rounds: int = 200,
    weight_decay: float = 0.001,
    # end of options
    engine: Optional[Engine] = None,
) -> Network:
    """Stacking (Wolpert, 1992): a Dense layer over the models' answers, trained for `labels`.

    It takes what stack_inputs() makes. The models should not have been trained with these samples.

    Options, from api/options, StackOptions:

    seed: Seed of the starting weights.
    rounds: Rounds of L-BFGS over all samples; 1 or more.
    weight_decay: Keeps a judge of few samples from trusting chance; 0 or more.
    """
    given = dict(locals())
    tensors, count, _kept = _tensors(shares)
    classes, samples = _labels(labels)
    on = engine_handle(engine)
    with Options("stack", {name: given[name] for name in STACK_OPTIONS}) as options:
        call = lib.loom_stack
        return Network(
            handle_from(call, on, tensors, count, classes, samples, options.handle)
        )

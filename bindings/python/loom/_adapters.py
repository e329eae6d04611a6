"""Adapters of a network: small matrices that are trained in place of its weights."""

import ctypes
from typing import Sequence, TypeVar, Union

from . import _ffi
from ._library import Handle, encoded, handle_from, lib, sized
from ._sampling import c_texts


Self = TypeVar("Self", bound="Adapted")


class Adapted(Handle):
    """Methods of Network."""

    def with_adapter(
        self: Self,
        weights: Union[str, Sequence[str]] = (),
        *,
        # options: generated from api/options, AdapterOptions but weights
        name: str = "lora",
        rank: int = 8,
        alpha: float = 16.0,
        rank_stabilized: bool = False,
        dropout: float = 0.0,
        seed: int = 1,
        # end of options
    ) -> Self:
        """A copy with an adapter of each weight, which is trained in place of it (LoRA).

        weights: names below a cell, such as "weight" or "0/q", with * and ?. Without one, all that
        can have an adapter. They are frozen; outputs are the same until the adapter is trained.

        Options, from api/options, AdapterOptions but weights:

        name: Name of the adapter: letters, digits, - and _.
        rank: Rows of A and columns of B; 1 to 65536.
        alpha: The product is multiplied by alpha / rank.
        rank_stabilized: It is multiplied by alpha / sqrt(rank) instead (rsLoRA).
        dropout: Probability that training leaves out a value of the input of A; from 0, below 1.
        seed: Seed of A; B is zero.
        """
        names = [weights] if isinstance(weights, str) else list(weights)
        options = sized(
            _ffi.loom_adapter_options,
            weights=c_texts(names),
            weights_count=len(names),
            name=encoded(name),
            has_rank=1,
            rank=rank,
            has_alpha=1,
            alpha=alpha,
            rank_stabilized=rank_stabilized,
            dropout=dropout,
            has_seed=1,
            seed=seed,
        )
        return type(self)(
            handle_from(lib.loom_network_with_adapter, self.handle, ctypes.byref(options))
        )

    def merge_adapters(self: Self) -> Self:
        """A copy whose adapters were added to their weights."""
        return type(self)(handle_from(lib.loom_network_merge_adapters, self.handle))

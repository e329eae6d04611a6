"""Architecture search: by gradients (DARTS), and by evolution of whole networks.

search = loom.DartsSearch(net, loom.Dataset(x, y), order=2, epochs=10)
while search.epoch < search.epochs:
    search.step()
search.found().save("found.json")
"""

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar

from . import _ffi
from ._library import Callbacks, Handle, check, encoded, handle_from, lib, text_from
from ._options import Options
from .arrays import result
from .engine import Engine, engine_handle
from .network import Network, Path
from .options import ARCHITECTURES_OPTIONS, DARTS_OPTIONS, NormalizeName
from .training import Dataset

_S = TypeVar("_S", bound="_Search")
Progress = Callable[[int, int], Any]


class _Search(Handle):
    """The common base of both kinds of searches."""

    _NAME = ""

    @classmethod
    def load(cls: Type[_S], path: Path, data: Dataset) -> _S:
        """A search that save() wrote, with its data. It goes on with the same bits."""
        made = cls.__new__(cls)
        Handle.__init__(made, handle_from(cls._call("load"), encoded(path), data.handle))
        return made

    @classmethod
    def _call(cls, name: str) -> Any:
        return getattr(lib, f"loom_{cls._NAME}_{name}")

    def save(self, path: Path) -> None:
        """The whole state. A file that is there is replaced as a whole or not at all."""
        check(self._call("save")(self.handle, encoded(path)))

    def _told(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(text_from(self._call("json"), self.handle))
        return found

    def _step(self, progress: Optional[Progress], *before: Any) -> None:
        callbacks = Callbacks()
        seen = callbacks.wrap(_ffi.loom_progress_fn, progress)
        callbacks.check(callbacks.run(self._call("step"), self.handle, *before, seen, None))


class MixedCell(NamedTuple):
    """A cell that the search decides."""

    cell: int  # its place in the row
    branches: Tuple[str, ...]  # "conv 5x5 relu"; the first is what the network had
    weights: Tuple[float, ...]  # they sum to 1


class SearchEpoch(NamedTuple):
    """An epoch of a search by gradients."""

    epoch: int  # from 1
    train_loss: float
    validation_loss: float
    accuracy: Optional[float]  # of labels, of the validation part
    weights: Tuple[Tuple[float, ...], ...]  # per cell and branch


def _search_epoch(values: Dict[str, Any]) -> SearchEpoch:
    weights = tuple(tuple(cell) for cell in values.pop("weights"))
    return SearchEpoch(weights=weights, **values)


class DartsSearch(_Search):
    """Cells become mixtures of alternatives; then each keeps its best (Liu et al., 2019).

    network: its cells follow each other. Parallel cells with combine "mixed" are decided. If there
    is none, every Dense and two-dimensional Conv becomes a mixture of its possible replacements.
    Equal options and data give equal bits.

    Options, from api/options, DartsOptions:

    order: 1: the shares follow the validation loss of the weights as they are. 2: of the weights
        after their next step, by the finite difference of the paper; about four times the work; 1
        to 2.
    epochs: Epochs of the search; 1 or more.
    batch: Size of a batch; 1 or more samples.
    seed: Seed of weights and of the order of samples.
    rate: Learning rate of the weights: momentum 0.9, falling along a half cosine; 0 or more.
    decay: Decay of the weights; 0 or more.
    alpha_rate: Learning rate of the architecture parameters: Adam; 0 or more.
    alpha_decay: Decay of the architecture parameters; 0 or more.
    validation: Share of the samples that the architecture parameters learn from; between 0 and 1.
    normalize: How inputs are shifted and scaled.
    """

    _FREE = "loom_darts_search_free"
    _NAME = "darts_search"

    def __init__(
        self,
        network: Network,
        data: Dataset,
        *,
        # options: generated from api/options, DartsOptions
        order: int = 2,
        epochs: int = 10,
        batch: int = 64,
        seed: int = 1,
        rate: float = 0.025,
        decay: float = 0.0003,
        alpha_rate: float = 0.01,
        alpha_decay: float = 0.001,
        validation: float = 0.5,
        normalize: NormalizeName = "standard",
        # end of options
    ) -> None:
        given = dict(locals())
        with Options("darts", {name: given[name] for name in DARTS_OPTIONS}) as options:
            call = self._call("create")
            super().__init__(handle_from(call, network.handle, data.handle, options.handle))

    def step(self, *, progress: Optional[Progress] = None) -> SearchEpoch:
        """One epoch. progress(done, total): after each step; False stops with CancelledError."""
        self._step(progress)
        return self.history[-1]

    @property
    def epoch(self) -> int:
        """Epochs that are done."""
        return int(self._told()["epoch"])

    @property
    def epochs(self) -> int:
        return int(self._told()["epochs"])

    @property
    def seed_parameters(self) -> int:
        """Parameters of the network before it was mixed; 0 if it was mixed already."""
        return int(self._told()["seed_parameters"])

    @property
    def history(self) -> List[SearchEpoch]:
        return [_search_epoch(values) for values in self._told()["history"]]

    @property
    def cells(self) -> List[MixedCell]:
        return [
            MixedCell(c["cell"], tuple(c["branches"]), tuple(c["weights"]))
            for c in self._told()["cells"]
        ]

    def found(self, *, max_parameters: int = 0) -> Network:
        """The network where every cell keeps its branch, with at most so many parameters; 0: any.

        Its weights are those of the search, to be trained on or anew.
        """
        call = lib.loom_darts_search_found
        return Network(handle_from(call, self.handle, max_parameters))

    def choice(self, *, max_parameters: int = 0) -> List[int]:
        """The branches of found(), per cell."""
        call = lib.loom_darts_search_choice
        found: List[int] = result(handle_from(call, self.handle, max_parameters)).tolist()
        return found


class Member(NamedTuple):
    """A network of an evolution."""

    id: int
    parent: int  # -1 if it has none
    other: int
    born: int  # generation
    birth: str  # "widen cell 0: 32 to 41 units"
    form: str  # "784-41 relu-10"
    accuracy: float
    loss: float
    parameters: int
    bytes: int
    seconds: float  # 0 if "time" is not an objective


class SearchGeneration(NamedTuple):
    """A generation of whole networks."""

    generation: int  # the first is 0
    evaluated: int  # networks that were trained
    rejected: int  # changes that could not be made
    front: int
    best_accuracy: float
    best_loss: float
    least_parameters: int


class ArchitectureSearch(_Search):
    """Evolution of whole networks: layers, widths, connections, number types.

    seed_network: cells that follow each other; all begin with its weights. Equal options and data
    give equal bits.

    Options, from api/options, ArchitectureOptions:

    population: Size of a generation; 2 or more networks.
    seed: Seed of all that is drawn.
    objectives: Aims of the search: accuracy, loss: of samples that are held out; parameters; bytes:
        packed; time: seconds to answer one sample.
    epochs: Epochs that each network is trained; 1 or more.
    batch: Size of a batch; 1 or more samples.
    rate: Learning rate of Adam, falling to 0 along a half cosine; 0 or more.
    validation: Share of the samples that is held out; between 0 and 1.
    normalize: How inputs are shifted and scaled.
    most_parameters: Largest number of parameters; 0 disables the limit; 0 or more.
    cross: Share of children that have two parents; 0 to 1.
    retype: Cells may change their number type: float32, bf16, int8, int4.
    fresh: Networks are trained from new weights, not from those at birth.
    """

    _FREE = "loom_architecture_search_free"
    _NAME = "architecture_search"

    def __init__(
        self,
        seed_network: Network,
        data: Dataset,
        *,
        # options: generated from api/options, ArchitectureOptions
        population: int = 12,
        seed: int = 1,
        objectives: Sequence[str] = ("accuracy", "parameters"),
        epochs: int = 3,
        batch: int = 32,
        rate: float = 0.002,
        validation: float = 0.25,
        normalize: NormalizeName = "standard",
        most_parameters: int = 0,
        cross: float = 0.3,
        retype: bool = False,
        fresh: bool = False,
        # end of options
    ) -> None:
        given = dict(locals())
        values = {name: given[name] for name in ARCHITECTURES_OPTIONS}
        with Options("architectures", values) as options:
            call = self._call("create")
            super().__init__(handle_from(call, seed_network.handle, data.handle, options.handle))

    def step(self, *, threads: int = 0, progress: Optional[Progress] = None) -> SearchGeneration:
        """A generation: children are made, trained and scored.

        threads: networks that train at a time; 0: all cores. progress(done, total): after each
        network; False stops with CancelledError, and the search is as it was.
        """
        self._step(progress, threads)
        return self.history[-1]

    @property
    def history(self) -> List[SearchGeneration]:
        return [SearchGeneration(**values) for values in self._told()["history"]]

    @property
    def members(self) -> List[Member]:
        """The best first."""
        return [Member(**values) for values in self._told()["members"]]

    @property
    def front(self) -> List[Member]:
        """Those that no other beats in all objectives, by the first of these."""
        return [Member(**values) for values in self._told()["front"]]

    @property
    def objectives(self) -> List[str]:
        return list(self._told()["objectives"])

    @property
    def seed(self) -> Member:
        """The network that it began with, trained as the others."""
        return Member(**self._told()["seed"])

    def network(self, member: int, *, engine: Optional[Engine] = None) -> Network:
        """A member by its id, with its trained weights."""
        call = lib.loom_architecture_search_network
        return Network(handle_from(call, self.handle, member, engine_handle(engine)))

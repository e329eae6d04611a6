"""Evolution: populations that grow topologies and weights, how alike networks are, children of two.

population = loom.Population(2, 1, size=100, seed=7)
for _ in range(100):
    outputs = population.run(x)  # [size, rows, outputs]
    population.tell([score(y) for y in outputs])
population.best().network().save("best.entity")
"""

import ctypes
import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _ffi
from ._library import Handle, check, encoded, handle_from, lib, number_of, report, sized, text_from
from ._options import Options
from .arrays import as_tensor, result
from .engine import Engine, engine_handle
from .network import Network, Path
from .options import NEAT_OPTIONS, ActivationName, BlendLawName, NormalizeName, SpliceModeName
from .training import Dataset


class Genome(Handle):
    """One individual, with the memory of its own run. It outlives its population."""

    _FREE = "loom_genome_free"

    def _info(self) -> Any:
        return report(_ffi.loom_genome_info, lib.loom_genome_get_info, self.handle)

    @property
    def inputs(self) -> int:
        return int(self._info().inputs)

    @property
    def outputs(self) -> int:
        return int(self._info().outputs)

    @property
    def hidden(self) -> int:
        """Nodes between inputs and outputs."""
        return int(self._info().hidden)

    @property
    def connections(self) -> int:
        """Those that are enabled."""
        return int(self._info().connections)

    @property
    def recurrent(self) -> bool:
        return bool(self._info().recurrent)

    def run(self, x: Any) -> Any:
        """Rows [rows, inputs] to float32 [rows, outputs].

        A recurrent genome goes on from the last call.
        """
        return result(handle_from(lib.loom_genome_run, self.handle, as_tensor(x).pointer))

    def reset(self) -> None:
        """A recurrent genome begins anew."""
        check(lib.loom_genome_reset(self.handle))

    def network(self, *, engine: Optional[Engine] = None) -> Network:
        """The same function as Dense layers, with the same bits.

        UnsupportedError: the genome is recurrent.
        """
        made = handle_from(lib.loom_genome_network, self.handle, engine_handle(engine))
        return Network(made)

    def json(self) -> Dict[str, Any]:
        """Nodes and connections: all that it takes to run it elsewhere (docs/evolution.md)."""
        found: Dict[str, Any] = json.loads(text_from(lib.loom_genome_json, self.handle))
        return found

    def __repr__(self) -> str:
        if self.closed:
            return "<loom.Genome, closed>"
        kind = ", recurrent" if self.recurrent else ""
        nodes = f"{self.inputs} -> {self.hidden} -> {self.outputs}"
        return f"<loom.Genome {nodes}, {self.connections} connections{kind}>"


@dataclass(frozen=True)
class Generation:
    """A generation whose fitness was reported."""

    generation: int  # the first is 0
    evaluations: int  # with this generation's
    best: float
    mean: float
    worst: float
    failed: int  # members whose fitness is not finite
    hidden: int  # nodes of its best
    connections: int  # of its best
    species: int


class Population(Handle):
    """Genomes of one generation by NEAT: run all of them, then tell how fit each is.

    inputs, outputs: numbers that a genome takes and gives. size: genomes of a generation. Equal
    options and fitness give equal bits, whatever the threads.

    Options, from api/options, NeatOptions but inputs, outputs, population:

    seed: Seed of all that is drawn.
    recurrent: Connections may close cycles. All nodes fire at once, on values of the step before.
    connected: The first genomes join every input to every output; else they have no connections.
    output: Activation of the outputs.
    hidden: Activations of hidden nodes; a new node draws one of them.
    slope: A node is activation(slope x sum); 0 to 1e6.
    add_node: Probability that a child has a new node; 0 to 1.
    add_connection: Probability that a child has a new connection; 0 to 1.
    change_weights: Probability that a child without a new gene has other weights; 0 to 1.
    new_weight: Probability that a weight that changes is drawn anew, and not moved; 0 to 1.
    weight_step: Largest change of a weight; new ones are within it; 0 to 1e6.
    weight_limit: No weight is moved beyond it; 0 to 1e6.
    enable: Probability that a connection that was disabled comes back; 0 to 1.
    change_activation: Probability that a hidden node has another activation; 0 to 1.
    excess: Weight of excess genes in the distance of genomes; 0 to 1e6.
    disjoint: Weight of disjoint genes in the distance of genomes; 0 to 1e6.
    weight_difference: Weight of differences of weights in the distance of genomes; 0 to 1e6.
    threshold: Distance up to which genomes are of one species; 0 to 1e6.
    survivors: Share of a species that has children; 0 to 1.
    patience: A species ends after so long without a rise; 1 to 2147483647 generations.
    crisis: After each such time without a rise only the two best species go on; 1 to 2147483647
        generations.
    alone: Share of children with one parent; 0 to 1.
    between: Share of the others whose parents are of two species; 0 to 1.
    crossed_only: Share of children of two parents that are not changed besides; 0 to 1.
    """

    _FREE = "loom_population_free"

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        size: int = 150,
        # options: generated from api/options, NeatOptions but inputs, outputs, population
        seed: int = 1,
        recurrent: bool = False,
        connected: bool = True,
        output: ActivationName = "sigmoid",
        hidden: Union[ActivationName, Sequence[ActivationName]] = ("sigmoid",),
        slope: float = 4.9,
        add_node: float = 0.03,
        add_connection: float = 0.3,
        change_weights: float = 0.8,
        new_weight: float = 0.1,
        weight_step: float = 2.5,
        weight_limit: float = 8.0,
        enable: float = 0.0,
        change_activation: float = 0.0,
        excess: float = 1.0,
        disjoint: float = 1.0,
        weight_difference: float = 0.4,
        threshold: float = 2.0,
        survivors: float = 0.2,
        patience: int = 15,
        crisis: int = 20,
        alone: float = 0.25,
        between: float = 0.001,
        crossed_only: float = 0.2,
        # end of options
    ) -> None:
        given = {**locals(), "population": size}
        with Options("neat", {name: given[name] for name in NEAT_OPTIONS}) as options:
            super().__init__(handle_from(lib.loom_population_create_with, options.handle))

    @classmethod
    def load(cls, path: Path) -> "Population":
        """A population that save() wrote. It goes on with the same bits."""
        made = cls.__new__(cls)
        Handle.__init__(made, handle_from(lib.loom_population_load, encoded(path)))
        return made

    def save(self, path: Path) -> None:
        """The whole state as JSON. A file that is there is replaced as a whole or not at all."""
        check(lib.loom_population_save(self.handle, encoded(path)))

    def _info(self) -> Any:
        return report(_ffi.loom_population_info, lib.loom_population_get_info, self.handle)

    def __len__(self) -> int:
        return int(self._info().size)

    @property
    def inputs(self) -> int:
        return int(self._info().inputs)

    @property
    def outputs(self) -> int:
        return int(self._info().outputs)

    @property
    def recurrent(self) -> bool:
        return bool(self._info().recurrent)

    @property
    def seed(self) -> int:
        return int(self._info().seed)

    @property
    def generation(self) -> int:
        """Generations reported so far."""
        return int(self._info().generation)

    @property
    def best_fitness(self) -> float:
        """The best of all reported generations; minus infinity before the first."""
        return float(self._info().best_fitness)

    def run(self, x: Any) -> Any:
        """The outputs of each genome for each row of x [rows, inputs]: float32 [size, rows,
        outputs].

        The rows of a recurrent population are steps, from a new beginning.
        """
        return result(handle_from(lib.loom_population_run, self.handle, as_tensor(x).pointer))

    def tell(self, fitness: Sequence[float]) -> None:
        """The fitness of each genome, higher is better: the next generation takes their place.

        A number that is not finite is below all others.
        """
        numbers = [float(value) for value in fitness]
        check(
            lib.loom_population_tell(
                self.handle, (ctypes.c_double * len(numbers))(*numbers), len(numbers)
            )
        )

    def ask(self) -> List[Genome]:
        """All genomes of this generation, for fitness that is found by hand."""
        return [self[i] for i in range(len(self))]

    def __getitem__(self, index: int) -> Genome:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"genome {index} of {len(self)}")
        return Genome(handle_from(lib.loom_population_genome, self.handle, place))

    def best(self) -> Genome:
        """The best of all reported generations."""
        return Genome(handle_from(lib.loom_population_best, self.handle))

    @property
    def history(self) -> List[Generation]:
        names = Generation.__dataclass_fields__
        found = []
        for i in range(self.generation):
            call = lib.loom_population_report_of
            told = report(_ffi.loom_population_report, call, self.handle, i)
            found.append(Generation(**{name: getattr(told, name) for name in names}))
        return found

    def __repr__(self) -> str:
        if self.closed:
            return "<loom.Population, closed>"
        return f"<loom.Population of {len(self)}, generation {self.generation}>"


class SampleFitness(Handle):
    """Fitness of genomes on samples; 1 is perfect. With class labels it is exp(-cross entropy),
    with targets 1 / (1 + mean squared error).

    fitness = loom.SampleFitness(loom.Dataset(x, y), population.inputs, population.outputs)
    population.tell([fitness(genome) for genome in population.ask()])
    fitness.network(population.best()).save("best.entity")
    """

    _FREE = "loom_sample_fitness_free"

    def __init__(
        self, data: Dataset, inputs: int, outputs: int, *, normalize: NormalizeName = "none"
    ) -> None:
        """normalize: how inputs are shifted and scaled, by the samples. InvalidArgumentError:
        samples without targets, other widths."""
        number = number_of(_ffi.NORMALIZE, normalize, "normalize")
        make = lib.loom_sample_fitness_create
        super().__init__(handle_from(make, data.handle, inputs, outputs, number))

    def __call__(self, genome: Genome) -> float:
        """InvalidArgumentError: the genome is recurrent, or has other widths."""
        out = ctypes.c_double()
        check(lib.loom_sample_fitness_score(self.handle, genome.handle, ctypes.byref(out)))
        return out.value

    def network(self, genome: Genome, *, engine: Optional[Engine] = None) -> Network:
        """Genome.network() with the normalization, the names of the classes and the loss."""
        make, on = lib.loom_sample_fitness_network, engine_handle(engine)
        return Network(handle_from(make, self.handle, genome.handle, on))

    def json(self, genome: Genome) -> Dict[str, Any]:
        """Genome.json() with input_shift and input_scale, if inputs are normalized, and classes."""
        found: Dict[str, Any] = json.loads(
            text_from(lib.loom_sample_fitness_json, self.handle, genome.handle)
        )
        return found


# ---- of any two networks -------------------------------------------------------------------------


def compare_dna(a: Network, b: Network, *, mode: str = "functional") -> Dict[str, Any]:
    """How alike two networks are, cell by cell: overall_overlap, layer_overlaps, logic_shifts.

    mode: functional, counts of weights must be equal; strict, number types too; aligned, other
    widths too; permutation, hidden units may have another order. docs/evolution.md
    """
    number = number_of(_ffi.DNA_MODE, mode, "mode")
    found: Dict[str, Any] = json.loads(
        text_from(lib.loom_network_compare_dna, a.handle, b.handle, number)
    )
    return found


def dna(network: Network, cell: Sequence[int]) -> Any:
    """The signature of a cell (z, y, x, l): its weights as a vector of length 1, float64."""
    at = encoded(",".join(map(str, cell)))
    return result(handle_from(lib.loom_network_dna, network.handle, at))


def dna_similarity(a: Any, b: Any) -> float:
    """Cosine of two signatures of equal length. Two zero vectors give 1, a single one gives 0."""
    out = ctypes.c_double()
    check(lib.loom_dna_similarity(as_tensor(a).pointer, as_tensor(b).pointer, ctypes.byref(out)))
    return out.value


def splice(
    a: Network,
    b: Network,
    *,
    fitness: Optional[Sequence[float]] = None,
    # options: generated from api/options, SpliceOptions but fitness_a, fitness_b
    mode: SpliceModeName = "blend",
    law: BlendLawName = "fitter",
    alpha: float = 0.5,
    split: float = 0.5,
    seed: int = 1,
    # end of options
    original: bool = False,
) -> Network:
    """A child: a, with the layers at the same place in b, of the same shapes, crossed.

    fitness: of a and b, higher is better. original: law="original", as earlier versions call it.

    Options, from api/options, SpliceOptions but fitness_a, fitness_b:

    mode: How weights become those of the child.
    law: blend: rule of the shares.
    alpha: blend: share of b if no fitness is set; 0 to 1.
    split: point: share of a, clamped to 0..1.
    seed: uniform: seed of the draws.
    """
    if law not in ("fitter", "original"):
        raise ValueError(f"there is no law '{law}'; choose from fitter, original")
    options = sized(
        _ffi.loom_splice_options,
        mode=number_of(_ffi.SPLICE_MODE, mode, "mode"),
        original=original or law == "original",
        has_alpha=alpha is not None,
        alpha=alpha or 0.0,
        has_split=split is not None,
        split=split or 0.0,
        has_seed=1,
        seed=seed,
    )
    if fitness is not None:
        options.has_fitness_a = options.has_fitness_b = 1
        options.fitness_a, options.fitness_b = fitness
    return Network(
        handle_from(lib.loom_network_splice, a.handle, b.handle, ctypes.byref(options))
    )

/** A population of networks of one shape, by the names of the original: elites stay, and their children are crossed and
 * mutated. Everything is drawn from the seed. (Networks that grow are Loom.population().) */

import { LoomError } from "./errors.js";
import type { Cell, CompatNetwork } from "./compat_network.js";

/** Chances per layer, of a mutation. Those of the original that change shapes are known, and not done. */
export interface NeatConfig {
  readonly WeightPerturbRate: number;
  readonly WeightPerturbScale: number;
  readonly NodeMutateRate: number;
  readonly ConnectionAddRate: number;
  readonly ConnectionDropRate: number;
  readonly ActivationMutRate: number;
  readonly LayerToggleRate: number;
  readonly DModel: number;
  readonly DefaultNumHeads: number;
  readonly DefaultInChannels: number;
  readonly DefaultFilters: number;
  readonly DefaultKernelSize: number;
  readonly DefaultVocabSize: number;
  readonly DefaultNumClusters: number;
  readonly Seed: number;
}

/** The defaults for networks of that width; the seed is 1, and not the time. */
export function neatConfig(width = 64): NeatConfig {
  return { WeightPerturbRate: 0.8, WeightPerturbScale: 0.05, NodeMutateRate: 0.1, ConnectionAddRate: 0.05,
    ConnectionDropRate: 0.02, ActivationMutRate: 0.1, LayerToggleRate: 0.02, DModel: width,
    DefaultNumHeads: width < 4 ? 1 : 4, DefaultInChannels: 1, DefaultFilters: Math.max(1, Math.floor(width / 4)),
    DefaultKernelSize: 3, DefaultVocabSize: 256, DefaultNumClusters: 8, Seed: 1 };
}

/** Random numbers that a seed decides: SplitMix (Steele, Lea and Flood, 2014) in its form of 32 bits. */
export class Draws {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  /** Whole, below 2^32. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  }
  /** At least 0, and below 1. */
  share(): number {
    return this.next() / 2 ** 32;
  }
  below(count: number): number {
    return Math.floor(this.share() * count);
  }
}

const kActivations = ["relu", "silu", "gelu", "tanh", "sigmoid", "linear"] as const;

/** Moves the weights of a cell by +-scale. */
function perturb(network: CompatNetwork, cell: Cell, scale: number, draws: Draws): void {
  const begins = `(${cell.at.join(", ")})/`;
  for (const [name, { data, shape }] of network.weights()) {
    if (!name.startsWith(begins)) continue;
    const moved = Float32Array.from(data as Float32Array, (value) => value + scale * (2 * draws.share() - 1));
    network.setWeights(name, { data: moved, shape });
  }
}

/** A copy that is changed cell by cell. A cell can be left out only where its input and output have one shape. */
export function mutated(network: CompatNetwork, rates: Partial<NeatConfig>, draws: Draws): CompatNetwork {
  const { WeightPerturbRate, WeightPerturbScale, ActivationMutRate, LayerToggleRate } = { ...neatConfig(), ...rates };
  const child = network.copy();
  const edits = new Map<number, Partial<Cell>>();
  child.description().cells.forEach((cell, i) => {
    if (draws.share() < WeightPerturbRate) perturb(child, cell, WeightPerturbScale, draws);
    const change: Record<string, unknown> = {};
    const activation = kActivations[draws.below(kActivations.length)] ?? "linear";
    if (draws.share() < ActivationMutRate && cell.type === "Dense") change["activation"] = activation;
    if (draws.share() < LayerToggleRate && cell["in"] === cell["out"]) change["disabled"] = cell["disabled"] !== true;
    if (Object.keys(change).length > 0) edits.set(i, change);
  });
  if (edits.size > 0) child.change((cells) => cells.map((cell, i) => ({ ...cell, ...edits.get(i) })));
  return child;
}

export class CompatPopulation {
  readonly _id: number;
  #networks: CompatNetwork[];
  #fitness: number[] = [];
  #generation = 0;
  readonly #rates: Partial<NeatConfig>;
  readonly #draws: Draws;

  /** Takes `seed`, and frees it. */
  constructor(seed: CompatNetwork, size: number, config: Partial<NeatConfig> | string) {
    const { Seed = 1, ...rates } = (typeof config === "string" ? JSON.parse(config) : config) as Partial<NeatConfig>;
    if (!Number.isInteger(size) || size < 1) {
      throw new LoomError("invalid_argument", `a population of ${size}; give an integer from 1 on`);
    }
    this._id = seed._id;
    this.#rates = rates;
    this.#draws = new Draws(Seed);
    this.#networks = Array.from({ length: size }, () => mutated(seed, rates, new Draws(this.#draws.next())));
    seed.free();
  }

  get size(): number {
    return this.#networks.length;
  }
  getNetwork(index: number): CompatNetwork {
    const network = this.#networks[index];
    if (network === undefined) throw new LoomError("out_of_range", `network ${index} of ${this.size}; they are counted from 0`);
    return network;
  }

  /** Higher is better; a value that is not finite ranks last. A quarter stays, the best first. */
  evolveWithFitnesses(fitnesses: ArrayLike<number>): void {
    if (fitnesses.length !== this.size) {
      throw new LoomError("invalid_argument", `${fitnesses.length} fitnesses for ${this.size} networks`);
    }
    const ranked = this.#networks.map((network, i) => ({ network, fitness: Number.isFinite(fitnesses[i]) ? fitnesses[i] ?? 0 : -Infinity }))
      .sort((a, b) => b.fitness - a.fitness);
    const elites = ranked.slice(0, Math.max(1, Math.floor(this.size / 4)));
    const next = elites.map(({ network }) => network);
    while (next.length < this.size) {
      const first = this.#draws.below(elites.length);
      const second = elites.length < 2 ? first : (first + 1 + this.#draws.below(elites.length - 1)) % elites.length;
      const [a, b] = [elites[first], elites[second]];
      if (a === undefined || b === undefined) break;
      const crossed = a.network.spliceDNA(b.network, { FitnessA: a.fitness, FitnessB: b.fitness });
      next.push(mutated(crossed, this.#rates, new Draws(this.#draws.next())));
      crossed.free();
    }
    for (const { network } of ranked.slice(elites.length)) network.free();
    this.#networks = next;
    this.#fitness = ranked.map(({ fitness }) => fitness);
    ++this.#generation;
  }

  /** The best of the last reported generation. */
  best(): CompatNetwork {
    return this.getNetwork(0);
  }
  /** 0 before the first. */
  bestFitness(): number {
    return this.#fitness[0] ?? 0;
  }
  summary(generation = this.#generation): string {
    const finite = this.#fitness.filter(Number.isFinite);
    const mean = finite.reduce((sum, value) => sum + value, 0) / Math.max(finite.length, 1);
    const [best, worst] = [this.bestFitness(), finite[finite.length - 1] ?? 0];
    return `generation ${generation}: best ${best.toFixed(4)}, mean ${mean.toFixed(4)}, worst ${worst.toFixed(4)}, ${this.size} networks`;
  }
  free(): void {
    for (const network of this.#networks) network.free();
    this.#networks = [];
  }
}

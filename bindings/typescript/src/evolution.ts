/** Populations that grow, their genomes, and networks that tick. */

import type * as ffi from "./ffi.js";
import { Closable } from "./link.js";
import type { Tensor } from "./memory.js";
import type { Handle } from "./protocol.js";

/** One individual. It outlives its population. */
export class Genome extends Closable {
  info(): Promise<ffi.GenomeInfo> {
    return this.link.ask("genomeInfo", [this.handle]);
  }
  /** Rows [rows, inputs] to [rows, outputs]. A recurrent genome goes on from the last call. */
  run(inputs: Tensor): Promise<Tensor> {
    return this.link.ask("genomeRun", [this.handle, inputs]);
  }
  reset(): Promise<void> {
    return this.link.ask("genomeReset", [this.handle]);
  }
  /** Nodes and connections (docs/evolution.md). */
  async json(): Promise<GenomeDescription> {
    return JSON.parse(await this.link.ask("genomeJson", [this.handle])) as GenomeDescription;
  }
  /** For Loom.genomeNetwork(). */
  get id(): Handle {
    return this.handle;
  }
}

/** The result of Genome.json(). */
export interface GenomeDescription {
  readonly nodes: readonly { readonly id: number; readonly [field: string]: unknown }[];
  readonly connections: readonly { readonly from: number; readonly to: number; readonly weight: number;
    readonly [field: string]: unknown }[];
  readonly [field: string]: unknown;
}

/** Genomes of one generation: ask all of them, then tell how fit each is. */
export class Population extends Closable {
  info(): Promise<ffi.PopulationInfo> {
    return this.link.ask("populationInfo", [this.handle]);
  }
  /** The report of a generation, from 0. */
  report(generation: number): Promise<ffi.PopulationReport> {
    return this.link.ask("populationReport", [this.handle, generation]);
  }
  /** The outputs of every genome for each row: [size, rows, outputs]. */
  run(inputs: Tensor): Promise<Tensor> {
    return this.link.ask("populationRun", [this.handle, inputs]);
  }
  /** Higher is better, one per genome: the next generation takes their place. */
  tell(fitness: ArrayLike<number>): Promise<void> {
    return this.link.ask("populationTell", [this.handle, Float64Array.from(fitness)]);
  }
  async genome(index: number): Promise<Genome> {
    return new Genome(this.link, await this.link.ask("populationGenome", [this.handle, index]));
  }
  /** The best of all reported generations. */
  async best(): Promise<Genome> {
    return new Genome(this.link, await this.link.ask("populationBest", [this.handle]));
  }
}

/** A network that ticks: in each tick every cell fires once, on what was committed the tick before. */
export class Mesh extends Closable {
  info(): Promise<ffi.MeshInfo> {
    return this.link.ask("meshInfo", [this.handle]);
  }
  /** Its input until it is replaced: [batch, ...]. */
  setInput(inputs: Tensor): Promise<void> {
    return this.link.ask("meshSetInput", [this.handle, inputs]);
  }
  tick(count = 1): Promise<void> {
    return this.link.ask("meshTick", [this.handle, count]);
  }
  /** The last output of the last cell; zeros before it fired. */
  output(): Promise<Tensor> {
    return this.link.ask("meshOutput", [this.handle]);
  }
  reset(): Promise<void> {
    return this.link.ask("meshReset", [this.handle]);
  }
}

/** A network by the names of the original. */

import * as ffi from "./ffi.js";
import { LoomError } from "./errors.js";
import type { NetworkDescription } from "./layer.js";
import type { Tensor } from "./memory.js";
import type { Handle, Operations } from "./protocol.js";
import type { Server } from "./server.js";
import type { Signature } from "./compat_dna.js";
import { Draws, mutated, type NeatConfig } from "./compat_population.js";

export interface TweenConfig {
  readonly BatchSize: number;
  readonly UseChainRule: boolean;
  readonly GradientScale: number;
  readonly DepthScaleFactor: number;
  readonly Momentum: number;
  readonly LearningRate: number;
  readonly ActivationClamp: number;
}

export interface TrainingBatch {
  readonly input: readonly number[];
  readonly target: readonly number[];
}
export interface TrainingResult {
  /** Mean squared error of each epoch. */
  readonly loss_history: number[];
  readonly final_loss: number;
  readonly epochs: number;
}

export interface Cell {
  readonly at: readonly [number, number, number, number];
  readonly type: string;
  readonly [field: string]: unknown;
}

type Described = Omit<NetworkDescription, "cells"> & { readonly cells: readonly Cell[] };

let nextId = 1;

function parsed(config: string | object): Record<string, unknown> {
  return (typeof config === "string" ? JSON.parse(config === "" ? "{}" : config) : config) as Record<string, unknown>;
}

export class CompatNetwork {
  readonly _id = nextId++;
  #handle: Handle;

  private constructor(readonly server: Server, handle: Handle) {
    this.#handle = handle;
  }

  static described(server: Server, description: string | object): CompatNetwork {
    const text = typeof description === "string" ? description : JSON.stringify(description);
    return CompatNetwork.loaded(server, new TextEncoder().encode(text), "network.json");
  }
  static loaded(server: Server, bytes: Uint8Array, name: string): CompatNetwork {
    return new CompatNetwork(server, server.now("networkFromBytes", bytes, name, {}) as Handle);
  }

  /** An operation on this network, at once. */
  ask<K extends keyof Operations>(operation: K, ...rest: unknown[]): ReturnType<Operations[K]> {
    if (this.#handle === 0) throw new LoomError("invalid_argument", "this network was freed");
    return this.server.now(operation, ...([this.#handle, ...rest] as never)) as ReturnType<Operations[K]>;
  }
  description(): Described {
    return JSON.parse(this.ask("networkText", "json")) as Described;
  }
  copy(): CompatNetwork {
    return CompatNetwork.loaded(this.server, this.ask("networkSave", "entity", {}), "a copy");
  }

  sequentialForward(input: ArrayLike<number>): Float32Array {
    return this.ask("networkPredict", this.#batch(input)).data as Float32Array;
  }
  #batch(values: ArrayLike<number>): Tensor {
    const { input } = this.ask("networkInfo");
    return { data: Float32Array.from(values), shape: [1, ...input] };
  }

  /** JSON of a Signature per cell. */
  extractDNA(): string {
    const cells = this.description().cells.map(({ at: [z, y, x, l], type, dtype }): Signature => {
      const { data } = this.ask("networkDna", `${z},${y},${x},${l}`);
      return { z, y, x, l, type, dtype: String(dtype ?? "float32"), weights: Array.from(data as Float64Array) };
    });
    return JSON.stringify(cells);
  }

  /** JSON of what there is: id, total_layers, total_parameters, layers. */
  extractBlueprint(id = ""): string {
    const info = this.ask("networkInfo"), session = this.ask("sessionOpen", {});
    const size = info.input.reduce((product, extent) => product * extent, 1);
    const outputs = new Map<string, number[]>();
    try {
      const zeros: Tensor = { data: new Float32Array(size), shape: [1, ...info.input] };
      for (const { at, values } of this.server.now("sessionCells", session, zeros) as ReturnType<Operations["sessionCells"]>) {
        outputs.set(at.join(), values.shape.slice(1));
      }
    } finally {
      void this.server.now("free", session);
    }
    let before = info.input;
    const layers = this.description().cells.map(({ at, type, activation }) => {
      const output = outputs.get(at.join()) ?? before, [z, y, x, l] = at;
      const row = { z, y, x, l, type, activation: activation ?? "linear", parameters: this.#count(at), input_shape: before,
        output_shape: output };
      before = output;
      return row;
    });
    return JSON.stringify({ id, total_layers: layers.length, total_parameters: info.parameters, layers });
  }
  #count(at: Cell["at"]): number {
    const begins = `(${at.join(", ")})/`;
    return this.ask("networkParameters").filter(({ name }) => name.startsWith(begins))
      .reduce((sum, { shape }) => sum + shape.reduce((product, extent) => product * extent, 1), 0);
  }

  getLayerCount(): number {
    return this.description().cells.length;
  }
  /** The description of a layer, with its place and count of parameters. */
  getLayerSpec(index: number): Record<string, unknown> {
    const cell = this.description().cells[index];
    if (cell === undefined) {
      throw new LoomError("out_of_range", `layer ${index} of ${this.getLayerCount()}; they are counted from 0`);
    }
    const [z, y, x, l] = cell.at;
    return { ...cell, z, y, x, l, parameters: this.#count(cell.at) };
  }

  /** Packs the weights of a layer in another number type ("int8", "FLOAT16"). */
  morphLayer(index: number, dtype: string): boolean {
    this.getLayerSpec(index);
    const name = dtype.toLowerCase();
    if (!(name in ffi.Dtype)) {
      throw new LoomError("invalid_argument",
        `there is no number type '${dtype}'; choose from ${Object.keys(ffi.Dtype).join(", ")}`);
    }
    this.change((cells) => cells.map((cell, i) => (i === index ? { ...cell, dtype: name } : cell)));
    return true;
  }
  /** Other cells with the same weights. */
  change(edit: (cells: readonly Cell[]) => readonly Cell[]): void {
    const description = this.description(), kept = this.weights();
    const text = JSON.stringify({ ...description, cells: edit(description.cells) });
    const made = this.server.now("networkFromJson", text, {}) as Handle;
    void this.server.now("free", this.#handle);
    this.#handle = made;
    for (const [name, values] of kept) this.ask("networkSetParameter", name, values);
  }
  weights(): Map<string, Tensor> {
    return new Map(this.ask("networkParameters").map(({ name }) => [name, this.ask("networkParameter", name)]));
  }
  setWeights(name: string, values: Tensor): void {
    this.ask("networkSetParameter", name, values);
  }

  /** A child of two, with the shares of the original. */
  spliceDNA(other: CompatNetwork, config: string | object = {}): CompatNetwork {
    const { CrossoverMode = "blend", BlendAlpha = 0.5, SplitRatio = 0.5, FitnessA = 0, FitnessB = 0 } = parsed(config);
    const fitness = Number(FitnessA) + Number(FitnessB) > 0 ? { fitnessA: Number(FitnessA), fitnessB: Number(FitnessB) } : {};
    const options = { mode: String(CrossoverMode), original: true, alpha: Number(BlendAlpha), split: Number(SplitRatio), ...fitness };
    return new CompatNetwork(this.server, this.ask("networkSplice", other.#handle, options));
  }
  /** A mutated copy. */
  neatMutate(config: Partial<NeatConfig> | string = {}): CompatNetwork {
    const { Seed, ...rates } = parsed(config) as Partial<NeatConfig>;
    return mutated(this, rates, new Draws(Seed ?? 1));
  }

  createStepState(): StepState {
    return new StepState(this.server, this.ask("meshCreate", {}), this.ask("networkInfo").input);
  }
  createTweenState(config: Partial<TweenConfig> | string = {}): TweenState {
    return new TweenState(this, parsed(config));
  }

  /** Resolves to false: the engine stays on the CPU. */
  initGPU(): Promise<boolean> {
    return Promise.resolve(false);
  }
  /** Where the weights are is where they are read: there is nothing to move, and nothing was. */
  syncToGPU(): boolean {
    return false;
  }
  syncToCPU(): boolean {
    return true;
  }

  /** Gradient descent on the mean squared error, a batch a step. */
  train(batches: readonly TrainingBatch[] | string, epochs = 1, rate = 0.01): TrainingResult {
    const rows = (typeof batches === "string" ? JSON.parse(batches) : batches) as readonly TrainingBatch[];
    if (rows.length === 0 || epochs < 1) throw new LoomError("invalid_argument", "train() needs batches, and 1 epoch or more");
    const trainer = this.trainer(rate), history: number[] = [];
    try {
      for (let epoch = 0; epoch < epochs; ++epoch) {
        let sum = 0;
        for (const { input, target } of rows) sum += this.step(trainer, input, target, rate);
        history.push(sum / rows.length);
      }
    } finally {
      void this.server.now("free", trainer);
    }
    return { loss_history: history, final_loss: history[history.length - 1] ?? 0, epochs };
  }
  trainer(rate: number): Handle {
    return this.ask("trainerCreate", { optimizer: "sgd", loss: "mse", rate, batch: 1 });
  }
  /** One step; the loss before it. */
  step(trainer: Handle, input: ArrayLike<number>, target: ArrayLike<number>, rate: number): number {
    const { output } = this.ask("networkInfo");
    const y: Tensor = { data: Float32Array.from(target), shape: [1, ...output] };
    return (this.server.now("trainerStep", trainer, this.#batch(input), y, rate) as ffi.StepReport).loss;
  }

  free(): void {
    if (this.#handle !== 0) void this.server.now("free", this.#handle);
    this.#handle = 0;
  }
}

/** A network that ticks: each layer reads what the one before it gave the tick before. */
export class StepState {
  readonly _id = nextId++;
  #freed = false;
  constructor(readonly server: Server, readonly mesh: Handle, readonly input: readonly number[]) {}
  setInput(values: ArrayLike<number>): void {
    void this.server.now("meshSetInput", this.mesh, { data: Float32Array.from(values), shape: [1, ...this.input] });
  }
  step(count = 1): void {
    void this.server.now("meshTick", this.mesh, count);
  }
  getOutput(): Float32Array {
    return (this.server.now("meshOutput", this.mesh) as Tensor).data as Float32Array;
  }
  stepCount(): number {
    return (this.server.now("meshInfo", this.mesh) as ffi.MeshInfo).ticks;
  }
  free(): void {
    if (!this.#freed) void this.server.now("free", this.mesh);
    this.#freed = true;
  }
}

/** A network that moves towards targets: forward, then backward with the target, then applyGaps with a rate. */
export class TweenState {
  readonly _id = nextId++;
  readonly config: Partial<TweenConfig>;
  #trainer: Handle;
  #input: Float32Array | null = null;
  #target: Float32Array | null = null;
  constructor(readonly network: CompatNetwork, config: Partial<TweenConfig>) {
    this.config = config;
    this.#trainer = network.trainer(config.LearningRate ?? 0.01);
  }
  forward(input: ArrayLike<number>): Float32Array {
    this.#input = Float32Array.from(input);
    return this.network.sequentialForward(this.#input);
  }
  backward(target: ArrayLike<number>): void {
    if (this.#input === null) throw new LoomError("invalid_argument", "backward() comes after forward()");
    this.#target = Float32Array.from(target);
  }
  backwardChainRule(target: ArrayLike<number>): void {
    this.backward(target);
  }
  /** The loss before the weights were moved. */
  applyGaps(rate: number = this.config.LearningRate ?? 0.01): number {
    if (this.#input === null || this.#target === null) {
      throw new LoomError("invalid_argument", "applyGaps() comes after forward() and backward()");
    }
    return this.network.step(this.#trainer, this.#input, this.#target, rate);
  }
  free(): void {
    if (this.#trainer !== 0) void this.network.server.now("free", this.#trainer);
    this.#trainer = 0;
  }
}

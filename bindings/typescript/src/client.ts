/** The engine as a program sees it: everything is asked of a worker, so that whoever calls never waits. */

import type * as ffi from "./ffi.js";
import { LoomError } from "./errors.js";
import { AdaptationTracker, DeviationMetrics } from "./analysis.js";
import { Genome, Mesh, Population } from "./evolution.js";
import type { Source } from "./files.js";
import { sequential, type Axes, type Layer, type NetworkDescription } from "./layer.js";
import { Feed, type CallOptions } from "./feed.js";
import { LLM, Tokenizer } from "./language.js";
import { Closable, dispose, Link, type Events, type Started } from "./link.js";
import type { NumberArray, Tensor } from "./memory.js";
import type { TrainerOptions } from "./options.js";
import type { Clusters, Handle, Running, StartOptions } from "./protocol.js";
import type { Variant } from "./module.js";

export interface InitOptions {
  /** Lanes of work, the engine's worker included. 0, the default: as many as there are cores; 1: no shared memory. */
  readonly threads?: number;
  /** "gpu": WebGPU, where this host has it; elsewhere the CPU, and `info.notes` says why. Results are within the bound of
   * docs/webgpu.md of the CPU's, and not their bits. */
  readonly device?: ffi.Device;
  /** How inputs meet weights of integer types: as 8-bit numbers (the CPU) or as floats (the default on
   * a GPU). What is compared between the two should have the same. */
  readonly activations?: ffi.Activations;
  /** A module in place of the one that suits this host best. */
  readonly variant?: Variant;
  /** Addresses or bytes of the modules, where a bundler has put them elsewhere. */
  readonly modules?: Partial<Record<Variant, string | Uint8Array>>;
  /** Bytes that reading files may take. */
  readonly memoryLimit?: number;
  /** true: addresses of 64 bits where this host has them, so that the engine holds 16 GiB in place of 2; elsewhere
   * `info.notes` says why not. Without it load() takes them for a file that is too large for 32 bits. */
  readonly memory64?: boolean;
}

/** Options by their names in api/options. */
export type NamedOptions = Readonly<Record<string, unknown>>;

function whole(values: ArrayLike<number | bigint>): BigInt64Array {
  return BigInt64Array.from(Array.from(values, BigInt));
}

export interface FileOptions extends CallOptions {
  /** Keep the file in the origin's own file system, and bring only what is not there yet. Browsers alone. */
  readonly cache?: boolean;
  /** What errors call the bytes; of ONNX it ends in .onnx. */
  readonly name?: string;
  /** Bytes read, and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** What Network.compareDna() tells; docs/evolution.md has the rest. */
export interface DnaComparison {
  readonly overall_overlap: number;
  readonly coverage: number;
  readonly layer_overlaps: Readonly<Record<string, number>>;
  readonly logic_shifts: readonly { readonly source_pos: string; readonly target_pos: string; readonly overlap: number }[];
  readonly [field: string]: unknown;
}

/** A tensor of rows, or of one sample. */
export function tensor<T extends NumberArray>(data: T, shape: readonly number[] = [data.length]): Tensor<T> {
  return { data, shape };
}

// ---- networks -------------------------------------------------------------------------------------

/** Layers with their weights. Training changes a network; sessions keep the weights that it had. */
export class Network extends Closable {
  /** As it was made or loaded; training may change what it says. */
  readonly info: ffi.NetworkInfo;
  constructor(link: Link, handle: Handle, info: ffi.NetworkInfo) {
    super(link, handle);
    this.info = info;
  }

  /** Outputs [n, ...] of inputs [n, ...]. */
  predict(inputs: Tensor): Promise<Tensor> {
    return this.link.ask("networkPredict", [this.handle, inputs]);
  }
  /** Of outputs, by the loss that the network was trained with. */
  probabilities(outputs: Tensor): Promise<Tensor> {
    return this.link.ask("networkProbabilities", [this.handle, outputs]);
  }
  async json(): Promise<NetworkDescription> {
    return JSON.parse(await this.link.ask("networkText", [this.handle, "json"])) as NetworkDescription;
  }
  summary(): Promise<string> {
    return this.link.ask("networkText", [this.handle, "summary"]);
  }
  classes(): Promise<string[]> {
    return this.link.ask("networkClasses", [this.handle]);
  }
  parameters(): Promise<ffi.ParameterInfo[]> {
    return this.link.ask("networkParameters", [this.handle]);
  }
  /** A copy, decoded to numbers. */
  parameter(name: string): Promise<Tensor> {
    return this.link.ask("networkParameter", [this.handle, name]);
  }
  setParameter(name: string, values: Tensor): Promise<void> {
    return this.link.ask("networkSetParameter", [this.handle, name, values]);
  }
  /** The bytes of a file. */
  save(format: ffi.NetworkFormat = "entity", options: ffi.SaveOptions = {}): Promise<Uint8Array> {
    return this.link.ask("networkSave", [this.handle, format, options]);
  }
  async session(options: ffi.SessionOptions = {}): Promise<Session> {
    return new Session(this.link, await this.link.ask("sessionOpen", [this.handle, options]), () => this.ports());
  }
  /** Its inputs and its outputs. */
  ports(): Promise<ffi.Port[]> {
    return this.link.ask("networkPorts", [this.handle]);
  }
  async trainer(options: TrainerOptions = {}): Promise<Trainer> {
    return new Trainer(this.link, await this.link.ask("trainerCreate", [this.handle, options]));
  }
  /** How alike two networks are, cell by cell. */
  async compareDna(other: Network, mode: ffi.DnaMode = "functional"): Promise<DnaComparison> {
    return JSON.parse(await this.link.ask("networkCompareDna", [this.handle, other.handle, mode])) as DnaComparison;
  }
  /** The signature of a cell "z,y,x,l": its weights as a vector of length 1. */
  dna(at: string): Promise<Tensor> {
    return this.link.ask("networkDna", [this.handle, at]);
  }
  /** A child: this network, with the layers that the other has at the same place crossed. */
  async splice(other: Network, options: ffi.SpliceOptions = {}): Promise<Network> {
    const handle = await this.link.ask("networkSplice", [this.handle, other.handle, options]);
    return new Network(this.link, handle, await this.link.ask("networkInfo", [handle]));
  }
  /** The network as one that ticks. */
  async mesh(options: ffi.MeshOptions = {}): Promise<Mesh> {
    return new Mesh(this.link, await this.link.ask("meshCreate", [this.handle, options]));
  }
  /** For Dataset.load. */
  get id(): Handle {
    return this.handle;
  }
}

/** A network that runs, piece by piece where it is stateful. */
export class Session extends Closable {
  readonly #ports: () => Promise<ffi.Port[]>;
  #inputs: string[] | null = null;
  constructor(link: Link, handle: Handle, ports: () => Promise<ffi.Port[]>) {
    super(link, handle);
    this.#ports = ports;
  }
  run(inputs: Tensor): Promise<Tensor> {
    return this.link.ask("sessionRun", [this.handle, inputs]);
  }
  /** All inputs by their names to all outputs by theirs, of a network of several (`Network.ports()`). */
  async runAll(inputs: Readonly<Record<string, Tensor>>): Promise<Record<string, Tensor>> {
    this.#inputs ??= (await this.#ports()).filter((port) => !port.output).map((port) => port.name);
    const unknown = Object.keys(inputs).find((name) => !this.#inputs!.includes(name));
    if (unknown !== undefined) throw new LoomError("invalid_argument", `the network has no input '${unknown}'`);
    const given = this.#inputs.map((name) => {
      const values = inputs[name];
      if (values === undefined) throw new LoomError("invalid_argument", `there is nothing for the input '${name}'`);
      return values;
    });
    return this.link.ask("sessionRunPorts", [this.handle, given]);
  }
  /** What each cell gives on the way. */
  cells(inputs: Tensor): Promise<{ at: number[]; layer: string; values: Tensor }[]> {
    return this.link.ask("sessionCells", [this.handle, inputs]);
  }
  reset(): Promise<void> {
    return this.link.ask("sessionReset", [this.handle]);
  }
  /** Steps of each sample of the next run; for a session with `lengths`. */
  setLengths(lengths: readonly number[]): Promise<void> {
    return this.link.ask("sessionSetLengths", [this.handle, lengths]);
  }
  /** Stateful: the states of recurrent layers, [maxBatch, width] each. */
  states(): Promise<Tensor[]> {
    return this.link.ask("sessionStates", [this.handle]);
  }
  /** Stateful: the states that the next run begins with. */
  setStates(states: readonly Tensor[]): Promise<void> {
    return this.link.ask("sessionSetStates", [this.handle, states]);
  }
  /** Stateful: steps that it has run. */
  position(): Promise<number> {
    return this.link.ask("sessionNumber", [this.handle, "position"]);
  }
  /** Memory that it takes. */
  bytes(): Promise<number> {
    return this.link.ask("sessionNumber", [this.handle, "bytes"]);
  }
}

// ---- training -------------------------------------------------------------------------------------

export class Dataset extends Closable {
  readonly info: ffi.DatasetInfo;
  constructor(link: Link, handle: Handle, info: ffi.DatasetInfo) {
    super(link, handle);
    this.info = info;
  }
  x(): Promise<Tensor> {
    return this.link.ask("datasetArray", [this.handle, "x"]);
  }
  y(): Promise<Tensor> {
    return this.link.ask("datasetArray", [this.handle, "y"]);
  }
  /** The same samples with a further input of networks that take several, by its name there. */
  async withInput(name: string, values: Tensor): Promise<Dataset> {
    const handle = await this.link.ask("datasetWithInput", [this.handle, name, values]);
    return new Dataset(this.link, handle, await this.link.ask("datasetInfo", [handle]));
  }
  /** Columns, notes, files, hash, bytes, inMemory and the further inputs, as the C interface names them. */
  async description(): Promise<Readonly<Record<string, unknown>>> {
    return JSON.parse(await this.link.ask("datasetJson", [this.handle])) as Record<string, unknown>;
  }
  /** Fold `number` of `count`, from 0: the samples to train on, and those of the fold. */
  async fold(number: number, count: number, options: ffi.SplitOptions = {}): Promise<[Dataset, Dataset]> {
    const [first, second] = await this.link.ask("datasetFold", [this.handle, number, count, options]);
    const made = async (handle: Handle): Promise<Dataset> =>
      new Dataset(this.link, handle, await this.link.ask("datasetInfo", [handle]));
    return [await made(first), await made(second)];
  }
  /** Two data sets, of which the first has this share of the samples. */
  async split(share: number, options: ffi.SplitOptions = {}): Promise<[Dataset, Dataset]> {
    const [first, second] = await this.link.ask("datasetSplit", [this.handle, share, options]);
    const made = async (handle: Handle): Promise<Dataset> =>
      new Dataset(this.link, handle, await this.link.ask("datasetInfo", [handle]));
    return [await made(first), await made(second)];
  }
  get id(): Handle {
    return this.handle;
  }
}

export interface FitOptions extends ffi.FitOptions, CallOptions {
  readonly validation?: Dataset;
  readonly onBatch?: (batch: { done: number; steps: number; loss: number }) => void;
  readonly onEpoch?: (epoch: ffi.Epoch) => void;
}

export class Trainer extends Closable {
  /** Trains, and resolves to what each epoch gave. */
  fit(data: Dataset, { validation, onBatch, onEpoch, signal, ...options }: FitOptions = {}): Promise<ffi.Epoch[]> {
    const events = { batch: onBatch ?? ((): void => undefined), epoch: onEpoch ?? ((): void => undefined) };
    return this.link.ask("trainerFit", [this.handle, data.id, validation?.id ?? null, options], events as Events, signal);
  }
  /** The same an epoch at a time, as they end. Leaving the loop ends training. */
  async *epochs(data: Dataset, options: FitOptions = {}): AsyncGenerator<ffi.Epoch, void> {
    const feed = new Feed<ffi.Epoch>();
    const leaving = new AbortController();
    const signal = options.signal === undefined ? leaving.signal : AbortSignal.any([options.signal, leaving.signal]);
    feed.follow(this.fit(data, { ...options, signal, onEpoch: (epoch) => feed.push(epoch) }));
    try {
      yield* feed.values();
    } finally {
      leaving.abort();
    }
  }
  /** One step on a batch of your own. */
  step(x: Tensor, y: Tensor, rate: number | null = null): Promise<ffi.StepReport> {
    return this.link.ask("trainerStep", [this.handle, x, y, rate]);
  }
  /** The same on samples, which may have further inputs. */
  stepSamples(batch: Dataset, rate: number | null = null): Promise<ffi.StepReport> {
    return this.link.ask("trainerStepSamples", [this.handle, batch.id, rate]);
  }
  /** Narrows the ranges of quantized weights on samples. Resolves to a report for each matrix. */
  async calibrate(data: Dataset): Promise<unknown> {
    return JSON.parse(await this.link.ask("trainerCalibrate", [this.handle, data.id])) as unknown;
  }
  evaluate(data: Dataset): Promise<ffi.Evaluation> {
    return this.link.ask("trainerEvaluate", [this.handle, data.id]);
  }
  /** Memory that it takes. */
  bytes(): Promise<number> {
    return this.link.ask("trainerNumber", [this.handle, "bytes"]);
  }
  /** Parameters that training does not change. */
  frozen(): Promise<number> {
    return this.link.ask("trainerNumber", [this.handle, "frozen"]);
  }
  /** Epochs that are done. */
  epoch(): Promise<number> {
    return this.link.ask("trainerNumber", [this.handle, "epoch"]);
  }
  /** Of the bits of all weights. */
  weightsHash(): Promise<string> {
    return this.link.ask("trainerHash", [this.handle]);
  }
}

/** A file with a model as it lies: what is in it, without running it. */
export class ModelFile extends Closable {
  async json(): Promise<FileDescription> {
    return JSON.parse(await this.link.ask("fileJson", [this.handle])) as FileDescription;
  }
  /** Values of a tensor by its place in the list. Errors: "unsupported" (a text). */
  values(tensor: number): Promise<Tensor> {
    return this.link.ask("fileValues", [this.handle, tensor]);
  }
  /** XXH3-128 of its stored bytes. */
  hash(tensor: number): Promise<string> {
    return this.link.ask("fileHash", [this.handle, tensor]);
  }
}

/** What ModelFile.json() tells. A layer stands before those below it, which are a `depth` deeper. */
export interface FileDescription {
  readonly format: string;
  readonly grid: string;
  readonly parameters: number;
  readonly notes: readonly string[];
  readonly layers: readonly { readonly depth: number; readonly at: string; readonly type: string; readonly settings: string;
    readonly in: string; readonly out: string; readonly notes: string; readonly parameters: number }[];
  readonly tensors: readonly { readonly name: string; readonly dtype: string; readonly shape: readonly number[];
    readonly bytes: number }[];
  /** null: a network. */
  readonly decoder: null | { readonly architecture: string; readonly layers: number; readonly width: number;
    readonly vocab: number; readonly context: number; readonly [field: string]: number | string };
}

// ---- the engine -----------------------------------------------------------------------------------

function progressOf({ onProgress }: FileOptions): Events {
  const told = ({ done, total }: { done: number; total: number }): void => onProgress?.(done, total);
  return { progress: told } as Events;
}

/** An engine: a worker with a module, and everything that was made with it. */
export class Loom {
  readonly #link: Link;
  #info: Running;
  private constructor(link: Link, info: Running) {
    this.#link = link;
    this.#info = info;
  }

  /** What runs: the variant of the module, and why not another. */
  get info(): Running {
    return this.#info;
  }
  #reading(options: FileOptions): Events {
    return { ...progressOf(options), moved: (info: Running) => void (this.#info = info) } as Events;
  }

  static async start(started: Started, { threads = 0, ...more }: InitOptions): Promise<Loom> {
    const link = new Link(started);
    const options: StartOptions = { threads, ...more };
    try {
      return new Loom(link, await link.ask("start", [options]));
    } catch (error) {
      started.terminate();
      throw error;
    }
  }

  /** A network of layers in a row, or of a description. `input`: the shape of one sample. */
  async network(layers: readonly Layer[] | NetworkDescription, options: ffi.LoadOptions & { input?: Axes } = {}):
    Promise<Network> {
    const { input, ...more } = options;
    if (Array.isArray(layers) && input === undefined) {
      throw new LoomError("invalid_argument", "a row of layers needs `input`, the shape of one sample");
    }
    const description = Array.isArray(layers) ? sequential(layers as readonly Layer[], input ?? []) : layers;
    return this.#network(await this.#link.ask("networkFromJson", [JSON.stringify(description), more]));
  }
  async #network(handle: Handle): Promise<Network> {
    return new Network(this.#link, handle, await this.#link.ask("networkInfo", [handle]));
  }

  /** .entity, .json, .onnx, .npz, .safetensors. */
  async loadNetwork(source: Source, options: FileOptions & ffi.LoadOptions = {}): Promise<Network> {
    const { cache, name, onProgress, signal, ...more } = options;
    void onProgress;
    return this.#network(await this.#link.ask("networkLoad", [source, { cache, name }, more], this.#reading(options), signal));
  }

  /** A language model: .entity or GGUF. */
  async load(source: Source, options: FileOptions & ffi.ModelOptions = {}): Promise<LLM> {
    const { cache, name, onProgress, signal, ...more } = options;
    void onProgress;
    const handle = await this.#link.ask("modelLoad", [source, { cache, name }, more], this.#reading(options), signal);
    return new LLM(this.#link, handle, await this.#link.ask("modelInfo", [handle]));
  }

  /** A language model of a named shape with random weights, the same for the same seed everywhere. No tokenizer. */
  async randomModel(shape: string, { dtype = "float32", seed = 1 }: { dtype?: ffi.Dtype; seed?: number } = {}):
    Promise<LLM> {
    const handle = await this.#link.ask("modelRandom", [shape, dtype, seed]);
    return new LLM(this.#link, handle, await this.#link.ask("modelInfo", [handle]));
  }

  /** Looks into any file that can be loaded. */
  async open(source: Source, options: FileOptions = {}): Promise<ModelFile> {
    const { cache, name, signal } = options;
    const handle = await this.#link.ask("fileOpen", [source, { cache, name }], this.#reading(options), signal);
    return new ModelFile(this.#link, handle);
  }

  /** That of a model, or a tokenizer.json. */
  async tokenizer(source: Source, options: FileOptions = {}): Promise<Tokenizer> {
    const { cache, name, signal } = options;
    const handle = await this.#link.ask("tokenizerLoad", [source, { cache, name }], this.#reading(options), signal);
    return new Tokenizer(this.#link, handle);
  }

  /** Inputs [n, ...], and labels (whole numbers) or targets (floats). */
  async dataset(x: Tensor, y: Tensor | null = null): Promise<Dataset> {
    return this.#dataset(await this.#link.ask("datasetFromArrays", [x, y]));
  }
  /** .csv, .npz, .npy, .safetensors, IDX. `network`: the one that it is for, where that matters. */
  async loadDataset(source: Source, options: FileOptions & ffi.DatasetOptions & { network?: Network } = {}):
    Promise<Dataset> {
    const { cache, name, onProgress, signal, network, ...more } = options;
    void onProgress;
    return this.#dataset(await this.#link.ask("datasetLoad", [source, { cache, name }, network?.id ?? null, more],
      this.#reading(options), signal));
  }
  async #dataset(handle: Handle): Promise<Dataset> {
    return new Dataset(this.#link, handle, await this.#link.ask("datasetInfo", [handle]));
  }

  /** A population that grows. */
  async population(options: ffi.NeatOptions = {}): Promise<Population> {
    return new Population(this.#link, await this.#link.ask("populationCreate", [options]));
  }
  /** The network of a genome, with the same bits. */
  async genomeNetwork(genome: Genome): Promise<Network> {
    return this.#network(await this.#link.ask("genomeNetwork", [genome.id]));
  }

  // ---- groups of points, several networks, measures

  /** Groups of points [n, d] by Lloyd's algorithm. `start`: the first centers. Options: docs/cluster.md. */
  kmeans(points: Tensor, { start, ...options }: NamedOptions & { start?: Tensor } = {}): Promise<Clusters> {
    return this.#link.ask("kmeans", [points, options, start ?? null]);
  }
  /** How good groups are, -1 to 1. */
  silhouette(points: Tensor, labels: ArrayLike<number | bigint>, distance: ffi.Distance = "euclidean"): Promise<number> {
    return this.#link.ask("silhouette", [points, whole(labels), distance]);
  }
  /** The tree of merges of points [n, d]: [n - 1, 4], group a, group b, distance, points of both. */
  linkage(points: Tensor, options: NamedOptions = {}): Promise<Tensor> {
    return this.#link.ask("linkage", [points, options]);
  }
  /** The same of distances [n, n], symmetric, 0 on the diagonal. */
  linkageOfDistances(distances: Tensor, options: NamedOptions = {}): Promise<Tensor> {
    return this.#link.ask("linkageOfDistances", [distances, options]);
  }
  /** Labels of all points of a tree: groups that merge at `threshold` or nearer are one. */
  cutAt(merges: Tensor, threshold: number): Promise<Tensor> {
    return this.#link.ask("linkageCut", [merges, threshold, 0]);
  }
  /** Labels of all points of a tree, in so many groups. */
  cutInto(merges: Tensor, groups: number): Promise<Tensor> {
    return this.#link.ask("linkageCut", [merges, 0, groups]);
  }
  /** Rows of model a, model b, coverage and overlap, of masks uint8 [models, samples], best coverage first. */
  complementaryPairs(masks: Tensor, least = 0): Promise<Tensor> {
    return this.#link.ask("complementaryPairs", [masks, least]);
  }
  /** Rows of a model and the coverage with it: always the model that adds most. most 0: no limit. */
  greedyCover(masks: Tensor, most = 0): Promise<Tensor> {
    return this.#link.ask("greedyCover", [masks, most]);
  }
  /** Of classes [models, samples] the one of each sample with the largest sum of weights. */
  majorityVote(votes: Tensor, weights?: ArrayLike<number>): Promise<Tensor> {
    return this.#link.ask("majorityVote", [votes, weights === undefined ? null : Float64Array.from(weights)]);
  }
  /** The weighted mean of probabilities of one shape. */
  softVote(shares: readonly Tensor[], weights?: ArrayLike<number>): Promise<Tensor> {
    return this.#link.ask("softVote", [shares, weights === undefined ? null : Float64Array.from(weights)]);
  }
  /** The answers [n, classes] of models side by side, for stack(). */
  stackInputs(shares: readonly Tensor[]): Promise<Tensor> {
    return this.#link.ask("stackInputs", [shares]);
  }
  /** Stacking (Wolpert, 1992): a Dense layer over stackInputs(), trained for `labels`. */
  async stack(shares: readonly Tensor[], labels: ArrayLike<number | bigint>, options: NamedOptions = {}): Promise<Network> {
    return this.#network(await this.#link.ask("stack", [shares, whole(labels), options]));
  }
  /** Deviation in percent of answers; `json`: of DeviationMetrics.json(). */
  async deviationMetrics(json?: string): Promise<DeviationMetrics> {
    return new DeviationMetrics(this.#link, await this.#link.ask("deviationCreate", [json ?? null]));
  }
  /** Accuracy by windows of time while tasks change. */
  async adaptationTracker(options: ffi.AdaptationOptions = {}): Promise<AdaptationTracker> {
    return new AdaptationTracker(this.#link, await this.#link.ask("adaptationCreate", [options]));
  }

  /** Bytes that the objects of the engine hold, and all memory of the module, which never shrinks. */
  memory(): Promise<ffi.Memory & { heap: number }> {
    return this.#link.ask("memory", []);
  }
  layerTypes(): Promise<string[]> {
    return this.#link.ask("layerTypes", []);
  }

  /** Ends the worker, which gives all memory back. What was made with the engine is closed. */
  close(): void {
    this.#link.end(new LoomError("lost", "the engine was closed"));
  }
  [dispose](): void {
    this.close();
  }
}

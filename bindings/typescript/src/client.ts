/** The engine as a program sees it: everything is asked of a worker, so that the caller never waits. */

import * as ffi from "./ffi.js";
import { LoomError } from "./errors.js";
import { Genome, Mesh, Population } from "./evolution.js";
import type { Source } from "./files.js";
import { checkOptions, namesOf } from "./known.js";
import { sequential, type Axes, type Layer, type NetworkDescription } from "./layer.js";
import { Closable, dispose, Link, type Events, type Started } from "./link.js";
import type { NumberArray, Tensor } from "./memory.js";
import { augmentOptions, trainerOptions, type TrainerOptions } from "./options.js";
import { chatNames, chatOptions, jsonText, messagesText, type ChatOptions, type ReplyMessage, type Turn } from "./messages.js";
import type { GenerationData, Handle, Running, StartOptions, TokenData } from "./protocol.js";
import type { Variant } from "./module.js";

export interface InitOptions {
  /** Lanes of work, the engine's worker included. 0, the default, means all cores; 1 means no shared memory. */
  readonly threads?: number;
  /** "gpu": WebGPU, where this host has it; elsewhere the CPU, and `info.notes` says why. Results are within the bound of
   * docs/webgpu.md of the CPU's, and not their bits. */
  readonly device?: ffi.Device;
  /** How inputs meet weights of integer types: as 8-bit numbers (the CPU) or as floats (the default on
   * a GPU). A comparison between the two needs the same setting. */
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

export interface CallOptions {
  /** Ends the work with code "cancelled". */
  readonly signal?: AbortSignal | undefined;
}

export interface FileOptions extends CallOptions {
  /** Keep the file in the origin's own file system, and bring only what is not there yet. Browsers alone. */
  readonly cache?: boolean;
  /** The name of the bytes in errors; for ONNX it ends in .onnx. */
  readonly name?: string;
  /** Bytes read, and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** The result of Network.compareDna(); docs/evolution.md has the rest. */
export interface DnaComparison {
  readonly overall_overlap: number;
  readonly coverage: number;
  readonly layer_overlaps: Readonly<Record<string, number>>;
  readonly logic_shifts: readonly { readonly source_pos: string; readonly target_pos: string; readonly overlap: number }[];
  readonly [field: string]: unknown;
}

const initNames = namesOf<InitOptions>({ threads: 0, device: 0, activations: 0, variant: 0, modules: 0, memoryLimit: 0,
  memory64: 0 });
const fileNames = namesOf<FileOptions>({ signal: 0, cache: 0, name: 0, onProgress: 0 });

/** Options of earlier versions: the name now, and the value. */
const kEarlier: Readonly<Record<string, (value: unknown) => readonly [string, unknown]>> = {
  keepOrder: (value) => ["shuffle", value !== true],
  nativeWeights: (value) => ["native", value],
};

function currentOptions(options: TrainerOptions): object {
  const out: Record<string, unknown> = {};
  for (const [before, was] of Object.entries(options) as [string, unknown][]) {
    const earlier = kEarlier[before];
    const [name, value] = earlier === undefined ? [before, was] : earlier(was);
    if (earlier !== undefined) console.warn(`loom: the option '${before}' is now '${name}'`);
    out[name] = value;
  }
  checkOptions(out, trainerOptions);
  checkOptions(options.augment ?? {}, augmentOptions);
  return out;
}

export type Prompt = string | ArrayLike<number>;

function ids(values: ArrayLike<number>): Int32Array {
  return values instanceof Int32Array ? values : Int32Array.from(values);
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
  /** Probabilities of outputs, by the loss that the network was trained with. */
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
  async save(format: ffi.NetworkFormat = "entity", options: ffi.SaveOptions = {}): Promise<Uint8Array> {
    checkOptions(options, ffi.saveOptions);
    return this.link.ask("networkSave", [this.handle, format, options]);
  }
  async session(options: ffi.SessionOptions = {}): Promise<Session> {
    checkOptions(options, ffi.sessionOptions);
    return new Session(this.link, await this.link.ask("sessionOpen", [this.handle, options]), () => this.ports());
  }
  /** Its inputs and its outputs. */
  ports(): Promise<ffi.Port[]> {
    return this.link.ask("networkPorts", [this.handle]);
  }
  async trainer(options: TrainerOptions = {}): Promise<Trainer> {
    return new Trainer(this.link, await this.link.ask("trainerCreate", [this.handle, currentOptions(options)]));
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
    checkOptions(options, ffi.spliceOptions);
    const handle = await this.link.ask("networkSplice", [this.handle, other.handle, options]);
    return new Network(this.link, handle, await this.link.ask("networkInfo", [handle]));
  }
  /** A copy with an adapter on every weight that `weights` selects, or on all that can have one (LoRA). */
  async withAdapter(options: ffi.AdapterOptions = {}): Promise<Network> {
    checkOptions(options, ffi.adapterOptions);
    const handle = await this.link.ask("networkWithAdapter", [this.handle, options]);
    return new Network(this.link, handle, await this.link.ask("networkInfo", [handle]));
  }
  /** A copy whose adapters were added to their weights. */
  async mergeAdapters(): Promise<Network> {
    const handle = await this.link.ask("networkMergeAdapters", [this.handle]);
    return new Network(this.link, handle, await this.link.ask("networkInfo", [handle]));
  }
  /** The network as one that ticks. */
  async mesh(options: ffi.MeshOptions = {}): Promise<Mesh> {
    checkOptions(options, ffi.meshOptions);
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
  /** The output of each cell on the way. */
  cells(inputs: Tensor): Promise<{ at: number[]; layer: string; values: Tensor }[]> {
    return this.link.ask("sessionCells", [this.handle, inputs]);
  }
  reset(): Promise<void> {
    return this.link.ask("sessionReset", [this.handle]);
  }
  /** With `lengths`: the steps of each sample of the next run; the rest of its inputs is padding. */
  setLengths(lengths: readonly number[]): Promise<void> {
    return this.link.ask("sessionSetLengths", [this.handle, lengths]);
  }
  /** Stateful: what the next call begins with. */
  states(): Promise<Tensor[]> {
    return this.link.ask("sessionStates", [this.handle]);
  }
  setStates(states: readonly Tensor[]): Promise<void> {
    return this.link.ask("sessionSetStates", [this.handle, states]);
  }
  /** Stateful: steps that the caches have. */
  position(): Promise<number> {
    return this.link.ask("sessionPosition", [this.handle]);
  }
  /** Memory of activations and states. */
  bytes(): Promise<number> {
    return this.link.ask("sessionBytes", [this.handle]);
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
  /** Two data sets, of which the first has this share of the samples. */
  async split(share: number, options: ffi.SplitOptions = {}): Promise<[Dataset, Dataset]> {
    checkOptions(options, ffi.splitOptions);
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
const fitNames = namesOf<Omit<FitOptions, keyof ffi.FitOptions>>({ signal: 0, validation: 0, onBatch: 0, onEpoch: 0 });

export class Trainer extends Closable {
  /** Trains, and resolves to what each epoch gave. */
  async fit(data: Dataset, { validation, onBatch, onEpoch, signal, ...options }: FitOptions = {}): Promise<ffi.Epoch[]> {
    checkOptions(options, ffi.fitOptions, fitNames);
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
  /** Memory in use; 0 before the first samples. */
  bytes(): Promise<number> {
    return this.link.ask("trainerBytes", [this.handle]);
  }
  /** One step on a batch of your own. */
  step(x: Tensor, y: Tensor, rate: number | null = null): Promise<ffi.StepReport> {
    return this.link.ask("trainerStep", [this.handle, x, y, rate]);
  }
  /** The same on samples, which may have further inputs. */
  stepSamples(batch: Dataset, rate: number | null = null): Promise<ffi.StepReport> {
    return this.link.ask("trainerStepSamples", [this.handle, batch.id, rate]);
  }
  evaluate(data: Dataset): Promise<ffi.Evaluation> {
    return this.link.ask("trainerEvaluate", [this.handle, data.id]);
  }
  /** The hash of the bits of all weights. */
  weightsHash(): Promise<string> {
    return this.link.ask("trainerHash", [this.handle]);
  }
}

/** Values that come while a promise is on its way. */
class Feed<T> {
  readonly #values: T[] = [];
  #ended = false;
  #error: unknown = null;
  #wake: (() => void) | null = null;

  push(value: T): void {
    this.#values.push(value);
    this.#wake?.();
  }
  follow(promise: Promise<unknown>): void {
    promise.then(() => undefined, (error: unknown) => void (this.#error = error)).finally(() => {
      this.#ended = true;
      this.#wake?.();
    });
  }
  async *values(): AsyncGenerator<T, void> {
    for (;;) {
      while (this.#values.length > 0) yield this.#values.shift() as T;
      if (this.#error !== null) throw this.#error;
      if (this.#ended) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

// ---- language models ------------------------------------------------------------------------------

export interface GenerateOptions extends ffi.GenerateOptions, CallOptions {
  /** Positions of the KV cache; 0 means the model's, at most 2048. */
  readonly context?: number;
  readonly onToken?: (token: TokenData) => void;
  /** Tokens of the prompt that were read, and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}
const generateNames = namesOf<Omit<GenerateOptions, keyof ffi.GenerateOptions>>({ signal: 0, context: 0, onToken: 0,
  onProgress: 0 });

/** Options of calls that make tokens of a text, and texts of tokens. */
export interface EncodeOptions {
  /** Whether special tokens of a text are read, and put at its ends. */
  readonly specialTokens?: boolean;
}
export interface DecodeOptions {
  /** Leaves special tokens out of the text. */
  readonly skipSpecial?: boolean;
}
const encodeNames = namesOf<EncodeOptions>({ specialTokens: 0 });
const decodeNames = namesOf<DecodeOptions>({ skipSpecial: 0 });

/** New text, with how it came to be. `stop`: "eos", "string", "length", "context" or "cancelled". */
export type Generation = GenerationData;

/** A language model. Every call begins with an empty context, and calls take turns. */
export class LLM extends Closable {
  readonly info: ffi.ModelInfo;
  constructor(link: Link, handle: Handle, info: ffi.ModelInfo) {
    super(link, handle);
    this.info = info;
  }

  /** A signal that ends it is not an error: `stop` is "cancelled" then. */
  async generate(prompt: Prompt, { context = 0, onToken, onProgress, signal, ...options }: GenerateOptions = {}):
    Promise<Generation> {
    checkOptions(options, ffi.generateOptions, generateNames);
    const events = {
      token: onToken ?? ((): void => undefined),
      progress: ({ done, total }: { done: number; total: number }): void => onProgress?.(done, total),
    };
    const what = typeof prompt === "string" ? prompt : ids(prompt);
    return this.link.ask("modelGenerate", [this.handle, what, options, { context }], events as Events, signal);
  }

  /** The text token by token. Leaving the loop ends the work. */
  async *stream(prompt: Prompt, options: GenerateOptions = {}): AsyncGenerator<TokenData, void> {
    const feed = new Feed<TokenData>(), leaving = new AbortController();
    const signal = options.signal === undefined ? leaving.signal : AbortSignal.any([options.signal, leaving.signal]);
    feed.follow(this.generate(prompt, { ...options, signal, onToken: (token) => feed.push(token) }));
    try {
      yield* feed.values();
    } finally {
      leaving.abort();
    }
  }

  /** The next turn of a conversation, by the model's own template, token by token. The loop's result is the turn as a
   * message with text, reasoning and calls of `tools`: `const message = (await generator.next()).value` at its end. */
  async *chat(turns: readonly Turn[], { tools, documents, variables, date, continueFinalMessage = false, ...options }:
    GenerateOptions & Omit<ChatOptions, "noReply"> = {}): AsyncGenerator<TokenData, ReplyMessage> {
    const how = chatOptions({ tools, documents, variables, continueFinalMessage, ...(date === undefined ? {} : { date }) });
    const { text: prompt, ids } = await this.link.ask("modelChat", [this.handle, messagesText(turns), how]);
    let text = "";
    for await (const token of this.stream(ids, how.tools === undefined ? options : { specialText: true, ...options })) {
      text += token.text;
      yield token;
    }
    try {
      return await this.readReply(text, { prompt, tools });
    } catch (error) {  // the small module reads no calls
      if (how.tools !== undefined || (error as LoomError).code !== "unsupported") throw error;
      return { role: "assistant", content: text };
    }
  }
  /** The conversation as the template writes it. */
  async renderChat(turns: readonly Turn[], options: ChatOptions = {}): Promise<string> {
    checkOptions(options, chatNames);
    return (await this.link.ask("modelChat", [this.handle, messagesText(turns), chatOptions(options)])).text;
  }
  /** A reply to the prompt of renderChat() as a message. Generate it with `specialText`. */
  async readReply(text: string, { prompt = "", tools }: { readonly prompt?: string; readonly tools?: unknown } = {}):
    Promise<ReplyMessage> {
    const offered = tools === undefined || tools === null ? null : jsonText(tools);
    return JSON.parse(await this.link.ask("modelReadReply", [this.handle, text, prompt, offered])) as ReplyMessage;
  }

  async tokenize(text: string, options: EncodeOptions = {}): Promise<Int32Array> {
    checkOptions(options, encodeNames);
    return this.link.ask("modelTokenize", [this.handle, text, options.specialTokens ?? true]);
  }
  async detokenize(tokens: ArrayLike<number>, options: DecodeOptions = {}): Promise<string> {
    checkOptions(options, decodeNames);
    return this.link.ask("modelDetokenize", [this.handle, ids(tokens), options.skipSpecial ?? true]);
  }
  /** Vectors [texts, dimensions]; with pooling "none" of one text [tokens, dimensions]. */
  async embed(texts: readonly string[], options: ffi.EmbedOptions = {}): Promise<Tensor> {
    checkOptions(options, ffi.embedOptions);
    return this.link.ask("modelEmbed", [this.handle, texts, options]);
  }
  /** The documents by how well they answer the query, best first. */
  async rerank(query: string, documents: readonly string[], options: ffi.RerankOptions = {}): Promise<ffi.Ranked[]> {
    checkOptions(options, ffi.rerankOptions);
    return this.link.ask("modelRerank", [this.handle, query, documents, options]);
  }
  /** The form of calls of tools in replies of this model; "" if it has none. */
  toolFormat(): Promise<string> {
    return this.link.ask("modelToolFormat", [this.handle]);
  }
  /** Logits [vocab] after the last of these tokens. */
  logits(tokens: ArrayLike<number>): Promise<Float32Array> {
    return this.link.ask("modelLogits", [this.handle, ids(tokens)]);
  }
}

/** Text to tokens and back, without the weights of a model. */
export class Tokenizer extends Closable {
  async encode(text: string, options: EncodeOptions = {}): Promise<Int32Array> {
    checkOptions(options, encodeNames);
    return this.link.ask("tokenizerEncode", [this.handle, text, options.specialTokens ?? true]);
  }
  async decode(tokens: ArrayLike<number>, options: DecodeOptions = {}): Promise<string> {
    checkOptions(options, decodeNames);
    return this.link.ask("tokenizerDecode", [this.handle, ids(tokens), options.skipSpecial ?? true]);
  }
  /** Ids of the special tokens, ascending. */
  specialTokens(): Promise<Int32Array> {
    return this.link.ask("tokenizerSpecial", [this.handle]);
  }
  /** The id of a token as the vocabulary writes it. Errors: "not_found". */
  tokenId(token: string): Promise<number> {
    return this.link.ask("tokenizerId", [this.handle, token]);
  }
  /** The highest id and one more. */
  vocabSize(): Promise<number> {
    return this.link.ask("tokenizerSize", [this.handle]);
  }
}

/** The contents of a file with a model, without running it. */
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

/** The result of ModelFile.json(). A layer comes before those below it, which are a `depth` deeper. */
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

  /** The variant of the module that runs, and the reason. */
  get info(): Running {
    return this.#info;
  }
  #reading(options: FileOptions): Events {
    return { ...progressOf(options), moved: (info: Running) => void (this.#info = info) } as Events;
  }

  static async start(start: () => Started, { threads = 0, ...more }: InitOptions): Promise<Loom> {
    checkOptions(more, initNames);
    const started = start(), link = new Link(started);
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
    checkOptions(more, ffi.loadOptions, ["input"]);
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
    checkOptions(options, ffi.loadOptions, fileNames);
    const { cache, name, onProgress, signal, ...more } = options;
    void onProgress;
    return this.#network(await this.#link.ask("networkLoad", [source, { cache, name }, more], this.#reading(options), signal));
  }

  /** A language model: .entity or GGUF. */
  async load(source: Source, options: FileOptions & ffi.ModelOptions = {}): Promise<LLM> {
    checkOptions(options, ffi.modelOptions, fileNames);
    const { cache, name, onProgress, signal, ...more } = options;
    void onProgress;
    const handle = await this.#link.ask("modelLoad", [source, { cache, name }, more], this.#reading(options), signal);
    return new LLM(this.#link, handle, await this.#link.ask("modelInfo", [handle]));
  }

  /** A language model of a named shape with random weights, the same for the same seed everywhere. No tokenizer. */
  async randomModel(shape: string, options: { dtype?: ffi.Dtype; seed?: number } = {}): Promise<LLM> {
    checkOptions(options, ["dtype", "seed"]);
    const { dtype = "float32", seed = 1 } = options;
    const handle = await this.#link.ask("modelRandom", [shape, dtype, seed]);
    return new LLM(this.#link, handle, await this.#link.ask("modelInfo", [handle]));
  }

  /** Looks into any file that can be loaded. */
  async open(source: Source, options: FileOptions = {}): Promise<ModelFile> {
    checkOptions(options, fileNames);
    const { cache, name, signal } = options;
    const handle = await this.#link.ask("fileOpen", [source, { cache, name }], this.#reading(options), signal);
    return new ModelFile(this.#link, handle);
  }

  /** That of a model, or a tokenizer.json. */
  async tokenizer(source: Source, options: FileOptions = {}): Promise<Tokenizer> {
    checkOptions(options, fileNames);
    const { cache, name, signal } = options;
    const handle = await this.#link.ask("tokenizerLoad", [source, { cache, name }], this.#reading(options), signal);
    return new Tokenizer(this.#link, handle);
  }

  /** Inputs [n, ...], and labels (integers) or targets (floats). */
  async dataset(x: Tensor, y: Tensor | null = null): Promise<Dataset> {
    return this.#dataset(await this.#link.ask("datasetFromArrays", [x, y]));
  }
  /** .csv, .npz, .npy, .safetensors, IDX. `network`: the one that it is for, where that matters. */
  async loadDataset(source: Source, options: FileOptions & ffi.DatasetOptions & { network?: Network } = {}):
    Promise<Dataset> {
    checkOptions(options, ffi.datasetOptions, fileNames, ["network"]);
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
    checkOptions(options, ffi.neatOptions);
    return new Population(this.#link, await this.#link.ask("populationCreate", [options]));
  }
  /** The network of a genome, with the same bits. */
  async genomeNetwork(genome: Genome): Promise<Network> {
    return this.#network(await this.#link.ask("genomeNetwork", [genome.id]));
  }

  /** Bytes that the objects of the engine hold, and all memory of the module, which never shrinks. */
  memory(): Promise<ffi.Memory & { heap: number }> {
    return this.#link.ask("memory", []);
  }
  layerTypes(): Promise<string[]> {
    return this.#link.ask("layerTypes", []);
  }

  /** Ends the worker, which gives all memory back. Objects of the engine are closed. */
  close(): void {
    this.#link.end(new LoomError("lost", "the engine was closed"));
  }
  [dispose](): void {
    this.close();
  }
}

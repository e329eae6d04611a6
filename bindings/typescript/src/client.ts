/** The engine as a program sees it: everything is asked of a worker, so that whoever calls never waits. */

import type * as ffi from "./ffi.js";
import { LoomError, revived } from "./errors.js";
import type { Source } from "./files.js";
import { sequential, type Axes, type Layer, type NetworkDescription } from "./layer.js";
import type { NumberArray, Tensor } from "./memory.js";
import type { CancelToken, GenerationData, Handle, Operations, Port, Reply, Request, StartOptions, TokenData, Turn }
  from "./protocol.js";
import type { Variant } from "./module.js";

export interface InitOptions {
  /** Lanes of work, the engine's worker included. 0, the default: as many as there are cores; 1: no shared memory. */
  readonly threads?: number;
  /** A module in place of the one that suits this host best. */
  readonly variant?: Variant;
  /** Addresses or bytes of the modules, where a bundler has put them elsewhere. */
  readonly modules?: Partial<Record<Variant, string | Uint8Array>>;
  /** Bytes that reading files may take. */
  readonly memoryLimit?: number;
}

/** A worker that was started, as this host starts them. */
export interface Started {
  readonly port: Port;
  terminate(): void;
  /** Is told when the worker ends by itself. */
  onEnd(handler: (why: string) => void): void;
}

export interface CallOptions {
  /** Ends the work with code "cancelled". */
  readonly signal?: AbortSignal | undefined;
}

export interface FileOptions extends CallOptions {
  /** Keep the file in the origin's own file system, and bring only what is not there yet. Browsers alone. */
  readonly cache?: boolean;
  /** What errors call the bytes; of ONNX it ends in .onnx. */
  readonly name?: string;
  /** Bytes read, and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}

export type Prompt = string | ArrayLike<number>;

/** `Symbol.dispose` where the host has it. */
const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

type Events = Readonly<Record<string, (value: never) => void>>;

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly events: Events;
}

function cancelToken(signal: AbortSignal): { token: CancelToken; cancel(): void; end(): void } {
  const isolated = (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated ?? true;
  if (typeof SharedArrayBuffer === "function" && isolated) {
    const word = new SharedArrayBuffer(4);
    const cancel = (): void => void Atomics.store(new Int32Array(word), 0, 1);
    signal.addEventListener("abort", cancel);
    return { token: { word }, cancel, end: () => signal.removeEventListener("abort", cancel) };
  }
  // No memory can be shared: the worker looks whether this address still exists.
  const url = URL.createObjectURL(new Blob(["go on"]));
  const cancel = (): void => URL.revokeObjectURL(url);
  signal.addEventListener("abort", cancel);
  return { token: { url }, cancel, end: () => (signal.removeEventListener("abort", cancel), cancel()) };
}

/** The connection to a worker. */
class Link {
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #over: LoomError | null = null;

  constructor(readonly started: Started) {
    started.port.listen((reply: Reply) => this.#take(reply));
    started.onEnd((why) => this.end(new LoomError("lost", `the engine's worker ended: ${why}; make a new engine`)));
  }

  #take(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    if (waiting === undefined) return;
    if ("event" in reply) return waiting.events[reply.event]?.(reply.value as never);
    this.#waiting.delete(reply.id);
    if ("error" in reply) waiting.reject(revived(reply.error));
    else waiting.resolve(reply.result);
  }

  end(why: LoomError): void {
    this.#over ??= why;
    this.started.terminate();
    for (const waiting of this.#waiting.values()) waiting.reject(this.#over);
    this.#waiting.clear();
  }

  async ask<K extends keyof Operations>(operation: K, args: Parameters<Operations[K]>, events: Events = {},
    signal?: AbortSignal): Promise<ReturnType<Operations[K]>> {
    if (this.#over !== null) throw this.#over;
    if (signal?.aborted === true) throw new LoomError("cancelled", `${operation}: cancelled before it began`);
    const cancelling = signal === undefined ? null : cancelToken(signal);
    try {
      return await new Promise((resolve, reject) => {
        const id = this.#next++;
        this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject, events });
        this.started.port.post({ id, operation, args, cancel: cancelling?.token } satisfies Request);
      });
    } finally {
      cancelling?.end();
    }
  }
}

/** What is closed at once by close(), and at the end of its block by `using`. */
abstract class Closable {
  #closed = false;
  constructor(protected readonly link: Link, protected readonly handle: Handle) {}
  /** Frees the memory. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    void this.link.ask("free", [this.handle]).catch(() => undefined);
  }
  [dispose](): void {
    this.close();
  }
}

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
    return new Session(this.link, await this.link.ask("sessionOpen", [this.handle, options]));
  }
  async trainer(options: ffi.TrainerOptions = {}): Promise<Trainer> {
    return new Trainer(this.link, await this.link.ask("trainerCreate", [this.handle, options]));
  }
  /** For Dataset.load. */
  get id(): Handle {
    return this.handle;
  }
}

/** A network that runs, piece by piece where it is stateful. */
export class Session extends Closable {
  run(inputs: Tensor): Promise<Tensor> {
    return this.link.ask("sessionRun", [this.handle, inputs]);
  }
  /** What each cell gives on the way. */
  cells(inputs: Tensor): Promise<{ at: number[]; layer: string; values: Tensor }[]> {
    return this.link.ask("sessionCells", [this.handle, inputs]);
  }
  reset(): Promise<void> {
    return this.link.ask("sessionReset", [this.handle]);
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
  evaluate(data: Dataset): Promise<ffi.Evaluation> {
    return this.link.ask("trainerEvaluate", [this.handle, data.id]);
  }
  /** Of the bits of all weights. */
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
  /** Positions of the KV cache; 0: the model's, at most 2048. */
  readonly context?: number;
  readonly onToken?: (token: TokenData) => void;
  /** Tokens of the prompt that were read, and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** New text, with how it came to be. `stop`: "eos", "string", "length", "context" or "cancelled". */
export type Generation = GenerationData;

/** A language model. Every call begins with an empty context, and calls take turns. */
export class LLM extends Closable {
  readonly info: ffi.ModelInfo;
  constructor(link: Link, handle: Handle, info: ffi.ModelInfo) {
    super(link, handle);
    this.info = info;
  }

  /** A signal that ends it is no error: `stop` is "cancelled" then. */
  async generate(prompt: Prompt, { context = 0, onToken, onProgress, signal, ...options }: GenerateOptions = {}):
    Promise<Generation> {
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

  /** The next turn of a conversation, by the model's own template, token by token. */
  async *chat(turns: readonly Turn[], options: GenerateOptions = {}): AsyncGenerator<TokenData, void> {
    const { ids: prompt } = await this.link.ask("modelChat", [this.handle, turns, {}]);
    yield* this.stream(prompt, options);
  }
  /** The conversation as the template writes it. */
  async renderChat(turns: readonly Turn[], options: ffi.ChatOptions = {}): Promise<string> {
    return (await this.link.ask("modelChat", [this.handle, turns, options])).text;
  }

  tokenize(text: string, { specialTokens = true } = {}): Promise<Int32Array> {
    return this.link.ask("modelTokenize", [this.handle, text, specialTokens]);
  }
  detokenize(tokens: ArrayLike<number>, { skipSpecial = true } = {}): Promise<string> {
    return this.link.ask("modelDetokenize", [this.handle, ids(tokens), skipSpecial]);
  }
  /** Logits [vocab] after the last of these tokens. */
  logits(tokens: ArrayLike<number>): Promise<Float32Array> {
    return this.link.ask("modelLogits", [this.handle, ids(tokens)]);
  }
}

/** Text to tokens and back, without the weights of a model. */
export class Tokenizer extends Closable {
  encode(text: string, { specialTokens = true } = {}): Promise<Int32Array> {
    return this.link.ask("tokenizerEncode", [this.handle, text, specialTokens]);
  }
  decode(tokens: ArrayLike<number>, { skipSpecial = true } = {}): Promise<string> {
    return this.link.ask("tokenizerDecode", [this.handle, ids(tokens), skipSpecial]);
  }
  /** The highest id and one more. */
  vocabSize(): Promise<number> {
    return this.link.ask("tokenizerSize", [this.handle]);
  }
}

// ---- the engine -----------------------------------------------------------------------------------

function progressOf({ onProgress }: FileOptions): Events {
  const told = ({ done, total }: { done: number; total: number }): void => onProgress?.(done, total);
  return { progress: told } as Events;
}

/** An engine: a worker with a module, and everything that was made with it. */
export class Loom {
  readonly #link: Link;
  private constructor(link: Link, readonly info: ReturnType<Operations["start"]>) {
    this.#link = link;
  }

  static async start(started: Started, { threads = 0, variant, modules, memoryLimit }: InitOptions): Promise<Loom> {
    const link = new Link(started);
    const options: StartOptions = { threads, variant, modules, memoryLimit };
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
    return this.#network(await this.#link.ask("networkLoad", [source, { cache, name }, more], progressOf(options), signal));
  }

  /** A language model: .entity or GGUF. */
  async load(source: Source, options: FileOptions & ffi.ModelOptions = {}): Promise<LLM> {
    const { cache, name, onProgress, signal, ...more } = options;
    void onProgress;
    const handle = await this.#link.ask("modelLoad", [source, { cache, name }, more], progressOf(options), signal);
    return new LLM(this.#link, handle, await this.#link.ask("modelInfo", [handle]));
  }

  /** That of a model, or a tokenizer.json. */
  async tokenizer(source: Source, options: FileOptions = {}): Promise<Tokenizer> {
    const { cache, name, signal } = options;
    const handle = await this.#link.ask("tokenizerLoad", [source, { cache, name }], progressOf(options), signal);
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
      progressOf(options), signal));
  }
  async #dataset(handle: Handle): Promise<Dataset> {
    return new Dataset(this.#link, handle, await this.#link.ask("datasetInfo", [handle]));
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

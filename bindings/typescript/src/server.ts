/** The worker of an engine: it has the module, and does what its client asks, one request after the other. */

import * as ffi from "./ffi.js";
import { Calls } from "./calls.js";
import { LoomError } from "./errors.js";
import type { GpuHost } from "./gpu.js";
import { openGpu } from "./gpu_start.js";
import type { Gpu } from "./gpu_types.js";
import { after, ending, type Later } from "./later.js";
import { evolutionOperations } from "./evolution_server.js";
import { moreOperations } from "./more_server.js";
import { open, readInto, type Opened, type Reading, type Source } from "./files.js";
import type { Scope, Struct, Tensor } from "./memory.js";
import { withOptions } from "./named.js";
import { chooseVariant, chooseWide, host, isWide, Loaded, type Host, type LaneStart, type Variant } from "./module.js";
import type { CancelToken, GenerationData, Handle, LoadOptions, Operations, Port, Reply, Request, Running, StartOptions }
  from "./protocol.js";

/** The differences between a page and Node.js. */
export interface Platform {
  /** The module of the package. */
  module(variant: Variant): Promise<WebAssembly.Module>;
  /** Starts a worker that becomes a lane; resolves when it is about to, to what ends it. */
  lane(start: LaneStart): Promise<() => void>;
  readonly cores: number;
  readonly readPath: ((path: string) => Promise<Opened>) | null;
  /** Its WebGPU. Throws LoomError "unsupported", which says why there is none. */
  gpu(): Promise<Gpu>;
}

const kPollMs = 40;  // between looks at an address that may be revoked
const kMostThreads = 32;
// A module with addresses of 32 bits holds 2 GiB; beside a file it needs some of them.
const kLargestFile = 2 ** 31 - 2 ** 28;

/** Whether the client has said that the request shall end. */
class Cancel {
  readonly #word: Int32Array | null;
  readonly #url: string | null;
  #next = 0;
  constructor(token: CancelToken | undefined) {
    this.#word = token?.word === undefined ? null : new Int32Array(token.word);
    this.#url = token?.url ?? null;
  }
  get asked(): boolean {
    if (this.#word !== null) return Atomics.load(this.#word, 0) !== 0;
    if (this.#url === null || performance.now() < this.#next) return false;
    this.#next = performance.now() + kPollMs;
    try {
      const request = new XMLHttpRequest();
      request.open("GET", this.#url, false);
      request.send();
      return request.status !== 200;
    } catch {
      return true;
    }
  }
}

interface Context {
  readonly cancel: Cancel;
  tell(event: string, value: unknown): void;
}

export class Server {
  readonly #calls = new Calls();
  #engine = 0;
  #started: StartOptions = { threads: 0 };
  #variant: Variant = "simd";
  #endLanes: (() => void)[] = [];

  constructor(readonly platform: Platform) {}

  /** Serves a port for good. */
  serve(port: Port): void {
    let turn: Promise<void> = Promise.resolve();
    port.listen((request: Request) => {
      turn = turn.then(() => this.#answer(request, port));
    });
  }

  /** Does it at once, on this thread. Throws LoomError. */
  now<K extends keyof Operations>(operation: K, ...args: Parameters<Operations[K]>):
    ReturnType<Operations[K]> | Promise<ReturnType<Operations[K]>> {
    const context: Context = { cancel: new Cancel(undefined), tell: () => undefined };
    return (this.#operations[operation] as (context: Context, ...all: unknown[]) => never)(context, ...args);
  }

  async #answer(request: Request, port: Port): Promise<void> {
    const { id } = request;
    const context: Context = {
      cancel: new Cancel(request.cancel),
      tell: (event, value) => port.post({ id, event, value } satisfies Reply),
    };
    try {
      const body = this.#operations[request.operation] as (context: Context, ...args: unknown[]) => unknown;
      const result = await body(context, ...request.args);
      port.post({ id, result } satisfies Reply, buffersOf(result));
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      port.post({ id, error: error instanceof LoomError && code !== undefined ? { code, message } : { message } });
    }
  }

  // ---- files

  async #read(context: Context, source: Source, load: LoadOptions): Promise<{ address: number; name: string; size: number }> {
    const reading: Reading = {
      cache: load.cache === true,
      progress: (done, total) => {
        context.tell("progress", { done, total });
        return !context.cancel.asked;
      },
    };
    const opened = await open(source, reading, this.platform.readPath);
    if (opened.size > kLargestFile && !isWide(this.#variant)) context.tell("moved", await this.#widen(opened));
    const address = await readInto(this.#calls.module.memory, opened, reading);
    return { address, name: load.name ?? opened.name, size: opened.size };
  }

  /** Reads a file that the object may continue to use in place. */
  async #borrowed(context: Context, kind: "network" | "model", source: Source, load: LoadOptions, struct: Struct,
    options: object): Promise<Handle> {
    const file = await this.#read(context, source, load);
    try {
      const address = await this.#calls.out((scope, out, module) => {
        const name = module.memory.text(scope, file.name);
        const how = module.memory.options(scope, struct, { ...options, borrow: true });
        return module.wait((f) => f[`loom_${kind}_load_memory`](this.#engine, file.address, BigInt(file.size), name, how, out));
      });
      return this.#calls.add(kind, address, file.address);
    } catch (error) {
      if ((error as LoomError).code !== "internal") this.#calls.module.memory.free(file.address);
      throw error;
    }
  }

  // ---- operations

  async #start(options: StartOptions): Promise<Running> {
    const notes: string[] = [];
    this.#started = options;
    if (options.device === "gpu") {
      try {
        return await this.#startOnGpu(options);
      } catch (error) {
        if (!(error instanceof LoomError) || error.code !== "unsupported") throw error;
        notes.push(`the CPU computes: ${error.message}`);
      }
    }
    const here = host();
    const wanted = Math.min(options.threads > 0 ? options.threads : this.platform.cores, kMostThreads);
    if (wanted > 1 && !here.shared) {
      notes.push("one thread: this page is not isolated, so no memory can be shared; its server must send " +
        "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp");
    }
    return this.#startOnCpu(options.variant ?? this.#chosen(here, wanted, notes), wanted, notes);
  }

  #chosen(here: Host, threads: number, notes: string[]): Variant {
    if (this.#started.memory64 === true) {
      try {
        const variant = chooseWide(here, threads);
        notes.push("memory64: it was asked for; a module holds 16 GiB");
        return variant;
      } catch (error) {
        notes.push(`addresses of 32 bits: ${(error as Error).message}`);
      }
    }
    return chooseVariant(here, threads);
  }

  async #startOnCpu(variant: Variant, threads: number, notes: string[]): Promise<Running> {
    await this.#instance(variant, this.#started, null);
    if (variant.endsWith("threads")) {
      const starts = Array.from({ length: threads - 1 }, () => this.#calls.module.laneStart());
      this.#endLanes = await Promise.all(starts.map((start) => this.platform.lane(start)));
      while (this.#calls.module.call((f) => f.loom_host_lanes()) < threads) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    return { variant, notes, ...await this.#createEngine(this.#started, {}) };
  }

  /** Begins again in a module with addresses of 64 bits, for a file that one with 32 does not hold. */
  async #widen({ name, size }: Opened): Promise<Running> {
    const why = `${name}: ${size} bytes are more than a module with addresses of 32 bits holds`;
    if (this.#started.variant !== undefined || this.#variant === "gpu") {
      throw new LoomError("out_of_memory", `${why}, and this engine was started as ${this.#variant}; start one with memory64`);
    }
    if (!this.#calls.empty) {
      throw new LoomError("out_of_memory", `${why}, and this engine has other objects, which would end; start one with memory64`);
    }
    const threads = this.#endLanes.length + 1;
    let variant: Variant;
    try {
      variant = chooseWide(host(), threads);
    } catch (error) {
      throw new LoomError("out_of_memory", `${why}: ${(error as Error).message}`);
    }
    for (const end of this.#endLanes.splice(0)) end();
    return this.#startOnCpu(variant, threads, [`memory64: ${why}`]);
  }

  /** Errors: unsupported, where this host lacks something. */
  async #startOnGpu(options: StartOptions): Promise<Running> {
    const gpu = await openGpu(host(), this.platform.gpu);
    await this.#instance("gpu", options, gpu);
    return { variant: "gpu", notes: [], ...await this.#createEngine(options, { device: "gpu" }) };
  }

  async #instance(variant: Variant, options: StartOptions, gpu: GpuHost | null): Promise<void> {
    const given = options.modules?.[variant];
    const module = given === undefined ? await this.platform.module(variant) : await compiled(given);
    this.#calls.start(await Loaded.create(module, undefined, gpu, isWide(variant)));
    this.#variant = variant;
    const version = this.#calls.module.call((f) => f.loom_abi_version());
    if (version !== ffi.ABI_VERSION) {
      throw new LoomError("bad_file", `the module has interface ${version}, the package ${ffi.ABI_VERSION}`);
    }
  }

  async #createEngine({ memoryLimit, activations }: StartOptions, more: object): Promise<ffi.EngineInfo> {
    this.#engine = await this.#calls.out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_engine_options, { memoryLimit, activations, ...more });
      return m.wait((f) => f.loom_engine_create(how, out));
    });
    return this.#calls.report(ffi.loom_engine_info, (at, m) => m.call((f) => f.loom_engine_get_info(this.#engine, at)));
  }

  /** Does something with a session of a model. */
  #running<T>(model: Handle, options: object, body: (session: number) => Later<T>): Later<T> {
    const at = this.#calls.at(model, "model");
    const started = this.#calls.out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_model_session_options, options);
      return m.wait((f) => f.loom_model_start(at, how, out));
    });
    return after(started, (session) => ending(() => body(session),
      () => this.#calls.module.wait((f) => f.loom_model_session_free(session))));
  }

  #generate(context: Context, running: number, prompt: string | Int32Array, options: object): Later<GenerationData> {
    const said = (...args: (number | bigint)[]): boolean => {
      // A token has one argument more than its `user`, progress has two.
      if (args.length === 1) context.tell("token", readToken(this.#calls.module, Number(args[0])));
      else context.tell("progress", { done: Number(args[0]), total: Number(args[1]) });
      return !context.cancel.asked;
    };
    const generation = this.#calls.listening(said, (user) => this.#calls.out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_generate_options, options, {
        user, on_token: m.callback("loom_token_fn"), on_prefill: m.callback("loom_progress_fn"),
      });
      if (typeof prompt === "string") {
        const text = m.memory.text(scope, prompt);
        return m.wait((f) => f.loom_model_session_generate(running, text, how, out));
      }
      const ids = m.memory.ids(scope, prompt);
      return m.wait((f) => f.loom_model_session_generate_ids(running, ids, BigInt(prompt.length), how, out));
    }));
    return after(generation, (made) => this.#takeGeneration(made));
  }

  #takeGeneration(generation: number): GenerationData {
    return this.#calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16));
      this.#calls.check(m.call((f) => f.loom_generation_text(generation, out, 0)));
      const text = m.memory.readText(m.memory.readAddress(out));
      this.#calls.check(m.call((f) => f.loom_generation_ids(generation, out, out + 8)));
      const count = Number(m.memory.view.getBigInt64(out + 8, true));
      const ids = new Int32Array(m.memory.memory.buffer, m.memory.readAddress(out), count).slice();
      const info: ffi.GenerationInfo = this.#calls.report(ffi.loom_generation_info, (at) =>
        m.call((f) => f.loom_generation_get_info(generation, at)));
      m.call((f) => f.loom_generation_free(generation));
      return { ...info, text, ids };
    });
  }

  #chat(model: Handle, messages: string, options: object): { text: string; ids: Int32Array } {
    const at = this.#calls.at(model, "model");
    const text = this.#calls.text((scope, out, m) => {
      const list = m.memory.text(scope, messages), how = m.memory.options(scope, ffi.loom_chat_options, options);
      return m.call((f) => f.loom_model_render_messages(at, list, how, out));
    });
    const ids = this.#calls.ids((scope, out, size, m) => {
      const words = m.memory.text(scope, text);
      return m.call((f) => f.loom_model_tokenize(at, words, 0, out, size));
    });
    return { text, ids };
  }

  #fit(context: Context, trainer: Handle, train: Handle, validation: Handle | null, options: object): Later<ffi.Epoch[]> {
    const at = this.#calls.at(trainer, "trainer"), data = this.#calls.at(train, "dataset");
    const second = validation === null ? 0 : this.#calls.at(validation, "dataset");
    const epochs: ffi.Epoch[] = [];
    const said = (...args: (number | bigint)[]): boolean => {
      if (args.length === 1) {
        const epoch = this.#calls.module.memory.read(ffi.loom_epoch, Number(args[0])) as unknown as ffi.Epoch;
        epochs.push(epoch);
        context.tell("epoch", epoch);
      } else {
        context.tell("batch", { done: Number(args[0]), steps: Number(args[1]), loss: Number(args[2]) });
      }
      return !context.cancel.asked;
    };
    const done = this.#calls.listening(said, (user) => this.#calls.done((scope, m) => {
      const how = m.memory.options(scope, ffi.loom_fit_options, options, {
        user, on_epoch: m.callback("loom_epoch_fn"), on_batch: m.callback("loom_batch_fn"),
      });
      return m.wait((f) => f.loom_trainer_fit(at, data, second, how, 0));
    }));
    return after(done, () => epochs);
  }

  #cells(session: Handle, inputs: Tensor): Later<{ at: number[]; layer: string; values: Tensor }[]> {
    const at = this.#calls.at(session, "session"), cells: { at: number[]; layer: string; values: Tensor }[] = [];
    const said = (cell: number | bigint): boolean => {
      const { memory } = this.#calls.module, address = Number(cell), { fields } = memory.layout(ffi.loom_cell);
      const read = memory.read(ffi.loom_cell, address);
      const values = memory.copyTensor(memory.readAddress(address + fields.values[0]));
      cells.push({ at: read["at"] as number[], layer: String(read["layer"]), values });
      return true;
    };
    const done = this.#calls.listening(said, (user) => this.#calls.done((scope, m) => {
      const x = m.memory.tensor(scope, inputs);
      return m.wait((f) => f.loom_session_run_cells(at, x, m.callback("loom_cell_fn"), user));
    }));
    return after(done, () => cells);
  }

  /** All inputs and outputs, as a call that tells them one by one does: `values` where they were computed. */
  #ports(body: (user: number) => Later<void>): Later<{ port: ffi.Port; values: Tensor | null }[]> {
    const found: { port: ffi.Port; values: Tensor | null }[] = [];
    const said = (told: number | bigint): boolean => {
      const { memory } = this.#calls.module, address = Number(told), { fields } = memory.layout(ffi.loom_port);
      const { output, name, shape, batched, ids } = memory.read(ffi.loom_port, address) as unknown as ffi.Port;
      const values = memory.readAddress(address + fields.values[0]);
      found.push({ port: { output, name, shape, batched, ids }, values: values === 0 ? null : memory.copyTensor(values) });
      return true;
    };
    return after(this.#calls.listening(said, body), () => found);
  }
  #runPorts(session: Handle, inputs: readonly Tensor[]): Later<Record<string, Tensor>> {
    const at = this.#calls.at(session, "session");
    const told = this.#ports((user) => this.#calls.done((scope, m) => {
      const tensors = m.memory.tensors(scope, inputs);
      return m.wait((f) => f.loom_session_run_ports(at, tensors, BigInt(inputs.length), m.callback("loom_port_fn"), user));
    }));
    return after(told, (found) => Object.fromEntries(
      found.flatMap(({ port, values }) => port.output && values !== null ? [[port.name, values]] : [])));
  }

  #step(call: (m: Loaded, scope: Scope, rate: number, report: number) => Later<number>, rate: number | null):
    Later<ffi.StepReport> {
    return this.#calls.scoped((scope, m) => {
      const report = m.memory.report(scope, ffi.loom_step_report);
      const at = rate === null ? 0 : scope.keep(m.memory.allocate(8));
      if (rate !== null) m.memory.view.setFloat64(at, rate, true);
      return after(call(m, scope, at, report), (status) => {
        this.#calls.check(status);
        return m.memory.read(ffi.loom_step_report, report) as unknown as ffi.StepReport;
      });
    });
  }

  #saved(network: Handle, format: ffi.NetworkFormat, options: object): Later<Uint8Array> {
    const at = this.#calls.at(network, "network");
    return this.#calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16));
      const how = m.memory.options(scope, ffi.loom_save_options, options);
      const saved = m.wait((f) => f.loom_network_save_memory(at, ffi.NetworkFormat[format], how, out, out + 8));
      return after(saved, (status) => {
        this.#calls.check(status);
        const address = m.memory.readAddress(out);
        const bytes = m.memory.bytes(address, Number(m.memory.view.getBigInt64(out + 8, true))).slice();
        m.call((f) => f.loom_free(address));
        return bytes;
      });
    });
  }

  #parameters(network: Handle): ffi.ParameterInfo[] {
    const at = this.#calls.at(network, "network");
    return this.#calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(8));
      this.#calls.check(m.call((f) => f.loom_network_parameter_count(at, out)));
      return Array.from({ length: Number(m.memory.view.getBigInt64(out, true)) }, (_, i) =>
        this.#calls.report(ffi.loom_parameter_info, (info) =>
          m.call((f) => f.loom_network_parameter_info(at, BigInt(i), info))) as ffi.ParameterInfo);
    });
  }

  #logits(running: number, ids: Int32Array): Later<Float32Array> {
    return this.#calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16)), list = m.memory.ids(scope, ids);
      const fed = m.wait((f) => f.loom_model_session_feed(running, list, BigInt(ids.length)));
      const read = after(fed, (status) => {
        this.#calls.check(status);
        return m.wait((f) => f.loom_model_session_logits(running, out, out + 8));
      });
      return after(read, (status) => {
        this.#calls.check(status);
        const count = Number(m.memory.view.getBigInt64(out + 8, true));
        return new Float32Array(m.memory.memory.buffer, m.memory.readAddress(out), count).slice();
      });
    });
  }

  readonly #operations: { [K in keyof Operations]: (context: Context, ...args: Parameters<Operations[K]>) =>
    ReturnType<Operations[K]> | Promise<ReturnType<Operations[K]>> } = {
    start: (_, options) => this.#start(options),
    memory: () => ({
      ...this.#calls.report(ffi.loom_memory, (at, m) => m.call((f) => f.loom_engine_get_memory(this.#engine, at))) as ffi.Memory,
      heap: this.#calls.module.memory.memory.buffer.byteLength,
    }),
    free: (_, handle) => this.#calls.free(handle),
    layerTypes: () => this.#calls.text((_, out, m) => m.call((f) => f.loom_layer_types(out))).split(/\s+/).filter(Boolean),

    networkFromJson: (_, json, options) => this.#calls.add("network", this.#calls.out((scope, out, m) => {
      const text = m.memory.text(scope, json), how = m.memory.options(scope, ffi.loom_load_options, options);
      return m.wait((f) => f.loom_network_from_json(this.#engine, text, how, out));
    })),
    networkLoad: (context, source, load, options) =>
      this.#borrowed(context, "network", source, load, ffi.loom_load_options, options),
    networkFromBytes: (_, bytes, name, options) => this.#calls.add("network", this.#calls.out((scope, out, m) => {
      const at = scope.keep(m.memory.allocate(bytes.length));
      m.memory.bytes(at, bytes.length).set(bytes);
      const called = m.memory.text(scope, name), how = m.memory.options(scope, ffi.loom_load_options, options);
      return m.wait((f) => f.loom_network_load_memory(this.#engine, at, BigInt(bytes.length), called, how, out));
    })),
    networkSave: (_, handle, format, options) => this.#saved(handle, format, options),
    networkInfo: (_, handle) => this.#calls.report(ffi.loom_network_info, (at, m) =>
      m.call((f) => f.loom_network_get_info(this.#calls.at(handle, "network"), at))),
    networkText: (_, handle, what) => this.#calls.text((_scope, out, m) =>
      m.wait((f) => f[`loom_network_${what}`](this.#calls.at(handle, "network"), out))),
    networkPorts: (_, handle) => after(this.#ports((user) => this.#calls.done((_scope, m) => m.wait((f) =>
      f.loom_network_ports(this.#calls.at(handle, "network"), m.callback("loom_port_fn"), user)))),
      (found) => found.map(({ port }) => port)),
    networkClasses: (_, handle) => {
      const at = this.#calls.at(handle, "network");
      const info: ffi.NetworkInfo = this.#calls.report(ffi.loom_network_info, (to, m) =>
        m.call((f) => f.loom_network_get_info(at, to)));
      return Array.from({ length: info.classes }, (_v, i) =>
        this.#calls.text((_scope, out, m) => m.call((f) => f.loom_network_class(at, BigInt(i), out))));
    },
    networkParameters: (_, handle) => this.#parameters(handle),
    networkParameter: (_, handle, name) => this.#calls.array(this.#calls.out((scope, out, m) => {
      const text = m.memory.text(scope, name);
      return m.wait((f) => f.loom_network_parameter(this.#calls.at(handle, "network"), text, out));
    })),
    networkSetParameter: (_, handle, name, values) => this.#calls.done((scope, m) => {
      const text = m.memory.text(scope, name), tensor = m.memory.tensor(scope, values);
      return m.wait((f) => f.loom_network_set_parameter(this.#calls.at(handle, "network"), text, tensor));
    }),
    networkPredict: (_, handle, inputs) => this.#calls.array(this.#calls.out((scope, out, m) => {
      const tensor = m.memory.tensor(scope, inputs);
      return m.wait((f) => f.loom_network_predict(this.#calls.at(handle, "network"), tensor, out));
    })),
    networkProbabilities: (_, handle, outputs) => this.#calls.array(this.#calls.out((scope, out, m) => {
      const tensor = m.memory.tensor(scope, outputs);
      return m.wait((f) => f.loom_network_probabilities(this.#calls.at(handle, "network"), tensor, out));
    })),

    sessionOpen: (_, network, options) => this.#calls.add("session", this.#calls.out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_session_options, options);
      return m.wait((f) => f.loom_network_session(this.#calls.at(network, "network"), how, out));
    })),
    sessionRun: (_, handle, inputs) => this.#calls.array(this.#calls.out((scope, out, m) => {
      const tensor = m.memory.tensor(scope, inputs);
      return m.wait((f) => f.loom_session_run(this.#calls.at(handle, "session"), tensor, out));
    })),
    sessionRunPorts: (_, handle, inputs) => this.#runPorts(handle, inputs),
    sessionCells: (_, handle, inputs) => this.#cells(handle, inputs),
    sessionReset: (_, handle) => this.#calls.done((_scope, m) =>
      m.wait((f) => f.loom_session_reset(this.#calls.at(handle, "session")))),

    datasetFromArrays: (_, x, y) => this.#calls.add("dataset", this.#calls.out((scope, out, m) => {
      const inputs = m.memory.tensor(scope, x), targets = y === null ? 0 : m.memory.tensor(scope, y);
      return m.call((f) => f.loom_dataset_from_arrays(inputs, targets, out));
    })),
    datasetWithInput: (_, handle, name, values) => this.#calls.add("dataset", this.#calls.out((scope, out, m) => {
      const text = m.memory.text(scope, name), tensor = m.memory.tensor(scope, values);
      return m.call((f) => f.loom_dataset_with_input(this.#calls.at(handle, "dataset"), text, tensor, out));
    })),
    datasetLoad: async (context, source, load, network, options) => {
      const file = await this.#read(context, source, load);
      try {
        return this.#calls.add("dataset", this.#calls.out((scope, out, m) => {
          const name = m.memory.text(scope, file.name), how = m.memory.options(scope, ffi.loom_dataset_options, options);
          const net = network === null ? 0 : this.#calls.at(network, "network");
          return m.call((f) => f.loom_dataset_from_memory(file.address, BigInt(file.size), name, net, how, out));
        }));
      } finally {
        this.#calls.module.memory.free(file.address);
      }
    },
    datasetInfo: (_, handle) => this.#calls.report(ffi.loom_dataset_info, (at, m) =>
      m.call((f) => f.loom_dataset_get_info(this.#calls.at(handle, "dataset"), at))),
    datasetArray: (_, handle, which) => this.#calls.array(this.#calls.out((_scope, out, m) =>
      m.call((f) => f[`loom_dataset_${which}`](this.#calls.at(handle, "dataset"), out)))),
    datasetSplit: (_, handle, share, options) => this.#calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16)), how = m.memory.options(scope, ffi.loom_split_options, options);
      this.#calls.check(m.call((f) => f.loom_dataset_split(this.#calls.at(handle, "dataset"), share, how, out, out + 8)));
      const part = (at: number): Handle => this.#calls.add("dataset", m.memory.readAddress(at));
      return [part(out), part(out + 8)];
    }),

    trainerCreate: (_, network, options) => this.#calls.add("trainer", withOptions(this.#calls, "trainer", options, (how) =>
      this.#calls.out((_scope, out, m) =>
        m.wait((f) => f.loom_trainer_create_with(this.#calls.at(network, "network"), how, 0, out))))),
    trainerFit: (context, handle, train, validation, options) => this.#fit(context, handle, train, validation, options),
    trainerStep: (_, handle, x, y, rate) => this.#step((m, scope, at, report) => {
      const inputs = m.memory.tensor(scope, x), targets = m.memory.tensor(scope, y);
      return m.wait((f) => f.loom_trainer_step(this.#calls.at(handle, "trainer"), inputs, targets, at, report));
    }, rate),
    trainerStepSamples: (_, handle, batch, rate) => this.#step((m, _scope, at, report) => m.wait((f) =>
      f.loom_trainer_step_samples(this.#calls.at(handle, "trainer"), this.#calls.at(batch, "dataset"), at, report)), rate),
    trainerEvaluate: (_, handle, data) => this.#calls.report(ffi.loom_evaluation, (at, m) =>
      m.wait((f) => f.loom_trainer_evaluate(this.#calls.at(handle, "trainer"), this.#calls.at(data, "dataset"), at, 0))),
    trainerHash: (_, handle) => this.#calls.text((_scope, out, m) =>
      m.wait((f) => f.loom_trainer_weights_hash(this.#calls.at(handle, "trainer"), out))),

    modelLoad: (context, source, load, options) =>
      this.#borrowed(context, "model", source, load, ffi.loom_model_options, options),
    modelRandom: (_, shape, dtype, seed) => this.#calls.add("model", this.#calls.out((scope, out, m) => {
      const name = m.memory.text(scope, shape), type = ffi.Dtype[dtype];
      return m.wait((f) => f.loom_model_random(this.#engine, name, type, BigInt(seed), out));
    })),
    modelInfo: (_, handle) => this.#calls.report(ffi.loom_model_info, (at, m) =>
      m.call((f) => f.loom_model_get_info(this.#calls.at(handle, "model"), at))),
    modelTokenize: (_, handle, text, special) => this.#calls.ids((scope, ids, count, m) => {
      const words = m.memory.text(scope, text);
      return m.call((f) => f.loom_model_tokenize(this.#calls.at(handle, "model"), words, special ? 1 : 0, ids, count));
    }),
    modelDetokenize: (_, handle, ids, skip) => this.#calls.text((scope, out, m) => {
      const list = m.memory.ids(scope, ids);
      return m.call((f) => f.loom_model_detokenize(this.#calls.at(handle, "model"), list, BigInt(ids.length), skip ? 1 : 0, out));
    }),
    modelChat: (_, handle, messages, options) => this.#chat(handle, messages, options),
    modelGenerate: (context, handle, prompt, options, session) =>
      this.#running(handle, session, (running) => this.#generate(context, running, prompt, options)),
    modelLogits: (_, handle, ids) => this.#running(handle, {}, (running) => this.#logits(running, ids)),

    tokenizerLoad: async (context, source, load) => {
      const file = await this.#read(context, source, load);
      try {
        return this.#calls.add("tokenizer", this.#calls.out((scope, out, m) => {
          const name = m.memory.text(scope, file.name);
          return m.call((f) => f.loom_tokenizer_load_memory(this.#engine, file.address, BigInt(file.size), name, out));
        }));
      } finally {
        this.#calls.module.memory.free(file.address);
      }
    },
    tokenizerEncode: (_, handle, text, special) => this.#calls.ids((scope, ids, count, m) => {
      const words = m.memory.text(scope, text);
      return m.call((f) => f.loom_tokenizer_encode(this.#calls.at(handle, "tokenizer"), words, special ? 1 : 0, ids, count));
    }),
    tokenizerDecode: (_, handle, ids, skip) => this.#calls.text((scope, out, m) => {
      const list = m.memory.ids(scope, ids), count = BigInt(ids.length);
      return m.call((f) => f.loom_tokenizer_decode(this.#calls.at(handle, "tokenizer"), list, count, skip ? 1 : 0, out));
    }),
    tokenizerSize: (_, handle) => this.#calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(8));
      this.#calls.check(m.call((f) => f.loom_tokenizer_vocab_size(this.#calls.at(handle, "tokenizer"), out)));
      return Number(m.memory.view.getBigInt64(out, true));
    }),

    fileOpen: async (context, source, load) => {
      const file = await this.#read(context, source, load);
      try {
        const address = this.#calls.out((scope, out, m) => {
          const name = m.memory.text(scope, file.name), size = BigInt(file.size);
          return m.call((f) => f.loom_model_file_open_memory(this.#engine, file.address, size, name, 1, out));
        });
        return this.#calls.add("model_file", address, file.address);
      } catch (error) {
        if ((error as LoomError).code !== "internal") this.#calls.module.memory.free(file.address);
        throw error;
      }
    },
    fileJson: (_, handle) => this.#calls.text((_scope, out, m) =>
      m.call((f) => f.loom_model_file_json(this.#calls.at(handle, "model_file"), out))),
    fileValues: (_, handle, tensor) => this.#calls.array(this.#calls.out((_scope, out, m) =>
      m.call((f) => f.loom_model_file_values(this.#calls.at(handle, "model_file"), BigInt(tensor), out)))),
    fileHash: (_, handle, tensor) => this.#calls.text((_scope, out, m) =>
      m.call((f) => f.loom_model_file_hash(this.#calls.at(handle, "model_file"), BigInt(tensor), out))),

    ...evolutionOperations(this.#calls, () => this.#engine),
    ...moreOperations(this.#calls),
  };
}

function readToken(module: Loaded, address: number): { id: number; text: string; logprob: number } {
  const token = module.memory.read(ffi.loom_token, address) as unknown as ffi.Token;
  return { id: token.id, text: token.text, logprob: token.logprob };
}

/** The buffers of typed arrays in a result: they are handed over, not copied. */
function buffersOf(result: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(result)) return result.buffer instanceof ArrayBuffer ? [result.buffer] : [];
  if (Array.isArray(result)) return result.flatMap(buffersOf);
  if (typeof result === "object" && result !== null) return Object.values(result).flatMap(buffersOf);
  return [];
}

async function compiled(module: string | Uint8Array): Promise<WebAssembly.Module> {
  if (typeof module !== "string") return WebAssembly.compile(module as Uint8Array<ArrayBuffer>);
  return WebAssembly.compile(await (await fetch(module)).arrayBuffer());
}

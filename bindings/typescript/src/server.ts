/** The worker of an engine: it has the module, and does what its client asks, one request after the other. */

import * as ffi from "./ffi.js";
import { LoomError, statusName } from "./errors.js";
import { open, readInto, type Opened, type Reading, type Source } from "./files.js";
import { Scope, type Struct, type Tensor } from "./memory.js";
import { chooseVariant, host, Loaded, type LaneStart, type Variant } from "./module.js";
import type { CancelToken, GenerationData, Handle, LoadOptions, Operations, Port, Reply, Request, StartOptions, Turn }
  from "./protocol.js";

/** What differs between a page and Node.js. */
export interface Platform {
  /** The module of the package. */
  module(variant: Variant): Promise<WebAssembly.Module>;
  /** Starts a worker that becomes a lane; resolves when it is about to. */
  lane(start: LaneStart): Promise<void>;
  readonly cores: number;
  readonly readPath: ((path: string) => Promise<Opened>) | null;
}

type Kind = "network" | "session" | "dataset" | "trainer" | "model" | "tokenizer";
interface Entry {
  readonly kind: Kind;
  readonly address: number;
  /** Memory of the file that it is borrowed from; 0: none. */
  readonly bytes: number;
}

const kPollMs = 40;  // between looks at an address that may be revoked
const kMostThreads = 32;

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
  #loaded: Loaded | null = null;
  #engine = 0;
  readonly #objects = new Map<Handle, Entry>();
  #next = 1;

  constructor(readonly platform: Platform) {}

  /** Serves a port for good. */
  serve(port: Port): void {
    let turn: Promise<void> = Promise.resolve();
    port.listen((request: Request) => {
      turn = turn.then(() => this.#answer(request, port));
    });
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

  // ---- calls of the module

  get #module(): Loaded {
    if (this.#loaded === null) throw new LoomError("invalid_argument", "the engine was not started");
    return this.#loaded;
  }

  /** Calls `body` with a scope, and throws what the module says where it gives no 0. */
  #scoped<T>(body: (scope: Scope, module: Loaded) => T): T {
    const module = this.#module, scope = new Scope(module.memory);
    try {
      return body(scope, module);
    } finally {
      scope.end();
    }
  }

  #check(status: number): void {
    const module = this.#module, thrown = module.takeThrown();
    if (thrown !== null) throw thrown;
    if (status === 0) return;
    const line = module.call((f) => module.memory.readText(f.loom_last_error()));
    throw new LoomError(statusName(status), line);
  }

  /** The address that a call writes to its last argument. */
  #out(body: (scope: Scope, out: number, module: Loaded) => number): number {
    return this.#scoped((scope, module) => {
      const out = scope.keep(module.memory.allocate(8));
      module.memory.bytes(out, 8).fill(0);
      this.#check(body(scope, out, module));
      return module.memory.view.getUint32(out, true);
    });
  }

  #text(body: (scope: Scope, out: number, module: Loaded) => number): string {
    const address = this.#out(body), module = this.#module;
    const text = module.memory.readText(address);
    module.call((f) => f.loom_free(address));
    return text;
  }

  #report(struct: Struct, body: (address: number, module: Loaded) => number): never {
    return this.#scoped((scope, module) => {
      const address = module.memory.report(scope, struct);
      this.#check(body(address, module));
      return module.memory.read(struct, address);
    }) as never;
  }

  /** A copy of an array of the library, which is freed. */
  #array(address: number): Tensor {
    return this.#scoped((scope, module) => {
      const view = module.memory.report(scope, ffi.loom_tensor);
      this.#check(module.call((f) => f.loom_array_view(address, view)));
      const copy = module.memory.copyTensor(view);
      module.call((f) => f.loom_array_free(address));
      return copy;
    });
  }

  #ids(body: (scope: Scope, ids: number, count: number, module: Loaded) => number): Int32Array {
    return this.#scoped((scope, module) => {
      const out = scope.keep(module.memory.allocate(16));
      this.#check(body(scope, out, out + 8, module));
      const address = module.memory.view.getUint32(out, true);
      const count = Number(module.memory.view.getBigInt64(out + 8, true));
      const ids = new Int32Array(module.memory.memory.buffer, address, count).slice();
      module.call((f) => f.loom_free(address));
      return ids;
    });
  }

  #add(kind: Kind, address: number, bytes = 0): Handle {
    this.#objects.set(this.#next, { kind, address, bytes });
    return this.#next++;
  }

  #at(handle: Handle, kind: Kind): number {
    const entry = this.#objects.get(handle);
    if (entry?.kind === kind) return entry.address;
    throw new LoomError("invalid_argument", `this ${kind} was closed`);
  }

  #free(handle: Handle): void {
    const entry = this.#objects.get(handle);
    if (entry === undefined) return;
    this.#objects.delete(handle);
    this.#module.call((f) => {
      f[`loom_${entry.kind}_free`](entry.address);
      if (entry.bytes !== 0) f.loom_host_free(entry.bytes);
    });
  }

  /** Runs with a callback of that kind; `user` is what the module hands it. */
  #listening<T>(callback: (...args: (number | bigint)[]) => boolean, body: (user: number) => T): T {
    const { user, end } = this.#module.listen(callback);
    try {
      return body(user);
    } finally {
      end();
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
    const address = await readInto(this.#module.memory, opened, reading);
    return { address, name: load.name ?? opened.name, size: opened.size };
  }

  /** Reads a file that the object may go on to use where it lies. */
  async #borrowed(context: Context, kind: "network" | "model", source: Source, load: LoadOptions, struct: Struct,
    options: object): Promise<Handle> {
    const file = await this.#read(context, source, load);
    try {
      const address = this.#out((scope, out, module) => {
        const name = module.memory.text(scope, file.name);
        const how = module.memory.options(scope, struct, { ...options, borrow: true });
        return module.call((f) => f[`loom_${kind}_load_memory`](this.#engine, file.address, BigInt(file.size), name, how, out));
      });
      return this.#add(kind, address, file.address);
    } catch (error) {
      if ((error as LoomError).code !== "internal") this.#module.memory.free(file.address);
      throw error;
    }
  }

  // ---- operations

  async #start(options: StartOptions): Promise<ReturnType<Operations["start"]>> {
    const here = host(), notes: string[] = [];
    const wanted = Math.min(options.threads > 0 ? options.threads : this.platform.cores, kMostThreads);
    if (wanted > 1 && !here.shared) {
      notes.push("one thread: this page is not isolated, so no memory can be shared; its server must send " +
        "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp");
    }
    const variant = options.variant ?? chooseVariant(here, wanted);
    const given = options.modules?.[variant];
    const module = given === undefined ? await this.platform.module(variant) : await compiled(given);
    this.#loaded = await Loaded.create(module);
    const version = this.#module.call((f) => f.loom_abi_version());
    if (version !== ffi.ABI_VERSION) {
      throw new LoomError("unsupported", `the module has interface ${version}, the package ${ffi.ABI_VERSION}`);
    }
    if (variant.endsWith("threads")) {
      const starts = Array.from({ length: wanted - 1 }, () => this.#module.laneStart());
      await Promise.all(starts.map((start) => this.platform.lane(start)));
      while (this.#module.call((f) => f.loom_host_lanes()) < wanted) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    this.#engine = this.#out((scope, out, m) => {
      const memoryLimit = options.memoryLimit;
      const how = m.memory.options(scope, ffi.loom_engine_options, memoryLimit === undefined ? {} : { memoryLimit });
      return m.call((f) => f.loom_engine_create(how, out));
    });
    const info: ffi.EngineInfo = this.#report(ffi.loom_engine_info, (at, m) =>
      m.call((f) => f.loom_engine_get_info(this.#engine, at)));
    return { variant, notes, ...info };
  }

  #generate(context: Context, model: Handle, prompt: string | Int32Array, options: object, session: object): GenerationData {
    const at = this.#at(model, "model");
    const running = this.#out((scope, out, m) =>
      m.call((f) => f.loom_model_start(at, m.memory.options(scope, ffi.loom_model_session_options, session), out)));
    try {
      const said = (...args: (number | bigint)[]): boolean => {
        // A token has one argument more than its `user`, progress has two.
        if (args.length === 1) context.tell("token", readToken(this.#module, Number(args[0])));
        else context.tell("progress", { done: Number(args[0]), total: Number(args[1]) });
        return !context.cancel.asked;
      };
      const generation = this.#listening(said, (user) => this.#out((scope, out, m) => {
        const how = m.memory.options(scope, ffi.loom_generate_options, options, {
          user, on_token: m.callback("loom_token_fn"), on_prefill: m.callback("loom_progress_fn"),
        });
        if (typeof prompt === "string") {
          const text = m.memory.text(scope, prompt);
          return m.call((f) => f.loom_model_session_generate(running, text, how, out));
        }
        const ids = m.memory.ids(scope, prompt);
        return m.call((f) => f.loom_model_session_generate_ids(running, ids, BigInt(prompt.length), how, out));
      }));
      return this.#takeGeneration(generation);
    } finally {
      this.#module.call((f) => f.loom_model_session_free(running));
    }
  }

  #takeGeneration(generation: number): GenerationData {
    return this.#scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16));
      this.#check(m.call((f) => f.loom_generation_text(generation, out, 0)));
      const text = m.memory.readText(m.memory.view.getUint32(out, true));
      this.#check(m.call((f) => f.loom_generation_ids(generation, out, out + 8)));
      const count = Number(m.memory.view.getBigInt64(out + 8, true));
      const ids = new Int32Array(m.memory.memory.buffer, m.memory.view.getUint32(out, true), count).slice();
      const info: ffi.GenerationInfo = this.#report(ffi.loom_generation_info, (at) =>
        m.call((f) => f.loom_generation_get_info(generation, at)));
      m.call((f) => f.loom_generation_free(generation));
      return { ...info, text, ids };
    });
  }

  #chat(model: Handle, turns: readonly Turn[], options: object): { text: string; ids: Int32Array } {
    const at = this.#at(model, "model");
    const list = (scope: Scope, m: Loaded): [number, number] => {
      const address = scope.keep(m.memory.allocate(turns.length * 8));
      turns.forEach(({ role, content }, i) => {
        m.memory.view.setUint32(address + 8 * i, m.memory.text(scope, role), true);
        m.memory.view.setUint32(address + 8 * i + 4, m.memory.text(scope, content), true);
      });
      return [address, m.memory.options(scope, ffi.loom_chat_options, options)];
    };
    const count = BigInt(turns.length);
    const text = this.#text((scope, out, m) => {
      const [address, how] = list(scope, m);
      return m.call((f) => f.loom_model_render_chat(at, address, count, how, out));
    });
    const ids = this.#ids((scope, out, size, m) => {
      const [address, how] = list(scope, m);
      return m.call((f) => f.loom_model_tokenize_chat(at, address, count, how, out, size));
    });
    return { text, ids };
  }

  #fit(context: Context, trainer: Handle, train: Handle, validation: Handle | null, options: object): ffi.Epoch[] {
    const at = this.#at(trainer, "trainer"), data = this.#at(train, "dataset");
    const second = validation === null ? 0 : this.#at(validation, "dataset");
    const epochs: ffi.Epoch[] = [];
    const said = (...args: (number | bigint)[]): boolean => {
      if (args.length === 1) {
        const epoch = this.#module.memory.read(ffi.loom_epoch, Number(args[0])) as unknown as ffi.Epoch;
        epochs.push(epoch);
        context.tell("epoch", epoch);
      } else {
        context.tell("batch", { done: Number(args[0]), steps: Number(args[1]), loss: Number(args[2]) });
      }
      return !context.cancel.asked;
    };
    this.#listening(said, (user) => this.#scoped((scope, m) => {
      const how = m.memory.options(scope, ffi.loom_fit_options, options, {
        user, on_epoch: m.callback("loom_epoch_fn"), on_batch: m.callback("loom_batch_fn"),
      });
      this.#check(m.call((f) => f.loom_trainer_fit(at, data, second, how, 0)));
    }));
    return epochs;
  }

  #cells(session: Handle, inputs: Tensor): { at: number[]; layer: string; values: Tensor }[] {
    const at = this.#at(session, "session"), cells: { at: number[]; layer: string; values: Tensor }[] = [];
    const said = (cell: number | bigint): boolean => {
      const { memory } = this.#module, address = Number(cell), { fields } = ffi.loom_cell;
      const read = memory.read(ffi.loom_cell, address);
      const values = memory.copyTensor(memory.view.getUint32(address + fields.values[0], true));
      cells.push({ at: read["at"] as number[], layer: String(read["layer"]), values });
      return true;
    };
    this.#listening(said, (user) => this.#scoped((scope, m) =>
      this.#check(m.call((f) => f.loom_session_run_cells(at, m.memory.tensor(scope, inputs),
        m.callback("loom_cell_fn"), user)))));
    return cells;
  }

  #saved(network: Handle, format: ffi.NetworkFormat, options: object): Uint8Array {
    const at = this.#at(network, "network");
    return this.#scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16));
      const how = m.memory.options(scope, ffi.loom_save_options, options);
      this.#check(m.call((f) => f.loom_network_save_memory(at, ffi.NetworkFormat[format], how, out, out + 8)));
      const address = m.memory.view.getUint32(out, true);
      const bytes = m.memory.bytes(address, Number(m.memory.view.getBigInt64(out + 8, true))).slice();
      m.call((f) => f.loom_free(address));
      return bytes;
    });
  }

  #parameters(network: Handle): ffi.ParameterInfo[] {
    const at = this.#at(network, "network");
    return this.#scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(8));
      this.#check(m.call((f) => f.loom_network_parameter_count(at, out)));
      return Array.from({ length: Number(m.memory.view.getBigInt64(out, true)) }, (_, i) =>
        this.#report(ffi.loom_parameter_info, (info) =>
          m.call((f) => f.loom_network_parameter_info(at, BigInt(i), info))) as ffi.ParameterInfo);
    });
  }

  #logits(model: Handle, ids: Int32Array): Float32Array {
    const at = this.#at(model, "model");
    const running = this.#out((_, out, m) => m.call((f) => f.loom_model_start(at, 0, out)));
    try {
      return this.#scoped((scope, m) => {
        const out = scope.keep(m.memory.allocate(16)), list = m.memory.ids(scope, ids);
        this.#check(m.call((f) => f.loom_model_session_feed(running, list, BigInt(ids.length))));
        this.#check(m.call((f) => f.loom_model_session_logits(running, out, out + 8)));
        const count = Number(m.memory.view.getBigInt64(out + 8, true));
        return new Float32Array(m.memory.memory.buffer, m.memory.view.getUint32(out, true), count).slice();
      });
    } finally {
      this.#module.call((f) => f.loom_model_session_free(running));
    }
  }

  readonly #operations: { [K in keyof Operations]: (context: Context, ...args: Parameters<Operations[K]>) =>
    ReturnType<Operations[K]> | Promise<ReturnType<Operations[K]>> } = {
    start: (_, options) => this.#start(options),
    memory: () => ({
      ...this.#report(ffi.loom_memory, (at, m) => m.call((f) => f.loom_engine_get_memory(this.#engine, at))) as ffi.Memory,
      heap: this.#module.memory.memory.buffer.byteLength,
    }),
    free: (_, handle) => this.#free(handle),
    layerTypes: () => this.#text((_, out, m) => m.call((f) => f.loom_layer_types(out))).split(/\s+/).filter(Boolean),

    networkFromJson: (_, json, options) => this.#add("network", this.#out((scope, out, m) => {
      const text = m.memory.text(scope, json), how = m.memory.options(scope, ffi.loom_load_options, options);
      return m.call((f) => f.loom_network_from_json(this.#engine, text, how, out));
    })),
    networkLoad: (context, source, load, options) =>
      this.#borrowed(context, "network", source, load, ffi.loom_load_options, options),
    networkSave: (_, handle, format, options) => this.#saved(handle, format, options),
    networkInfo: (_, handle) => this.#report(ffi.loom_network_info, (at, m) =>
      m.call((f) => f.loom_network_get_info(this.#at(handle, "network"), at))),
    networkText: (_, handle, what) => this.#text((_scope, out, m) =>
      m.call((f) => f[`loom_network_${what}`](this.#at(handle, "network"), out))),
    networkClasses: (_, handle) => {
      const at = this.#at(handle, "network");
      const info: ffi.NetworkInfo = this.#report(ffi.loom_network_info, (to, m) =>
        m.call((f) => f.loom_network_get_info(at, to)));
      return Array.from({ length: info.classes }, (_v, i) =>
        this.#text((_scope, out, m) => m.call((f) => f.loom_network_class(at, BigInt(i), out))));
    },
    networkParameters: (_, handle) => this.#parameters(handle),
    networkParameter: (_, handle, name) => this.#array(this.#out((scope, out, m) => {
      const text = m.memory.text(scope, name);
      return m.call((f) => f.loom_network_parameter(this.#at(handle, "network"), text, out));
    })),
    networkSetParameter: (_, handle, name, values) => this.#scoped((scope, m) => {
      const text = m.memory.text(scope, name), tensor = m.memory.tensor(scope, values);
      this.#check(m.call((f) => f.loom_network_set_parameter(this.#at(handle, "network"), text, tensor)));
    }),
    networkPredict: (_, handle, inputs) => this.#array(this.#out((scope, out, m) => {
      const tensor = m.memory.tensor(scope, inputs);
      return m.call((f) => f.loom_network_predict(this.#at(handle, "network"), tensor, out));
    })),
    networkProbabilities: (_, handle, outputs) => this.#array(this.#out((scope, out, m) => {
      const tensor = m.memory.tensor(scope, outputs);
      return m.call((f) => f.loom_network_probabilities(this.#at(handle, "network"), tensor, out));
    })),

    sessionOpen: (_, network, options) => this.#add("session", this.#out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_session_options, options);
      return m.call((f) => f.loom_network_session(this.#at(network, "network"), how, out));
    })),
    sessionRun: (_, handle, inputs) => this.#array(this.#out((scope, out, m) => {
      const tensor = m.memory.tensor(scope, inputs);
      return m.call((f) => f.loom_session_run(this.#at(handle, "session"), tensor, out));
    })),
    sessionCells: (_, handle, inputs) => this.#cells(handle, inputs),
    sessionReset: (_, handle) =>
      this.#check(this.#module.call((f) => f.loom_session_reset(this.#at(handle, "session")))),

    datasetFromArrays: (_, x, y) => this.#add("dataset", this.#out((scope, out, m) => {
      const inputs = m.memory.tensor(scope, x), targets = y === null ? 0 : m.memory.tensor(scope, y);
      return m.call((f) => f.loom_dataset_from_arrays(inputs, targets, out));
    })),
    datasetLoad: async (context, source, load, network, options) => {
      const file = await this.#read(context, source, load);
      try {
        return this.#add("dataset", this.#out((scope, out, m) => {
          const name = m.memory.text(scope, file.name), how = m.memory.options(scope, ffi.loom_dataset_options, options);
          const net = network === null ? 0 : this.#at(network, "network");
          return m.call((f) => f.loom_dataset_from_memory(file.address, BigInt(file.size), name, net, how, out));
        }));
      } finally {
        this.#module.memory.free(file.address);
      }
    },
    datasetInfo: (_, handle) => this.#report(ffi.loom_dataset_info, (at, m) =>
      m.call((f) => f.loom_dataset_get_info(this.#at(handle, "dataset"), at))),
    datasetArray: (_, handle, which) => this.#array(this.#out((_scope, out, m) =>
      m.call((f) => f[`loom_dataset_${which}`](this.#at(handle, "dataset"), out)))),
    datasetSplit: (_, handle, share, options) => this.#scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16)), how = m.memory.options(scope, ffi.loom_split_options, options);
      this.#check(m.call((f) => f.loom_dataset_split(this.#at(handle, "dataset"), share, how, out, out + 8)));
      const part = (at: number): Handle => this.#add("dataset", m.memory.view.getUint32(at, true));
      return [part(out), part(out + 8)];
    }),

    trainerCreate: (_, network, options) => this.#add("trainer", this.#out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_trainer_options, options);
      return m.call((f) => f.loom_trainer_create(this.#at(network, "network"), how, out));
    })),
    trainerFit: (context, handle, train, validation, options) => this.#fit(context, handle, train, validation, options),
    trainerStep: (_, handle, x, y, rate) => this.#scoped((scope, m) => {
      const report = m.memory.report(scope, ffi.loom_step_report);
      const inputs = m.memory.tensor(scope, x), targets = m.memory.tensor(scope, y);
      const at = rate === null ? 0 : scope.keep(m.memory.allocate(8));
      if (rate !== null) m.memory.view.setFloat64(at, rate, true);
      this.#check(m.call((f) => f.loom_trainer_step(this.#at(handle, "trainer"), inputs, targets, at, report)));
      return m.memory.read(ffi.loom_step_report, report) as unknown as ffi.StepReport;
    }),
    trainerEvaluate: (_, handle, data) => this.#report(ffi.loom_evaluation, (at, m) =>
      m.call((f) => f.loom_trainer_evaluate(this.#at(handle, "trainer"), this.#at(data, "dataset"), at, 0))),
    trainerHash: (_, handle) => this.#text((_scope, out, m) =>
      m.call((f) => f.loom_trainer_weights_hash(this.#at(handle, "trainer"), out))),

    modelLoad: (context, source, load, options) =>
      this.#borrowed(context, "model", source, load, ffi.loom_model_options, options),
    modelInfo: (_, handle) => this.#report(ffi.loom_model_info, (at, m) =>
      m.call((f) => f.loom_model_get_info(this.#at(handle, "model"), at))),
    modelTokenize: (_, handle, text, special) => this.#ids((scope, ids, count, m) => {
      const words = m.memory.text(scope, text);
      return m.call((f) => f.loom_model_tokenize(this.#at(handle, "model"), words, special ? 1 : 0, ids, count));
    }),
    modelDetokenize: (_, handle, ids, skip) => this.#text((scope, out, m) => {
      const list = m.memory.ids(scope, ids);
      return m.call((f) => f.loom_model_detokenize(this.#at(handle, "model"), list, BigInt(ids.length), skip ? 1 : 0, out));
    }),
    modelChat: (_, handle, turns, options) => this.#chat(handle, turns, options),
    modelGenerate: (context, handle, prompt, options, session) => this.#generate(context, handle, prompt, options, session),
    modelLogits: (_, handle, ids) => this.#logits(handle, ids),

    tokenizerLoad: async (context, source, load) => {
      const file = await this.#read(context, source, load);
      try {
        return this.#add("tokenizer", this.#out((scope, out, m) => {
          const name = m.memory.text(scope, file.name);
          return m.call((f) => f.loom_tokenizer_load_memory(this.#engine, file.address, BigInt(file.size), name, out));
        }));
      } finally {
        this.#module.memory.free(file.address);
      }
    },
    tokenizerEncode: (_, handle, text, special) => this.#ids((scope, ids, count, m) => {
      const words = m.memory.text(scope, text);
      return m.call((f) => f.loom_tokenizer_encode(this.#at(handle, "tokenizer"), words, special ? 1 : 0, ids, count));
    }),
    tokenizerDecode: (_, handle, ids, skip) => this.#text((scope, out, m) => {
      const list = m.memory.ids(scope, ids), count = BigInt(ids.length);
      return m.call((f) => f.loom_tokenizer_decode(this.#at(handle, "tokenizer"), list, count, skip ? 1 : 0, out));
    }),
    tokenizerSize: (_, handle) => this.#scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(8));
      this.#check(m.call((f) => f.loom_tokenizer_vocab_size(this.#at(handle, "tokenizer"), out)));
      return Number(m.memory.view.getBigInt64(out, true));
    }),
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

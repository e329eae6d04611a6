/** Which module this host can run, and how it is made an instance of. Runs in the worker of an engine. */

import { callbackNames, type CallbackName, type Functions } from "./ffi.js";
import { LoomError } from "./errors.js";
import { promising, type GpuHost, type GpuModule } from "./gpu.js";
import type { Later } from "./later.js";
import { Memory } from "./memory.js";
import type { Wide } from "./memory64.js";

/** `relaxed`: with fused multiply-add of the processor. `threads`: over memory that workers share. `gpu`: that of
 * `relaxed`, with WebGPU. `memory64`: that of `relaxed`, with addresses of 64 bits. */
export type Variant = "simd" | "relaxed" | "threads" | "relaxed-threads" | "gpu" | "memory64" | "memory64-threads";

export function isWide(variant: Variant): boolean {
  return variant.startsWith("memory64");
}

// The smallest modules with 128-bit vectors, with relaxed ones (i8x16.relaxed_swizzle), and with addresses of 64 bits.
const simdProbe = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15,
  253, 98, 11];
const relaxedProbe = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253,
  15, 65, 2, 253, 15, 253, 128, 2, 11];
const memory64Probe = [0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1];

export interface Host {
  readonly simd: boolean;
  readonly relaxed: boolean;
  /** Modules whose memory is larger than 4 GiB. */
  readonly memory64: boolean;
  /** Memory can be shared with workers; in a page, only where it is isolated (COOP and COEP). */
  readonly shared: boolean;
  readonly cores: number;
}

export function host(): Host {
  const isolated = (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated ?? true;
  return {
    simd: WebAssembly.validate(new Uint8Array(simdProbe)),
    relaxed: WebAssembly.validate(new Uint8Array(relaxedProbe)),
    memory64: WebAssembly.validate(new Uint8Array(memory64Probe)),
    shared: typeof SharedArrayBuffer === "function" && isolated,
    cores: (globalThis as { navigator?: { hardwareConcurrency?: number } }).navigator?.hardwareConcurrency ?? 1,
  };
}

/** The fastest variant of this host; `threads` 1: one without shared memory. */
export function chooseVariant(here: Host, threads: number): Variant {
  if (!here.simd) throw new LoomError("unsupported", "this host has no SIMD in WebAssembly; take a newer one");
  const shared = here.shared && threads !== 1;
  if (here.relaxed) return shared ? "relaxed-threads" : "relaxed";
  return shared ? "threads" : "simd";
}

/** That with addresses of 64 bits. Throws LoomError "unsupported", which says what is missing. */
export function chooseWide(here: Host, threads: number): Variant {
  if (!here.memory64) {
    throw new LoomError("unsupported", "this host has no memory64 in WebAssembly (Chromium 133, Node.js 24), so a module " +
      "holds 2 GiB at most; take a newer one");
  }
  if (!here.relaxed) {
    throw new LoomError("unsupported", "this host has no relaxed SIMD in WebAssembly, which the module for memory64 is " +
      "made with; take a newer one");
  }
  return here.shared && threads !== 1 ? "memory64-threads" : "memory64";
}

export type Callback = (...args: (number | bigint)[]) => boolean;

interface Exports extends Functions {
  readonly memory?: WebAssembly.Memory;
  readonly __stack_pointer?: WebAssembly.Global;
  readonly __tls_size?: WebAssembly.Global;
  readonly __tls_align?: WebAssembly.Global;
  __wasm_init_tls?(address: number): void;
  _initialize(): void;
  loom_host_free(address: number): void;
  loom_host_allocate(bytes: number): number;
  loom_host_callback(index: number): number;
  loom_host_worker(): void;
  loom_host_lanes(): number;
}

const kMostPages = 32768;  // of 64 KiB: 2 GiB
const kMostWidePages = 262144;  // 16 GiB, which is what hosts allow
const kFirstPages = 512;
const kStack = 1 << 20;

/** The data that a worker of an engine needs to become a lane. */
export interface LaneStart {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly stack: number;
  readonly tls: number;
  readonly wide: boolean;
}

/** Memory that workers share. */
function sharedMemory(wide: boolean): WebAssembly.Memory {
  if (!wide) return new WebAssembly.Memory({ initial: kFirstPages, maximum: kMostPages, shared: true });
  const how = { address: "i64", initial: BigInt(kFirstPages), maximum: BigInt(kMostWidePages), shared: true };
  return new WebAssembly.Memory(how as unknown as WebAssembly.MemoryDescriptor);
}

/** Functions of the host that a module may ask for: a clock, random bytes and output; nothing else exists here. */
function wasi(memory: () => WebAssembly.Memory): Record<string, (...args: never[]) => number> {
  const view = (): DataView => new DataView(memory().buffer);
  const kNotSupported = 58;
  return {
    clock_time_get(clock: number, _precision: bigint, out: number | bigint): number {
      const now = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(Number(out), BigInt(Math.round(now * 1e6)), true);
      return 0;
    },
    random_get(at: number, size: number): number {
      const bytes = new Uint8Array(size);
      for (let i = 0; i < size; i += 65536) crypto.getRandomValues(bytes.subarray(i, i + 65536));
      new Uint8Array(memory().buffer).set(bytes, at);
      return 0;
    },
    environ_sizes_get(count: number, size: number): number {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    sched_yield: () => 0,
    proc_exit(code: number): number {
      throw new LoomError("internal", `the module ended itself with ${code}; please report`);
    },
    other: () => kNotSupported,
  };
}

/** A module that was made without a part says so where one of its functions is called. */
function saysWhatIsMissing(exports: Exports): Exports {
  return new Proxy(exports, {
    get(target, name): unknown {
      const found: unknown = Reflect.get(target, name);
      if (found !== undefined || !String(name).startsWith("loom_")) return found;
      return () => {
        throw new LoomError("unsupported", `this module was made without ${String(name)}(); take the whole one`);
      };
    },
  });
}

/** Functions of the same names that give promises, made when they are first asked for. */
function promises(exports: Exports): Exports {
  const made = new Map<string | symbol, unknown>();
  return new Proxy({} as Exports, {
    get(_, name): unknown {
      const body = Reflect.get(exports, name) as (...args: unknown[]) => unknown;
      // One that the module was made without is a function of JavaScript, which throws.
      if (!made.has(name)) made.set(name, name in exports ? promising(body) : body);
      return made.get(name);
    },
  });
}

/** An instance, and the callbacks that calls of it may come back through. */
export class Loaded {
  readonly memory: Memory;
  /** Why the instance must not be called any more; null: it may. */
  #failure: LoomError | null = null;
  readonly #callbacks = new Map<number, Callback>();
  #thrown: unknown = null;
  #next = 1;

  /** Functions that may wait for the device: each gives a promise. null: the module has no device. */
  readonly #waiting: Exports | null;

  private constructor(
    readonly module: WebAssembly.Module,
    readonly exports: Exports,
    memory: WebAssembly.Memory,
    readonly gpu: GpuHost | null,
    wide: Wide | null,
  ) {
    this.#waiting = gpu === null ? null : promises(exports);
    this.memory = new Memory(memory, {
      allocate: (bytes) => exports.loom_host_allocate(bytes),
      free: (address) => exports.loom_host_free(address),
    }, wide);
  }

  /** `gpu`: what a module with WebGPU asks for. `isWide`: it has addresses of 64 bits; a lane's start knows. */
  static async create(module: WebAssembly.Module, start?: LaneStart, gpu: GpuHost | null = null,
    isWide = start?.wide ?? false): Promise<Loaded> {
    const how = isWide ? await import("./memory64.js") : null;
    const wanted = WebAssembly.Module.imports(module);
    const shared = wanted.some(({ kind }) => kind === "memory");
    let memory = start?.memory;
    if (shared) memory ??= sharedMemory(isWide);
    const box: { loaded: Loaded | null } = { loaded: null };
    const system = wasi(() => {
      if (memory === undefined) throw new LoomError("internal", "the module called its host before it was ready");
      return memory;
    });
    const imports: Record<string, Record<string, WebAssembly.ImportValue>> = {};
    const device = gpu?.imports() ?? {};
    for (const { module: from, name, kind } of wanted) {
      const group = (imports[from] ??= {});
      if (kind === "memory" && memory !== undefined) group[name] = memory;
      else if (from === "wasi_snapshot_preview1") group[name] = system[name] ?? system["other"] ?? 0;
      else if (from === "gpu") group[name] = device[name] ?? 0;
      else if (name === "out_of_memory") group[name] = outOfMemory;
      else group[name] = (user: number | bigint, ...args: (number | bigint)[]) => box.loaded?.back(Number(user), args) ?? 1;
    }
    const instance = await WebAssembly.instantiate(module, imports);
    const exports = saysWhatIsMissing((how?.withNumbers(instance.exports) ?? instance.exports) as unknown as Exports);
    memory ??= exports.memory;
    if (memory === undefined) throw new LoomError("bad_file", "the module has no memory; it is not one of Loom");
    box.loaded = new Loaded(module, exports, memory, gpu, how?.wide ?? null);
    gpu?.attach(instance.exports as unknown as GpuModule);
    if (start === undefined) exports._initialize();
    else box.loaded.#becomeLane(start);
    return box.loaded;
  }

  #becomeLane(start: LaneStart): void {
    const { __stack_pointer: stack, __wasm_init_tls: tls } = this.exports;
    if (stack === undefined || tls === undefined) throw new LoomError("internal", "the module has no threads");
    stack.value = start.wide ? BigInt(start.stack) : start.stack;
    if (start.tls !== 0) tls(start.tls);
  }

  /** Memory for a worker: a stack, and what belongs to a thread. It stays. */
  laneStart(): LaneStart {
    const size = Number(this.exports.__tls_size?.value ?? 0);
    return {
      module: this.module, memory: this.memory.memory,
      stack: this.memory.allocate(kStack) + kStack,
      tls: size > 0 ? this.memory.allocate(size) : 0,
      wide: this.memory.wide !== null,
    };
  }

  /** The address of the callback of that kind. */
  callback(name: CallbackName): number {
    return this.exports.loom_host_callback(callbackNames.indexOf(name));
  }
  /** Registers what that address calls with this `user`. */
  listen(callback: Callback): { user: number; end(): void } {
    const user = this.#next++;
    this.#callbacks.set(user, callback);
    return { user, end: () => void this.#callbacks.delete(user) };
  }
  /** Returns 0 to continue. An exception of a callback is stored, and thrown when the call of the module returns. */
  back(user: number, args: (number | bigint)[]): number {
    try {
      return this.#callbacks.get(user)?.(...args) === false ? 1 : 0;
    } catch (error) {
      this.#thrown = error;
      return 1;
    }
  }

  /** Calls a function of the module. After a trap nothing of the instance can be trusted. */
  call<T>(body: (functions: Exports) => T): T {
    if (this.#failure !== null) throw this.#failure;
    try {
      return body(this.exports);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** The same of a function that may wait for the device. Where there is none it is answered at once. */
  wait<T>(body: (functions: Exports) => T): Later<T> {
    if (this.#waiting === null) return this.call(body);
    if (this.#failure !== null) throw this.#failure;
    const answer = body(this.#waiting) as unknown as Promise<T>;
    return answer.catch((error: unknown) => {
      throw this.#failed(error);
    });
  }

  #failed(error: unknown): LoomError {
    if (error instanceof LoomError && error.code !== "out_of_memory" && error.code !== "internal") return error;
    this.#failure = error instanceof LoomError && error.code === "out_of_memory"
      ? error
      : new LoomError("internal", `the module ended: ${String((error as Error).message)}; make a new engine, ` +
          "and please report");
    return this.#failure;
  }

  /** The exception of a callback during the last call; null if there was none. */
  takeThrown(): unknown {
    const thrown = this.#thrown;
    this.#thrown = null;
    return thrown;
  }
}

function outOfMemory(bytes: number | bigint): never {
  const count = typeof bytes === "bigint" ? bytes : bytes >>> 0;
  throw new LoomError("out_of_memory", `no memory is left for ${count} bytes; close this engine, and take a ` +
    "smaller model or batch");
}

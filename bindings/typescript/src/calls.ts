/** Calls of a module, as every operation of a server makes them: results and errors are taken out of its memory, and
 * objects go by numbers. */

import * as ffi from "./ffi.js";
import { LoomError, statusName } from "./errors.js";
import { after, ending, type Later } from "./later.js";
import { Scope, type Struct, type Tensor } from "./memory.js";
import type { Loaded } from "./module.js";
import type { Handle } from "./protocol.js";

export type Kind =
  | "network" | "session" | "dataset" | "trainer" | "model" | "tokenizer" | "population" | "genome" | "mesh"
  | "model_file";
interface Entry {
  readonly kind: Kind;
  readonly address: number;
  /** Memory of the file that it is borrowed from; 0 means none. */
  readonly bytes: number;
}

export class Calls {
  #loaded: Loaded | null = null;
  readonly #objects = new Map<Handle, Entry>();
  #next = 1;

  start(loaded: Loaded): void {
    this.#loaded = loaded;
  }

  /** Whether nothing was made that is still there. */
  get empty(): boolean {
    return this.#objects.size === 0;
  }

  get module(): Loaded {
    if (this.#loaded === null) throw new LoomError("invalid_argument", "the engine was not started");
    return this.#loaded;
  }

  /** Calls `body` with a scope, which ends with what it gives. */
  scoped<T>(body: (scope: Scope, module: Loaded) => T): T {
    const module = this.module, scope = new Scope(module.memory);
    return ending(() => body(scope, module) as Later<T>, () => scope.end()) as T;
  }

  /** Throws what the module says where it gave no 0. */
  check(status: number): void {
    const module = this.module, thrown = module.takeThrown();
    if (thrown !== null) throw thrown;
    if (status === 0) return;
    const line = module.call((f) => module.memory.readText(f.loom_last_error()));
    const lost = module.gpu !== null && module.gpu.lost !== null && statusName(status) === "internal";
    throw new LoomError(lost ? "lost" : statusName(status), line);
  }

  /** The address that a call writes to its last argument. */
  out(body: (scope: Scope, out: number, module: Loaded) => number): number;
  out(body: (scope: Scope, out: number, module: Loaded) => Later<number>): Later<number>;
  out(body: (scope: Scope, out: number, module: Loaded) => Later<number>): Later<number> {
    return this.scoped((scope, module) => {
      const out = scope.keep(module.memory.allocate(8));
      module.memory.bytes(out, 8).fill(0);
      return after(body(scope, out, module), (status) => {
        this.check(status);
        return module.memory.readAddress(out);
      });
    });
  }

  /** A call that may wait, which gives nothing but its status. */
  done(body: (scope: Scope, module: Loaded) => Later<number>): Later<void> {
    return this.scoped((scope, module) => after(body(scope, module), (status) => this.check(status)));
  }

  text(body: (scope: Scope, out: number, module: Loaded) => number): string;
  text(body: (scope: Scope, out: number, module: Loaded) => Later<number>): Later<string>;
  text(body: (scope: Scope, out: number, module: Loaded) => Later<number>): Later<string> {
    return after(this.out(body), (address) => {
      const module = this.module, text = module.memory.readText(address);
      module.call((f) => f.loom_free(address));
      return text;
    });
  }

  report(struct: Struct, body: (address: number, module: Loaded) => Later<number>): never {
    return this.scoped((scope, module) => {
      const address = module.memory.report(scope, struct);
      return after(body(address, module), (status) => {
        this.check(status);
        return module.memory.read(struct, address);
      });
    }) as never;
  }

  /** A copy of an array of the library, which is freed. */
  array(made: number): Tensor;
  array(made: Later<number>): Later<Tensor>;
  array(made: Later<number>): Later<Tensor> {
    return after(made, (address) => this.#array(address));
  }
  #array(address: number): Tensor {
    return this.scoped((scope, module) => {
      const view = module.memory.report(scope, ffi.loom_tensor);
      this.check(module.call((f) => f.loom_array_view(address, view)));
      const copy = module.memory.copyTensor(view);
      module.call((f) => f.loom_array_free(address));
      return copy;
    });
  }

  ids(body: (scope: Scope, ids: number, count: number, module: Loaded) => number): Int32Array {
    return this.scoped((scope, module) => {
      const out = scope.keep(module.memory.allocate(16));
      this.check(body(scope, out, out + 8, module));
      const address = module.memory.readAddress(out);
      const count = Number(module.memory.view.getBigInt64(out + 8, true));
      const ids = new Int32Array(module.memory.memory.buffer, address, count).slice();
      module.call((f) => f.loom_free(address));
      return ids;
    });
  }

  add(kind: Kind, made: number, bytes?: number): Handle;
  add(kind: Kind, made: Later<number>, bytes?: number): Later<Handle>;
  add(kind: Kind, made: Later<number>, bytes = 0): Later<Handle> {
    return after(made, (address) => this.#add(kind, address, bytes));
  }
  #add(kind: Kind, address: number, bytes: number): Handle {
    this.#objects.set(this.#next, { kind, address, bytes });
    return this.#next++;
  }

  at(handle: Handle, kind: Kind): number {
    const entry = this.#objects.get(handle);
    if (entry?.kind === kind) return entry.address;
    throw new LoomError("invalid_argument", `this ${kind} was closed`);
  }

  free(handle: Handle): Later<void> {
    const entry = this.#objects.get(handle);
    if (entry === undefined) return;
    this.#objects.delete(handle);
    return after(this.module.wait((f) => f[`loom_${entry.kind}_free`](entry.address)), () => {
      if (entry.bytes !== 0) this.module.call((f) => f.loom_host_free(entry.bytes));
    });
  }

  /** Runs with a callback of that kind; `user` is what the module hands it. */
  listening<T>(callback: (...args: (number | bigint)[]) => boolean, body: (user: number) => T): T {
    const { user, end } = this.module.listen(callback);
    return ending(() => body(user) as Later<T>, end) as T;
  }
}

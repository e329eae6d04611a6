/** Structs, texts and lists of the C interface in the memory of a module. Addresses are numbers, of 32 bits or of 64. */

import * as ffi from "./ffi.js";
import { LoomError } from "./errors.js";
import { unknownOption } from "./known.js";
import type { Wide } from "./memory64.js";

export type NumberArray =
  | Float64Array | Float32Array | BigInt64Array | Int32Array | Int16Array | Int8Array
  | BigUint64Array | Uint32Array | Uint16Array | Uint8Array;

/** Numbers with a shape, in row-major order. */
export interface Tensor<T extends NumberArray = NumberArray> {
  readonly data: T;
  readonly shape: readonly number[];
}

type Maker = (buffer: ArrayBufferLike, at: number, count: number) => NumberArray;
const kinds: readonly (readonly [ffi.Dtype, { readonly BYTES_PER_ELEMENT: number }, Maker])[] = [
  ["float64", Float64Array, (b, at, n) => new Float64Array(b, at, n)],
  ["float32", Float32Array, (b, at, n) => new Float32Array(b, at, n)],
  ["int64", BigInt64Array, (b, at, n) => new BigInt64Array(b, at, n)],
  ["int32", Int32Array, (b, at, n) => new Int32Array(b, at, n)],
  ["int16", Int16Array, (b, at, n) => new Int16Array(b, at, n)],
  ["int8", Int8Array, (b, at, n) => new Int8Array(b, at, n)],
  ["uint64", BigUint64Array, (b, at, n) => new BigUint64Array(b, at, n)],
  ["uint32", Uint32Array, (b, at, n) => new Uint32Array(b, at, n)],
  ["uint16", Uint16Array, (b, at, n) => new Uint16Array(b, at, n)],
  ["uint8", Uint8Array, (b, at, n) => new Uint8Array(b, at, n)],
];

export interface Struct {
  readonly name: string;
  readonly size: number;
  readonly sized: boolean;
  readonly fields: Readonly<Record<string, readonly [number, string]>>;
}

/** The memory of a scope is freed when it ends. */
export class Scope {
  readonly #memory: Memory;
  readonly #taken: number[] = [];
  constructor(memory: Memory) {
    this.#memory = memory;
  }
  keep(address: number): number {
    this.#taken.push(address);
    return address;
  }
  end(): void {
    for (const address of this.#taken.splice(0)) this.#memory.free(address);
  }
}

export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
function camel(name: string): string {
  const [head = "", ...rest] = name.split("_");
  return head + rest.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join("");
}

const enums = ffi as unknown as Record<string, Readonly<Record<string, number>>>;

export class Memory {
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();
  #view: DataView;

  constructor(
    readonly memory: WebAssembly.Memory,
    readonly allocator: { allocate(bytes: number): number; free(address: number): void },
    /** null: addresses have 32 bits. */
    readonly wide: Wide | null = null,
  ) {
    this.#view = new DataView(memory.buffer);
  }

  // ---- addresses

  /** Bytes of an address. */
  get addressSize(): number {
    return this.wide === null ? 4 : 8;
  }
  readAddress(at: number): number {
    return this.wide === null ? this.view.getUint32(at, true) : Number(this.view.getBigUint64(at, true));
  }
  writeAddress(at: number, address: number): void {
    if (this.wide === null) this.view.setUint32(at, address, true);
    else this.view.setBigUint64(at, BigInt(address), true);
  }
  /** Where the fields of a struct are in this memory. */
  layout<T extends Struct>(struct: T): T {
    return this.wide === null ? struct : this.wide.layout(struct) as T;
  }

  /** The memory as it is now: it moves where it grows. */
  get view(): DataView {
    if (this.#view.buffer !== this.memory.buffer) this.#view = new DataView(this.memory.buffer);
    return this.#view;
  }

  bytes(address: number, size: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, address, size);
  }

  /** Begins at a multiple of 64. Throws out_of_memory. */
  allocate(bytes: number): number {
    const fits = this.wide !== null || bytes < 2 ** 31;
    const given = fits ? this.allocator.allocate(Math.max(bytes, 1)) : 0;
    const address = this.wide === null ? given >>> 0 : given;
    if (address !== 0) return address;
    throw new LoomError("out_of_memory", `${bytes} bytes do not fit into the memory that the module may have; ` +
      "close what is not needed, or take a smaller model");
  }
  free(address: number): void {
    this.allocator.free(address);
  }

  // ---- texts and lists

  text(scope: Scope, text: string): number {
    const bytes = this.#encoder.encode(text);
    const address = scope.keep(this.allocate(bytes.length + 1));
    this.bytes(address, bytes.length).set(bytes);
    this.view.setUint8(address + bytes.length, 0);
    return address;
  }
  /** A text that ends with a NUL. */
  readText(address: number): string {
    if (address === 0) return "";
    // A piece at a time: an array over all of a large memory is more than hosts make.
    const { buffer } = this.memory;
    for (let size = 4096; ; size *= 16) {
      const bytes = new Uint8Array(buffer, address, Math.min(size, buffer.byteLength - address));
      const end = bytes.indexOf(0);
      if (end >= 0) return this.#decoder.decode(bytes.slice(0, end));
      if (address + size >= buffer.byteLength) return "";
    }
  }
  ids(scope: Scope, ids: ArrayLike<number>): number {
    const address = scope.keep(this.allocate(ids.length * 4));
    new Int32Array(this.memory.buffer, address, ids.length).set(ids);
    return address;
  }

  // ---- tensors

  /** A loom_tensor over a copy of the numbers. */
  tensor(scope: Scope, tensor: Tensor): number {
    return this.tensors(scope, [tensor]);
  }
  /** Several, one after the other. */
  tensors(scope: Scope, tensors: readonly Tensor[]): number {
    const { size } = this.layout(ffi.loom_tensor), address = scope.keep(this.allocate(size * tensors.length));
    tensors.forEach((tensor, i) => this.#writeTensor(scope, tensor, address + size * i));
    return address;
  }
  #writeTensor(scope: Scope, tensor: Tensor, address: number): void {
    // JavaScript may pass anything.
    const given = tensor as Partial<Tensor> | null | undefined;
    const row = kinds.find(([, kind]) => (given?.data?.constructor as unknown) === kind);
    if (row === undefined || !Array.isArray(given?.shape)) {
      throw new LoomError("invalid_argument", "a tensor is a typed array with a shape; tensor(numbers, shape) makes one");
    }
    const count = tensor.shape.reduce((product, extent) => product * extent, 1);
    if (count !== tensor.data.length) {
      throw new LoomError("invalid_argument",
        `a shape of [${tensor.shape.join(", ")}] holds ${count} numbers; ${tensor.data.length} were given`);
    }
    const data = scope.keep(this.allocate(tensor.data.byteLength));
    const { buffer, byteOffset, byteLength } = tensor.data;
    this.bytes(data, byteLength).set(new Uint8Array(buffer, byteOffset, byteLength));
    const shape = scope.keep(this.allocate(tensor.shape.length * 8));
    tensor.shape.forEach((extent, i) => this.view.setBigInt64(shape + 8 * i, BigInt(extent), true));
    const { fields } = this.layout(ffi.loom_tensor);
    this.view.setInt32(address + fields.dtype[0], ffi.Dtype[row[0]], true);
    this.view.setInt32(address + fields.rank[0], tensor.shape.length, true);
    this.writeAddress(address + fields.shape[0], shape);
    this.writeAddress(address + fields.strides[0], 0);
    this.writeAddress(address + fields.data[0], data);
  }
  /** The numbers of a loom_tensor without gaps: a view, which a call of the module may move. */
  viewTensor(address: number): Tensor {
    const { fields } = this.layout(ffi.loom_tensor);
    const number = this.view.getInt32(address + fields.dtype[0], true);
    const row = kinds.find(([name]) => ffi.Dtype[name] === number);
    if (row === undefined) throw new LoomError("unsupported", "numbers of a type that JavaScript has no array for");
    const rank = this.view.getInt32(address + fields.rank[0], true);
    const at = this.readAddress(address + fields.shape[0]);
    const shape: number[] = [];
    for (let i = 0; i < rank; ++i) shape.push(Number(this.view.getBigInt64(at + 8 * i, true)));
    const count = shape.reduce((product, extent) => product * extent, 1);
    const data = this.readAddress(address + fields.data[0]);
    return { data: row[2](this.memory.buffer, count === 0 ? 0 : data, count), shape };
  }
  /** A copy of them, in memory of JavaScript. */
  copyTensor(address: number): Tensor {
    const { data, shape } = this.viewTensor(address);
    const copy = new ArrayBuffer(data.byteLength);
    new Uint8Array(copy).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    const make = data.constructor as new (buffer: ArrayBuffer) => NumberArray;
    return { data: new make(copy), shape };
  }

  // ---- structs

  /** Options as the C interface takes them. `raw`: fields that are addresses. Unknown names are errors. */
  options(scope: Scope, described: Struct, given: object, raw: Readonly<Record<string, number>> = {}): number {
    const struct = this.layout(described);
    const address = scope.keep(this.allocate(struct.size));
    this.bytes(address, struct.size).fill(0);
    if (struct.sized) this.view.setUint32(address, struct.size, true);
    for (const [name, value] of Object.entries(given)) {
      if (value === undefined) continue;
      const key = snake(name), field = struct.fields[key];
      if (field === undefined || field[1] === "pointer" || field[1] === "callback") {
        const known = Object.entries(struct.fields).filter(([, [, kind]]) => kind !== "pointer" && kind !== "callback");
        throw unknownOption(name, known.map(([word]) => camel(word)));
      }
      this.#write(scope, struct, address, key, field[1], value as unknown);
    }
    for (const [name, value] of Object.entries(raw)) {
      const field = struct.fields[name];
      if (field !== undefined) this.writeAddress(address + field[0], value);
    }
    return address;
  }

  #write(scope: Scope, struct: Struct, address: number, name: string, kind: string, value: unknown): void {
    const at = address + (struct.fields[name]?.[0] ?? 0);
    const has = struct.fields[`has_${name}`];
    if (has !== undefined) this.view.setInt32(address + has[0], 1, true);
    const [base, more] = kind.split(":");
    if (base === "enum") {
      const number = enums[more ?? ""]?.[String(value)];
      if (number === undefined) {
        throw new LoomError("invalid_argument",
          `'${camel(name)}' is '${String(value)}'; choose from ${Object.keys(enums[more ?? ""] ?? {}).join(", ")}`);
      }
      this.view.setInt32(at, number, true);
    } else if (base === "text") {
      this.writeAddress(at, this.text(scope, String(value)));
    } else if (base?.endsWith(" list")) {
      this.#writeList(scope, struct, address, name, base, value as readonly (number | string)[]);
    } else if (base === "bool") {
      if (typeof value !== "boolean") {
        throw new LoomError("invalid_argument", `'${camel(name)}' is ${String(value)}; give true or false`);
      }
      this.view.setInt32(at, value ? 1 : 0, true);
    } else {
      this.#writeNumber(at, base ?? "", name, value);
    }
  }

  #writeNumber(at: number, kind: string, name: string, value: unknown): void {
    const whole = kind !== "f32" && kind !== "f64";
    const fits = typeof value === "bigint" ? whole : typeof value === "number" && (!whole || Number.isInteger(value));
    if (!fits) {
      throw new LoomError("invalid_argument",
        `'${camel(name)}' is ${String(value)}; give ${whole ? "an integer" : "a number"}`);
    }
    const number = value as number | bigint;
    if (kind === "i32") this.view.setInt32(at, Number(number), true);
    else if (kind === "u32") this.view.setUint32(at, Number(number), true);
    else if (kind === "i64") this.view.setBigInt64(at, BigInt(number), true);
    else if (kind === "u64") this.view.setBigUint64(at, BigInt(number), true);
    else if (kind === "f32") this.view.setFloat32(at, Number(number), true);
    else this.view.setFloat64(at, Number(number), true);
  }

  #writeList(scope: Scope, struct: Struct, address: number, name: string, kind: string,
    values: readonly (number | string)[]): void {
    const width = kind === "i64 list" ? 8 : kind === "i32 list" ? 4 : this.addressSize;
    const list = scope.keep(this.allocate(values.length * width));
    values.forEach((value, i) => {
      if (kind === "i64 list") this.view.setBigInt64(list + 8 * i, BigInt(value), true);
      else if (kind === "i32 list") this.view.setInt32(list + 4 * i, Number(value), true);
      else this.writeAddress(list + width * i, this.text(scope, String(value)));
    });
    this.writeAddress(address + (struct.fields[name]?.[0] ?? 0), list);
    const count = struct.fields[`${name}_count`] ?? struct.fields[`${name.replace(/_ids$/, "")}_count`];
    if (count !== undefined) this.view.setInt32(address + count[0], values.length, true);
  }

  /** A report, with its struct_size set. */
  report(scope: Scope, described: Struct): number {
    const struct = this.layout(described);
    const address = scope.keep(this.allocate(struct.size));
    this.bytes(address, struct.size).fill(0);
    if (struct.sized) this.view.setUint32(address, struct.size, true);
    return address;
  }

  /** The values of a report, under names of JavaScript. 64-bit integers become numbers. */
  read(described: Struct, address: number): Record<string, unknown> {
    const struct = this.layout(described);
    const out: Record<string, unknown> = {};
    for (const [name, [offset, kind]] of Object.entries(struct.fields)) {
      if (name === "struct_size" || kind === "pointer" || kind === "callback") continue;
      out[camel(name)] = this.#readField(struct, address, name, address + offset, kind);
    }
    return out;
  }

  #readField(struct: Struct, address: number, name: string, at: number, kind: string): unknown {
    const [base, more = ""] = kind.split(":");
    switch (base) {
      case "bool": return this.view.getInt32(at, true) !== 0;
      case "i32": return this.view.getInt32(at, true);
      case "u32": return this.view.getUint32(at, true);
      case "i64": return Number(this.view.getBigInt64(at, true));
      case "u64": return Number(this.view.getBigUint64(at, true));
      case "f32": return this.view.getFloat32(at, true);
      case "f64": return this.view.getFloat64(at, true);
      case "text": return this.readText(this.readAddress(at));
      case "chars": return this.readText(at);
      case "enum": {
        const number = this.view.getInt32(at, true);
        return Object.entries(enums[more] ?? {}).find(([, value]) => value === number)?.[0] ?? "unknown";
      }
      case "i64s": {
        const rank = struct.fields[`${name}_rank`] ?? struct.fields["rank"];
        const count = rank === undefined ? Number(more) : this.view.getInt32(address + rank[0], true);
        return Array.from({ length: count }, (_, i) => Number(this.view.getBigInt64(at + 8 * i, true)));
      }
      default: return undefined;
    }
  }
}

/** The WebGPU of this host as imports of a module, group "gpu": src/backend/webgpu/runtime/library_page.cpp calls them.
 * Handles are numbers of a table; offsets and sizes are numbers; texts and lists are in the
 * module's memory. */

import type { Gpu, GpuAdapter, GpuBuffer, GpuDevice, GpuEncoder, GpuError, GpuPass, GpuQueue } from "./gpu_types.js";

/** JSPI: a call of a module that waits for a promise of JavaScript. */
interface Suspension {
  readonly Suspending?: new (body: () => unknown) => WebAssembly.ImportValue;
  promising?<A extends unknown[]>(body: (...args: A) => unknown): (...args: A) => Promise<unknown>;
}
const jspi = WebAssembly as unknown as Suspension;

/** Whether a call of a module can wait here. */
export function canSuspend(): boolean {
  return typeof jspi.Suspending === "function" && typeof jspi.promising === "function";
}
/** The same function, which gives a promise and may wait. */
export function promising<A extends unknown[], R>(body: (...args: A) => R): (...args: A) => Promise<R> {
  if (jspi.promising === undefined) throw new TypeError("this host has no WebAssembly.promising");
  return jspi.promising(body) as (...args: A) => Promise<R>;
}

/** The functions of the module that the glue needs, once it is loaded. */
export interface GpuModule {
  readonly memory: WebAssembly.Memory;
  loom_gpu_message(): number;
  loom_gpu_answer(shape: number, call: number, user1: number, user2: number, status: number, value: number,
    length: number): void;
}

/** A callback of the module: the function and its two arguments. */
type Callback = readonly [call: number, user1: number, user2: number];

// The types of callbacks by their numbers in library_page.cpp, and numbers of webgpu.h.
const Shape = { adapter: 0, device: 1, map: 2, scope: 3, told: 4 } as const;
const kSuccess = 1, kFailed = 2, kLongestMessage = 1024;
const kErrorNone = 1, kValidation = 2, kOutOfMemory = 3, kInternal = 4;
const filters = ["", "validation", "out-of-memory", "internal"];
const bindings: Readonly<Record<number, string>> = { 2: "uniform", 3: "storage", 4: "read-only-storage" };
const features: Readonly<Record<number, string>> = { 11: "shader-f16", 18: "subgroups" };
const texts = ["vendor", "architecture", "device", "description"];
const kCompute = 4, kRead = 1;
// A device gets these as its adapter has them: without being asked for it would have the least that every one has.
const limits = ["maxStorageBuffersPerShaderStage", "maxStorageBufferBindingSize", "maxBufferSize",
  "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY", "maxComputeWorkgroupSizeZ", "maxComputeWorkgroupsPerDimension"];

/** Whether it computes on the CPU. */
function isSoftware(adapter: GpuAdapter): boolean {
  return adapter.info["isFallbackAdapter"] === true || adapter.info["architecture"] === "swiftshader";
}

/** The description of an adapter; browsers keep the name of a device to themselves, and then its maker stands for it. */
function adapterText({ info }: GpuAdapter, what: string): string {
  const text = (name: string): string => String(info[name] ?? "");
  if (what !== "device" || text("device") !== "") return text(what);
  return `${text("vendor")} ${text("architecture")}`.trim() || text("description") || "a GPU";
}

function errorType(error: GpuError): number {
  const kind = error.constructor.name;
  return kind === "GPUOutOfMemoryError" ? kOutOfMemory : kind === "GPUInternalError" ? kInternal : kValidation;
}

/** A device of the module, and whether a caller still waits for it. */
interface Held {
  readonly device: GpuDevice;
  open: boolean;
}

export class GpuHost {
  /** Why the device is gone; null: it is not. */
  lost: string | null = null;
  #module: GpuModule | null = null;
  readonly #objects: unknown[] = [null];
  readonly #free: number[] = [];
  readonly #ready: (() => void)[] = [];
  #expected = 0;
  #wake: (() => void) | null = null;
  #channel: MessageChannel | null = null;
  readonly #owners = new WeakMap<GpuBuffer, Held>();
  readonly #mapped = new Map<number, number>();
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();

  constructor(readonly gpu: Gpu) {}

  /** After the module was made, before it is called. */
  attach(module: GpuModule): void {
    this.#module = module;
  }

  /** The imports of the group "gpu". */
  imports(): Record<string, WebAssembly.ImportValue> {
    const suspending = jspi.Suspending;
    if (suspending === undefined) throw new TypeError("this host has no WebAssembly.Suspending");
    return {
      processEvents: new suspending(() => this.#processEvents()),
      waitForEvent: new suspending(() => this.#waitForEvent()),
      ...this.#adapters(), ...this.#makers(), ...this.#recorders(), ...this.#buffers(),
      release: (handle: number) => this.#drop(handle),
    };
  }

  // ---- handles, texts and events

  #keep(object: unknown): number {
    const handle = this.#free.pop() ?? this.#objects.length;
    this.#objects[handle] = object;
    return handle;
  }
  #drop(handle: number): void {
    if (handle === 0) return;
    this.#objects[handle] = null;
    this.#free.push(handle);
  }
  #at<T>(handle: number): T {
    return this.#objects[handle] as T;
  }
  /** The handle of what `body` makes; 0 where it throws, which the device says of arguments that it cannot take. */
  #made(body: () => unknown): number {
    try {
      return this.#keep(body());
    } catch {
      return 0;
    }
  }
  get #memory(): ArrayBufferLike {
    return this.#module!.memory.buffer;
  }
  #text(at: number, length: number): string {
    return this.#decoder.decode(new Uint8Array(this.#memory, at, length).slice());
  }
  #answer(shape: number, [call, user1, user2]: Callback, status: number, value: number, message = ""): void {
    const module = this.#module!, bytes = new Uint8Array(this.#memory, module.loom_gpu_message(), kLongestMessage - 1);
    const { written } = this.#encoder.encodeInto(message, bytes);
    module.loom_gpu_answer(shape, call, user1, user2, status, value, written);
  }

  /** Tells the module of a promise when it asks for events. A device that is gone is not heard of any more: what its
   * callbacks write to may be gone as well. */
  #expect<T>(promise: Promise<T>, held: Held | null, told: (value: T) => void, failed: (why: string) => void): void {
    this.#expected++;
    const settle = (tell: () => void): void => {
      this.#expected--;
      this.#ready.push(() => (held === null || held.open ? tell() : undefined));
      this.#wake?.();
    };
    promise.then((value) => settle(() => told(value)),
      (error: unknown) => settle(() => failed(String((error as Error).message))));
  }
  #tellAll(): void {
    for (const tell of this.#ready.splice(0)) tell();
  }
  /** Lets messages, settled promises and other events by. Timers would wait a millisecond and more. */
  #breathe(): Promise<void> {
    const { port1, port2 } = (this.#channel ??= new MessageChannel());
    return new Promise((resolve) => {
      port1.onmessage = () => resolve();
      port2.postMessage(0);
    });
  }
  async #processEvents(): Promise<void> {
    if (this.#ready.length === 0 && this.#expected > 0) await this.#breathe();
    this.#tellAll();
  }
  async #waitForEvent(): Promise<void> {
    if (this.#ready.length === 0 && this.#expected > 0) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = null;
    }
    this.#tellAll();
  }

  // ---- the adapter and its device

  #adapters(): Record<string, (...args: never[]) => unknown> {
    return {
      requestAdapter: (...callback: [number, number, number]) =>
        this.#expect(this.gpu.requestAdapter({ powerPreference: "high-performance" }), null,
          (adapter) => this.#answer(Shape.adapter, callback, kSuccess, adapter === null ? 0 : this.#keep(adapter)),
          (why) => this.#answer(Shape.adapter, callback, kFailed, 0, why)),
      limit: (adapter: number, at: number, length: number) =>
        this.#at<GpuAdapter>(adapter).limits[this.#text(at, length)] ?? 0,
      adapterText: (adapter: number, what: number, at: number, room: number) => {
        const text = adapterText(this.#at(adapter), texts[what] ?? "");
        return this.#encoder.encodeInto(text, new Uint8Array(this.#memory, at, room)).written;
      },
      adapterNumber: (handle: number, what: number) => {
        const adapter = this.#at<GpuAdapter>(handle);
        if (what === 0) return isSoftware(adapter) ? 1 : 0;
        return Number(adapter.info[what === 1 ? "subgroupMinSize" : "subgroupMaxSize"] ?? 0);
      },
      hasFeature: (adapter: number, feature: number) =>
        this.#at<GpuAdapter>(adapter).features.has(features[feature] ?? "") ? 1 : 0,
      requestDevice: (adapter: number, wanted: number, count: number, callbacks: number) =>
        this.#requestDevice(this.#at(adapter), wanted, count, callbacks),
      deviceQueue: (device: number) => this.#keep(this.#at<Held>(device).device.queue),
      pushErrorScope: (device: number, filter: number) =>
        this.#at<Held>(device).device.pushErrorScope(filters[filter] ?? "validation"),
      popErrorScope: (device: number, ...callback: [number, number, number]) => {
        const held = this.#at<Held>(device);
        this.#expect(held.device.popErrorScope(), held,
          (error) => this.#answer(Shape.scope, callback, kSuccess, error === null ? kErrorNone : errorType(error),
            error?.message),
          (why) => this.#answer(Shape.scope, callback, kFailed, kErrorNone, why));
      },
      destroyDevice: (device: number) => {
        const held = this.#at<Held>(device);
        held.open = false;
        held.device.destroy();
      },
    };
  }

  #requestDevice(adapter: GpuAdapter, wanted: number, count: number, callbacks: number): void {
    const numbers = [...new Uint32Array(this.#memory, wanted, count)], list = new Uint32Array(this.#memory, callbacks, 9);
    const callback = (at: number): Callback => [list[at] ?? 0, list[at + 1] ?? 0, list[at + 2] ?? 0];
    const answer = callback(0), lost = callback(3), error = callback(6);
    const requiredLimits: Record<string, number> = {};
    for (const name of limits) requiredLimits[name] = adapter.limits[name] ?? 0;
    const requiredFeatures = numbers.map((number) => features[number] ?? "");
    this.#expect(adapter.requestDevice({ requiredFeatures, requiredLimits }), null, (device) => {
      const held: Held = { device, open: true };
      this.lost = null;
      // An uncaptured error, or the loss of the device, may come while the module is idle.
      device.onuncapturederror = ({ error: what }) => {
        if (held.open) this.#answer(Shape.told, error, errorType(what), 0, what.message);
      };
      void device.lost.then(({ reason, message }) => {
        if (!held.open) return;
        this.#answer(Shape.told, lost, kSuccess, 0, message || reason);
        held.open = false;
        this.lost = message || reason;
        this.#wake?.();
      });
      this.#answer(Shape.device, answer, kSuccess, this.#keep(held));
    }, (why) => this.#answer(Shape.device, answer, kFailed, 0, why));
  }

  // ---- what a device makes

  #makers(): Record<string, (...args: never[]) => unknown> {
    const device = (handle: number): GpuDevice => this.#at<Held>(handle).device;
    return {
      createBuffer: (on: number, size: number, usage: number) => this.#made(() => {
        const buffer = device(on).createBuffer({ size, usage });
        this.#owners.set(buffer, this.#at(on));
        return buffer;
      }),
      createShaderModule: (on: number, code: number, codeLength: number, label: number, labelLength: number) =>
        this.#made(() => device(on).createShaderModule(
          { code: this.#text(code, codeLength), label: this.#text(label, labelLength) })),
      createBindGroupLayout: (on: number, at: number, count: number) => {
        const words = new Uint32Array(this.#memory, at, 3 * count);
        const entries = Array.from({ length: count }, (_, i) => ({
          binding: words[3 * i], visibility: kCompute,
          buffer: { type: bindings[words[3 * i + 1] ?? 0], hasDynamicOffset: words[3 * i + 2] !== 0 },
        }));
        return this.#made(() => device(on).createBindGroupLayout({ entries }));
      },
      createPipelineLayout: (on: number, at: number, count: number) => {
        const bindGroupLayouts = [...new Uint32Array(this.#memory, at, count)].map((handle) => this.#at<object>(handle));
        return this.#made(() => device(on).createPipelineLayout({ bindGroupLayouts }));
      },
      createComputePipeline: (on: number, layout: number, module: number, entry: number, entryLength: number, label: number,
        labelLength: number) => this.#made(() => device(on).createComputePipeline({
        label: this.#text(label, labelLength), layout: this.#at(layout),
        compute: { module: this.#at(module), entryPoint: this.#text(entry, entryLength) },
      })),
      createBindGroup: (on: number, layout: number, at: number, count: number) => {
        const list = new Float64Array(this.#memory, at, 4 * count);
        const entries = Array.from({ length: count }, (_, i) => ({
          binding: list[4 * i],
          resource: { buffer: this.#at(list[4 * i + 1] ?? 0), offset: list[4 * i + 2], size: list[4 * i + 3] },
        }));
        return this.#made(() => device(on).createBindGroup({ layout: this.#at(layout), entries }));
      },
      createCommandEncoder: (on: number) => this.#made(() => device(on).createCommandEncoder()),
    };
  }

  // ---- commands

  #recorders(): Record<string, (...args: never[]) => unknown> {
    const encoder = (handle: number): GpuEncoder => this.#at(handle), pass = (handle: number): GpuPass => this.#at(handle);
    return {
      beginComputePass: (on: number) => this.#keep(encoder(on).beginComputePass()),
      copyBuffer: (on: number, from: number, fromOffset: number, to: number, toOffset: number, size: number) =>
        encoder(on).copyBufferToBuffer(this.#at(from), fromOffset, this.#at(to), toOffset, size),
      clearBuffer: (on: number, buffer: number, offset: number, size: number) =>
        encoder(on).clearBuffer(this.#at(buffer), offset, size),
      finish: (on: number) => this.#made(() => encoder(on).finish()),
      setPipeline: (on: number, pipeline: number) => pass(on).setPipeline(this.#at(pipeline)),
      setBindGroup: (on: number, index: number, group: number, count: number, offsets: number) =>
        pass(on).setBindGroup(index, this.#at(group), new Uint32Array(this.#memory, offsets, count), 0, count),
      dispatch: (on: number, x: number, y: number, z: number) => pass(on).dispatchWorkgroups(x, y, z),
      endPass: (on: number) => pass(on).end(),
      submit: (queue: number, at: number, count: number) =>
        this.#at<GpuQueue>(queue).submit([...new Uint32Array(this.#memory, at, count)].map((handle) => this.#at<object>(handle))),
      writeBuffer: (queue: number, buffer: number, offset: number, data: number, size: number) =>
        this.#at<GpuQueue>(queue).writeBuffer(this.#at(buffer), offset, this.#memory, data, size),
    };
  }

  // ---- what the host reads

  #buffers(): Record<string, (...args: never[]) => unknown> {
    const buffer = (handle: number): GpuBuffer => this.#at(handle);
    return {
      mapBuffer: (on: number, offset: number, size: number, ...callback: [number, number, number]) =>
        this.#expect(buffer(on).mapAsync(kRead, offset, size), this.#owners.get(buffer(on)) ?? null,
          () => this.#answer(Shape.map, callback, kSuccess, 0),
          (why) => this.#answer(Shape.map, callback, kFailed, 0, why)),
      copyMapped: (on: number, offset: number, size: number, to: number) => {
        try {
          new Uint8Array(this.#memory, to, size).set(new Uint8Array(buffer(on).getMappedRange(offset, size)));
        } catch {
          return 0;
        }
        this.#mapped.set(on, to);
        return 1;
      },
      unmap: (on: number) => {
        const memory = this.#mapped.get(on) ?? 0;
        this.#mapped.delete(on);
        buffer(on).unmap();
        return memory;
      },
      bufferSize: (on: number) => buffer(on).size,
      destroyBuffer: (on: number) => buffer(on).destroy(),
    };
  }
}

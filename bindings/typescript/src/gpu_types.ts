/** The part of WebGPU that a module asks for, as the standard has it (W3C, WebGPU). Declared here, because not every
 * TypeScript knows it. */

export interface GpuError {
  readonly message: string;
}
export interface GpuBuffer {
  readonly size: number;
  mapAsync(mode: number, offset: number, size: number): Promise<void>;
  getMappedRange(offset: number, size: number): ArrayBuffer;
  unmap(): void;
  destroy(): void;
}
export interface GpuPass {
  setPipeline(pipeline: object): void;
  setBindGroup(index: number, group: object, offsets: Uint32Array, start: number, length: number): void;
  dispatchWorkgroups(x: number, y: number, z: number): void;
  end(): void;
}
export interface GpuEncoder {
  beginComputePass(): GpuPass;
  copyBufferToBuffer(from: GpuBuffer, fromOffset: number, to: GpuBuffer, toOffset: number, size: number): void;
  clearBuffer(buffer: GpuBuffer, offset: number, size: number): void;
  finish(): object;
}
export interface GpuQueue {
  submit(commands: readonly object[]): void;
  writeBuffer(buffer: GpuBuffer, offset: number, data: ArrayBufferLike, dataOffset: number, size: number): void;
}
export interface GpuDevice {
  readonly queue: GpuQueue;
  readonly lost: Promise<{ readonly reason: string; readonly message: string }>;
  onuncapturederror: ((event: { readonly error: GpuError }) => void) | null;
  createBuffer(wanted: { size: number; usage: number }): GpuBuffer;
  createShaderModule(wanted: { code: string; label: string }): object;
  createBindGroupLayout(wanted: { entries: readonly object[] }): object;
  createPipelineLayout(wanted: { bindGroupLayouts: readonly object[] }): object;
  createComputePipeline(wanted: { label: string; layout: object; compute: { module: object; entryPoint: string } }): object;
  createBindGroup(wanted: { layout: object; entries: readonly object[] }): object;
  createCommandEncoder(): GpuEncoder;
  pushErrorScope(filter: string): void;
  popErrorScope(): Promise<GpuError | null>;
  destroy(): void;
}
export interface GpuAdapter {
  readonly features: { has(name: string): boolean };
  readonly limits: Readonly<Record<string, number | undefined>>;
  readonly info: Readonly<Record<string, string | number | boolean | undefined>>;
  requestDevice(wanted: { requiredFeatures: readonly string[]; requiredLimits: Readonly<Record<string, number>> }):
    Promise<GpuDevice>;
}
/** `navigator.gpu`. */
export interface Gpu {
  requestAdapter(wanted: { powerPreference: string }): Promise<GpuAdapter | null>;
}

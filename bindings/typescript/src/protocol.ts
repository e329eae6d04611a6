/** The messages between an engine's worker and its client. */

import type * as ffi from "./ffi.js";
import type { Source } from "./files.js";
import type { Tensor } from "./memory.js";
import type { LaneStart, Variant } from "./module.js";

/** A message channel's end, of a page's worker or of Node.js. */
export interface Port {
  post(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  listen(handler: (message: never) => void): void;
}

/** How work is cancelled while a worker computes: by a word of shared memory, or, where none can be shared, by an
 * address that stops to exist. */
export interface CancelToken {
  readonly word?: SharedArrayBuffer;
  readonly url?: string;
}

export interface StartOptions {
  readonly threads: number;
  readonly device?: ffi.Device | undefined;
  readonly activations?: ffi.Activations | undefined;
  readonly variant?: Variant | undefined;
  /** Modules by variant, in place of those of the package. */
  readonly modules?: Partial<Record<Variant, string | Uint8Array>> | undefined;
  readonly memoryLimit?: number | undefined;
  readonly memory64?: boolean | undefined;
}

export type Handle = number;

export interface LoadOptions {
  readonly cache?: boolean | undefined;
  readonly name?: string | undefined;
}

/** The module that runs. It changes if an engine moves to a module with addresses of 64 bits. */
export type Running = { variant: Variant; notes: string[] } & ffi.EngineInfo;

/** Name of an operation -> its arguments and its result. */
export interface Operations extends EvolutionOperations, MoreOperations {
  start(options: StartOptions): Running;
  memory(): ffi.Memory & { heap: number };
  free(handle: Handle): void;
  layerTypes(): string[];

  networkFromJson(json: string, options: object): Handle;
  networkLoad(source: Source, load: LoadOptions, options: object): Handle;
  networkFromBytes(bytes: Uint8Array, name: string, options: object): Handle;
  networkSave(handle: Handle, format: ffi.NetworkFormat, options: object): Uint8Array;
  networkInfo(handle: Handle): ffi.NetworkInfo;
  networkText(handle: Handle, what: "json" | "summary"): string;
  networkPorts(handle: Handle): ffi.Port[];
  networkClasses(handle: Handle): string[];
  networkParameters(handle: Handle): ffi.ParameterInfo[];
  networkParameter(handle: Handle, name: string): Tensor;
  networkSetParameter(handle: Handle, name: string, values: Tensor): void;
  networkPredict(handle: Handle, inputs: Tensor): Tensor;
  networkProbabilities(handle: Handle, outputs: Tensor): Tensor;

  sessionOpen(network: Handle, options: object): Handle;
  sessionRun(handle: Handle, inputs: Tensor): Tensor;
  sessionRunPorts(handle: Handle, inputs: readonly Tensor[]): Record<string, Tensor>;
  sessionCells(handle: Handle, inputs: Tensor): { at: number[]; layer: string; values: Tensor }[];
  sessionReset(handle: Handle): void;

  datasetFromArrays(x: Tensor, y: Tensor | null): Handle;
  datasetWithInput(handle: Handle, name: string, values: Tensor): Handle;
  datasetLoad(source: Source, load: LoadOptions, network: Handle | null, options: object): Handle;
  datasetInfo(handle: Handle): ffi.DatasetInfo;
  datasetArray(handle: Handle, which: "x" | "y"): Tensor;
  datasetSplit(handle: Handle, share: number, options: object): [Handle, Handle];

  trainerCreate(network: Handle, options: object): Handle;
  trainerFit(handle: Handle, train: Handle, validation: Handle | null, options: object): ffi.Epoch[];
  trainerStep(handle: Handle, x: Tensor, y: Tensor, rate: number | null): ffi.StepReport;
  trainerStepSamples(handle: Handle, batch: Handle, rate: number | null): ffi.StepReport;
  trainerEvaluate(handle: Handle, data: Handle): ffi.Evaluation;
  trainerHash(handle: Handle): string;

  modelLoad(source: Source, load: LoadOptions, options: object): Handle;
  modelRandom(shape: string, dtype: ffi.Dtype, seed: number): Handle;
  modelInfo(handle: Handle): ffi.ModelInfo;
  modelTokenize(handle: Handle, text: string, specialTokens: boolean): Int32Array;
  modelDetokenize(handle: Handle, ids: Int32Array, skipSpecial: boolean): string;
  modelChat(handle: Handle, messages: string, options: object): { text: string; ids: Int32Array };
  modelGenerate(handle: Handle, prompt: string | Int32Array, options: object, session: object): GenerationData;
  modelLogits(handle: Handle, ids: Int32Array): Float32Array;

  tokenizerLoad(source: Source, load: LoadOptions): Handle;
  tokenizerEncode(handle: Handle, text: string, specialTokens: boolean): Int32Array;
  tokenizerDecode(handle: Handle, ids: Int32Array, skipSpecial: boolean): string;
  tokenizerSize(handle: Handle): number;

  fileOpen(source: Source, load: LoadOptions): Handle;
  fileJson(handle: Handle): string;
  fileValues(handle: Handle, tensor: number): Tensor;
  fileHash(handle: Handle, tensor: number): string;
}

/** Those of evolution_server.ts. */
export interface EvolutionOperations {
  populationCreate(options: object): Handle;
  populationInfo(handle: Handle): ffi.PopulationInfo;
  populationReport(handle: Handle, generation: number): ffi.PopulationReport;
  populationRun(handle: Handle, inputs: Tensor): Tensor;
  populationTell(handle: Handle, fitness: Float64Array): void;
  populationGenome(handle: Handle, index: number): Handle;
  populationBest(handle: Handle): Handle;

  genomeInfo(handle: Handle): ffi.GenomeInfo;
  genomeRun(handle: Handle, inputs: Tensor): Tensor;
  genomeReset(handle: Handle): void;
  genomeJson(handle: Handle): string;
  genomeNetwork(handle: Handle): Handle;

  networkCompareDna(a: Handle, b: Handle, mode: ffi.DnaMode): string;
  networkDna(handle: Handle, at: string): Tensor;
  networkSplice(a: Handle, b: Handle, options: object): Handle;
  networkWithAdapter(handle: Handle, options: object): Handle;
  networkMergeAdapters(handle: Handle): Handle;

  meshCreate(network: Handle, options: object): Handle;
  meshInfo(handle: Handle): ffi.MeshInfo;
  meshSetInput(handle: Handle, inputs: Tensor): void;
  meshTick(handle: Handle, count: number): void;
  meshOutput(handle: Handle): Tensor;
  meshReset(handle: Handle): void;
}

/** Those of more_server.ts. */
export interface MoreOperations {
  modelEmbed(handle: Handle, texts: readonly string[], options: object): Tensor;
  modelRerank(handle: Handle, query: string, documents: readonly string[], options: object): ffi.Ranked[];
  modelToolFormat(handle: Handle): string;
  modelReadReply(handle: Handle, text: string, prompt: string, tools: string | null): string;
  tokenizerSpecial(handle: Handle): Int32Array;
  tokenizerId(handle: Handle, token: string): number;
  sessionSetLengths(handle: Handle, lengths: readonly number[]): void;
  sessionStates(handle: Handle): Tensor[];
  sessionSetStates(handle: Handle, states: readonly Tensor[]): void;
  sessionPosition(handle: Handle): number;
  sessionBytes(handle: Handle): number;
  trainerBytes(handle: Handle): number;
}

export interface TokenData {
  readonly id: number;
  readonly text: string;
  /** With `logprobs`. */
  readonly logprob: number;
}

export interface GenerationData extends ffi.GenerationInfo {
  readonly text: string;
  readonly ids: Int32Array;
}

export interface Request {
  readonly id: number;
  readonly operation: keyof Operations;
  readonly args: readonly unknown[];
  readonly cancel?: CancelToken | undefined;
}
export type Reply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly code?: string; readonly message: string } }
  | { readonly id: number; readonly event: string; readonly value: unknown };

/** The message that a lane's worker gets instead of requests. */
export interface LaneMessage {
  readonly lane: LaneStart;
}

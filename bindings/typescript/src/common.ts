export { LoomError, type ErrorCode } from "./errors.js";
export * as layers from "./layers.js";
export { sequential, type Axes, type Layer, type NetworkDescription } from "./layer.js";
export type { NumberArray, Tensor } from "./memory.js";
export { host, type Host, type Variant } from "./module.js";
export type { Source } from "./files.js";
export type { ChatOptions, ReplyMessage, ToolCall, Turn } from "./messages.js";
export type { TokenData } from "./protocol.js";
export {
  Dataset, LLM, Loom, ModelFile, Network, Session, tensor, Tokenizer, Trainer, type CallOptions, type DnaComparison,
  type FileDescription, type FileOptions, type FitOptions, type GenerateOptions, type Generation, type InitOptions, type Prompt,
} from "./client.js";
export { Genome, Mesh, Population, type GenomeDescription } from "./evolution.js";
export type {
  DnaMode, Dtype, EngineInfo, Epoch, Evaluation, GenomeInfo, MeshInfo, MeshOptions, ModelInfo, NeatOptions, NetworkFormat,
  NetworkInfo, PopulationInfo, PopulationReport, SessionOptions, SpliceOptions,
} from "./ffi.js";
export type { Augment, TrainerOptions } from "./options.js";

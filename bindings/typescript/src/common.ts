export { LoomError, type ErrorCode } from "./errors.js";
export * as layers from "./layers.js";
export { sequential, type Axes, type Layer, type NetworkDescription } from "./layer.js";
export type { NumberArray, Tensor } from "./memory.js";
export { host, type Host, type Variant } from "./module.js";
export type { Source } from "./files.js";
export type { Clusters, ParsedReply, TokenData, Turn } from "./protocol.js";
export {
  Dataset, Loom, ModelFile, Network, Session, tensor, Trainer, type DnaComparison, type FileDescription,
  type FileOptions, type FitOptions, type InitOptions, type NamedOptions,
} from "./client.js";
export {
  LLM, Tokenizer, type BeamSearchOptions, type BeamText, type GenerateOptions, type Generation, type PerplexityOptions,
  type Prompt,
} from "./language.js";
export type { CallOptions } from "./feed.js";
export {
  AdaptationTracker, DeviationMetrics, type AdaptationReport, type DeviationReport,
} from "./analysis.js";
export { Genome, Mesh, Population, type GenomeDescription, type MeshCell } from "./evolution.js";
export type {
  DnaMode, Dtype, EngineInfo, Epoch, Evaluation, GenomeInfo, MeshInfo, MeshOptions, ModelInfo, NeatOptions, NetworkFormat,
  NetworkInfo, PopulationInfo, PopulationReport, SessionOptions, SpliceOptions,
} from "./ffi.js";
export type { Augment, TrainerOptions } from "./options.js";

/** The names of the original project's diagnostic, over this engine: 8 functions, 16 members of a network and 8 of a
 * population. Programs that were written for those names run; what they compute is Loom's, with its bits and its errors.
 *
 * It answers at once, as the original does: the engine runs on the thread that calls it, with one lane. A page that must
 * not wait takes init() of the package instead. Differences: the GPU is never taken and says why; a
 * tween learns by gradients of the squared error; mutations change weights, activations and which
 * layers count, and never shapes. */

import { LoomError } from "./errors.js";
import { chooseVariant, host, type Variant } from "./module.js";
import { compareDna, type DnaResult, type Signature } from "./compat_dna.js";
import { CompatNetwork, type TweenConfig } from "./compat_network.js";
import { CompatPopulation, neatConfig, type NeatConfig } from "./compat_population.js";
import { Server } from "./server.js";

export { CompatNetwork, StepState, TweenState, type TrainingBatch, type TrainingResult, type TweenConfig }
  from "./compat_network.js";
export { CompatPopulation, type NeatConfig } from "./compat_population.js";
export type { DnaResult, Signature } from "./compat_dna.js";

export interface SpliceConfig {
  readonly CrossoverMode: "blend" | "point" | "uniform";
  readonly BlendAlpha: number;
  readonly SplitRatio: number;
  readonly FitnessA: number;
  readonly FitnessB: number;
}

/** The result of init(); install() puts the eight functions where the original has them. */
export interface Compat {
  /** A description of the original's, or of Loom's: a text or its object. */
  createLoomNetwork(description: string | object): CompatNetwork;
  /** The bytes of a file: .entity of both, .json, .onnx, .npz, .safetensors. */
  loadLoomNetwork(bytes: Uint8Array | ArrayBuffer, name?: string): CompatNetwork;
  /** Compares two texts of extractDNA(): JSON of a DnaResult. */
  compareLoomDNA(first: string, second: string): string;
  getDefaultTweenConfig(): TweenConfig;
  defaultSpliceConfig(): SpliceConfig;
  defaultNEATConfig(width?: number): NeatConfig;
  /** `seed`: a network, or the description of one. */
  createLoomNEATPopulation(seed: CompatNetwork | string | object, size: number, config?: Partial<NeatConfig> | string):
    CompatPopulation;
  /** Resolves; `available` is false. */
  setupWebGPU(): Promise<{ available: boolean; reason: string }>;
}

const kNoGpu = "Loom computes on the CPU here, with the bits of every other host: these functions answer at once, and a " +
  "GPU lets a page wait; take init({ device: \"gpu\" }) of the package";
const kTween: TweenConfig = { BatchSize: 1, UseChainRule: true, GradientScale: 0.1, DepthScaleFactor: 1.1, Momentum: 0.9,
  LearningRate: 0.01, ActivationClamp: 10 };

function parsedDna(text: string, which: string): Signature[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (Array.isArray(value) && value.every((cell) => Array.isArray((cell as Signature | null)?.weights))) {
    return value as Signature[];
  }
  throw new LoomError("invalid_argument", `the ${which} DNA is no text that extractDNA() gave`);
}

/** For init() of compat.ts and compat_node.ts. */
export async function start(module: (variant: Variant) => Promise<WebAssembly.Module>): Promise<Compat> {
  const lane = (): Promise<never> => Promise.reject(new LoomError("unsupported", "there is one lane"));
  const gpu = (): Promise<never> => Promise.reject(new LoomError("unsupported", kNoGpu));
  const server = new Server({ module, lane, cores: 1, readPath: null, gpu });
  await server.now("start", { threads: 1, variant: chooseVariant(host(), 1) });
  const create = (description: string | object): CompatNetwork => CompatNetwork.described(server, description);
  return {
    createLoomNetwork: create,
    loadLoomNetwork: (bytes, name = "the bytes") =>
      CompatNetwork.loaded(server, bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes), name),
    compareLoomDNA: (first, second) => {
      const result: DnaResult = compareDna(parsedDna(first, "first"), parsedDna(second, "second"));
      return JSON.stringify(result);
    },
    getDefaultTweenConfig: () => ({ ...kTween }),
    defaultSpliceConfig: () => ({ CrossoverMode: "blend", BlendAlpha: 0.5, SplitRatio: 0.5, FitnessA: 0, FitnessB: 0 }),
    defaultNEATConfig: neatConfig,
    createLoomNEATPopulation: (seed, size, config = {}) =>
      new CompatPopulation(seed instanceof CompatNetwork ? seed.copy() : create(seed), size, config),
    setupWebGPU: () => Promise.resolve({ available: false, reason: kNoGpu }),
  };
}

/** Puts the functions on the global object, or another one, where programs of the original look for them. */
export function install(compat: Compat, target: object = globalThis): void {
  Object.assign(target, compat);
}

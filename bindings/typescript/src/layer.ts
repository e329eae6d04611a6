import { checkOptions } from "./known.js";

/** One number for all axes, or one per axis. */
export type Axes = number | readonly number[];

/** A layer as the JSON of a network has it. layers.ts has a function per kind. */
export interface Layer {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** `names`: the field of each option. Options that are undefined take their defaults. */
export function layer(type: string, fields: Record<string, unknown>, options: Readonly<Record<string, unknown>> = {},
  names: Readonly<Record<string, string>> = {}): Layer {
  checkOptions(options, Object.keys(names));
  const out: Record<string, unknown> = { type, ...fields };
  for (const [name, field] of Object.entries(names)) if (options[name] !== undefined) out[field] = options[name];
  return out as Layer;
}

/** A row of layers as the description of a network. `input`: the shape of one sample. */
export function sequential(layers: readonly Layer[], input: Axes): NetworkDescription {
  const shape = typeof input === "number" ? [input] : [...input];
  const cells = layers.map((one, i) => ({ at: [0, 0, i, 0], ...one }));
  return { loom: 1, grid: [1, 1, layers.length, 1], input: shape, cells };
}

/** The JSON of `loom new` and Network.json(). */
export interface NetworkDescription {
  readonly loom: 1;
  readonly grid: readonly number[];
  readonly input: readonly number[];
  readonly cells: readonly object[];
  readonly [field: string]: unknown;
}

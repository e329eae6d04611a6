/** Modules whose addresses have 64 bits (memory64), for models beyond what one with 32 holds. Here as there an address is a
 * number: none reaches 2^53. At the boundary of the module it is a bigint, and fields of structs have other places. */

import { addresses, places } from "./ffi64.js";
import type { Struct } from "./memory.js";

/** The functions of Memory for addresses of 64 bits. */
export interface Wide {
  layout(struct: Struct): Struct;
}

const layouts = new Map<string, Struct>();

function layout(struct: Struct): Struct {
  const known = layouts.get(struct.name);
  if (known !== undefined) return known;
  const [size = 0, ...at] = places[struct.name] ?? [];
  const fields = Object.fromEntries(
    Object.entries(struct.fields).map(([name, [, kind]], i) => [name, [at[i] ?? 0, kind] as const]));
  const made: Struct = { name: struct.name, size, sized: struct.sized, fields };
  layouts.set(struct.name, made);
  return made;
}

export const wide: Wide = { layout };

// Functions of the module that are not those of the C interface: as the letters of ffi64.ts.
const ofTheHost: Readonly<Record<string, string>> = {
  loom_host_allocate: "aa", loom_host_free: "a-", loom_host_callback: "-a", __wasm_init_tls: "a-",
};

type Function = (...args: unknown[]) => unknown;

function narrowed(body: Function, letters: string): Function {
  const count = letters.length - 1, gives = letters[count] === "a";
  return (...args) => {
    for (let i = 0; i < count; ++i) if (letters[i] === "a") args[i] = BigInt(args[i] as number);
    const result = body(...args);
    return gives ? Number(result) : result;
  };
}

/** The exports of such a module, with numbers for addresses. */
export function withNumbers(exports: WebAssembly.Exports): WebAssembly.Exports {
  const out: Record<string, WebAssembly.ExportValue> = {};
  for (const [name, value] of Object.entries(exports)) {
    const letters = addresses[name] ?? ofTheHost[name];
    out[name] = letters === undefined ? value : narrowed(value as Function, letters) as WebAssembly.ExportValue;
  }
  return out;
}

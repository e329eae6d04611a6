/** The modules of the package, as Node.js finds them. */

import { readFile } from "node:fs/promises";

import type { Variant } from "./module.js";

const files: Record<Variant, string> = {
  simd: "loom.wasm",
  relaxed: "loom-relaxed.wasm",
  threads: "loom-threads.wasm",
  "relaxed-threads": "loom-relaxed-threads.wasm",
  gpu: "loom-gpu.wasm",
  memory64: "loom-memory64.wasm",
  "memory64-threads": "loom-memory64-threads.wasm",
};
export async function compile(variant: Variant): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await readFile(new URL(`./wasm/${files[variant]}`, import.meta.url)));
}

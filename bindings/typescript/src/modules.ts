/** The modules of the package, as a page finds them. */

import type { Variant } from "./module.js";

// Each address is complete, so that bundlers find the files.
const addresses: Record<Variant, () => URL> = {
  simd: () => new URL("./wasm/loom.wasm", import.meta.url),
  relaxed: () => new URL("./wasm/loom-relaxed.wasm", import.meta.url),
  threads: () => new URL("./wasm/loom-threads.wasm", import.meta.url),
  "relaxed-threads": () => new URL("./wasm/loom-relaxed-threads.wasm", import.meta.url),
  gpu: () => new URL("./wasm/loom-gpu.wasm", import.meta.url),
  memory64: () => new URL("./wasm/loom-memory64.wasm", import.meta.url),
  "memory64-threads": () => new URL("./wasm/loom-memory64-threads.wasm", import.meta.url),
};

export async function compile(variant: Variant): Promise<WebAssembly.Module> {
  const response = await fetch(addresses[variant]());
  if (response.headers.get("content-type")?.startsWith("application/wasm") === true) {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

/** The worker of an engine in a browser, and each of its lanes. */

import { Loaded, type LaneStart, type Variant } from "./module.js";
import type { LaneMessage } from "./protocol.js";
import { Server, type Platform } from "./server.js";

// Each address stands whole, so that bundlers find the files.
const addresses: Record<Variant, () => URL> = {
  simd: () => new URL("./wasm/loom.wasm", import.meta.url),
  relaxed: () => new URL("./wasm/loom-relaxed.wasm", import.meta.url),
  threads: () => new URL("./wasm/loom-threads.wasm", import.meta.url),
  "relaxed-threads": () => new URL("./wasm/loom-relaxed-threads.wasm", import.meta.url),
};

const scope = globalThis as unknown as {
  postMessage(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  addEventListener(type: "message", handler: (event: MessageEvent) => void, options?: { once: boolean }): void;
  readonly location: { readonly href: string };
  readonly navigator: { readonly hardwareConcurrency: number };
};

async function compile(variant: Variant): Promise<WebAssembly.Module> {
  const response = await fetch(addresses[variant]());
  if (response.headers.get("content-type")?.startsWith("application/wasm") === true) {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

function lane(start: LaneStart): Promise<void> {
  // This very file, by the address that it has now: bundlers take no worker that asks for itself.
  const here = scope.location.href;
  const worker = new Worker(here, { type: "module", name: "loom lane" });
  return new Promise((resolve, reject) => {
    worker.addEventListener("message", () => resolve());
    worker.addEventListener("error", (event) => reject(new Error(event.message)));
    worker.postMessage({ lane: start } satisfies LaneMessage);
  });
}

async function becomeLane(start: LaneStart): Promise<void> {
  const loaded = await Loaded.create(start.module, start);
  scope.postMessage("ready");
  loaded.exports.loom_host_worker();
}

const platform: Platform = { module: compile, lane, readPath: null, cores: scope.navigator.hardwareConcurrency };

// The first message says what this worker is.
const server = new Server(platform);
let serve: ((message: never) => void) | null = null;
server.serve({ post: (message, transfer = []) => scope.postMessage(message, [...transfer]), listen: (h) => (serve = h) });
scope.addEventListener("message", ({ data }: MessageEvent<LaneMessage | object>) => {
  if ("lane" in data) void becomeLane(data.lane);
  else serve?.(data as never);
});

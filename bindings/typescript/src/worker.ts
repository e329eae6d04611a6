/** The worker of an engine in a browser, and each of its lanes. */

import { LoomError } from "./errors.js";
import type { Gpu } from "./gpu_types.js";
import { Loaded, type LaneStart } from "./module.js";
import { compile } from "./modules.js";
import type { LaneMessage } from "./protocol.js";
import { Server, type Platform } from "./server.js";

const scope = globalThis as unknown as {
  postMessage(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  addEventListener(type: "message", handler: (event: MessageEvent) => void, options?: { once: boolean }): void;
  readonly location: { readonly href: string };
  readonly navigator: { readonly hardwareConcurrency: number; readonly gpu?: Gpu };
};

function lane(start: LaneStart): Promise<() => void> {
  // This very file, by the address that it has now: bundlers take no worker that asks for itself.
  const here = scope.location.href;
  const worker = new Worker(here, { type: "module", name: "loom lane" });
  return new Promise((resolve, reject) => {
    worker.addEventListener("message", () => resolve(() => worker.terminate()));
    worker.addEventListener("error", (event) => reject(new Error(event.message)));
    worker.postMessage({ lane: start } satisfies LaneMessage);
  });
}

async function becomeLane(start: LaneStart): Promise<void> {
  const loaded = await Loaded.create(start.module, start);
  scope.postMessage("ready");
  loaded.exports.loom_host_worker();
}

async function gpu(): Promise<Gpu> {
  if (scope.navigator.gpu !== undefined) return scope.navigator.gpu;
  throw new LoomError("unsupported", "this browser shows a worker no WebGPU (navigator.gpu); it is too old, has it " +
    "switched off, or the page is neither from https nor from this machine");
}

const platform: Platform = { module: compile, lane, readPath: null, gpu, cores: scope.navigator.hardwareConcurrency };

// The first message says what this worker is.
const server = new Server(platform);
let serve: ((message: never) => void) | null = null;
server.serve({ post: (message, transfer = []) => scope.postMessage(message, [...transfer]), listen: (h) => (serve = h) });
scope.addEventListener("message", ({ data }: MessageEvent<LaneMessage | object>) => {
  if ("lane" in data) void becomeLane(data.lane);
  else serve?.(data as never);
});

/** The worker of an engine in Node.js, and each of its lanes. */

import { open } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parentPort, Worker, workerData } from "node:worker_threads";

import { LoomError } from "./errors.js";
import type { Opened } from "./files.js";
import type { Gpu } from "./gpu_types.js";
import { Loaded, type LaneStart } from "./module.js";
import { compile } from "./modules_node.js";
import { Server, type Platform } from "./server.js";

const kPiece = 4 << 20;

function lane(start: LaneStart): Promise<() => void> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { lane: start } });
  worker.unref();
  return new Promise((resolve, reject) => worker.on("message", () => resolve(() => void worker.terminate())).on("error", reject));
}

async function readPath(text: string): Promise<Opened> {
  const path = text.startsWith("file:") ? fileURLToPath(text) : text;
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    const code = error.code === "ENOENT" ? "not_found" : "io_error";
    throw new LoomError(code, `${path}: ${error.code === "ENOENT" ? "there is no such file" : error.message}`);
  });
  const { size } = await file.stat();
  async function* pieces(): AsyncIterable<Uint8Array> {
    const buffer = new Uint8Array(Math.min(kPiece, Math.max(size, 1)));
    try {
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }
  return { name: path, size, pieces };
}

/** That of the package webgpu of npm (Dawn), where the program has installed it. */
async function gpu(): Promise<Gpu> {
  const name = "webgpu";
  try {
    const { create } = (await import(name)) as { create(options: string[]): Gpu };
    return create([]);
  } catch (error) {
    throw new LoomError("unsupported", "Node.js has no WebGPU of its own, and the package webgpu of npm cannot be " +
      `loaded: ${String((error as Error).message).split("\n")[0]}`);
  }
}

const port = parentPort;
const start = (workerData as { lane?: LaneStart } | null)?.lane;
if (port !== null && start !== undefined) {
  const loaded = await Loaded.create(start.module, start);
  port.postMessage("ready");
  loaded.exports.loom_host_worker();
} else if (port !== null) {
  const platform: Platform = { module: compile, lane, readPath, gpu, cores: availableParallelism() };
  new Server(platform).serve({
    post: (message, transfer = []) => port.postMessage(message, [...transfer]),
    listen: (handler) => void port.on("message", handler as (message: unknown) => void),
  });
}

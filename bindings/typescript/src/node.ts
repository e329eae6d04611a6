/** Loom in Node.js. */

import { Worker } from "node:worker_threads";

import { Loom, type InitOptions } from "./client.js";
import { LoomError } from "./errors.js";
import type { Started } from "./link.js";
import type { Port } from "./protocol.js";

export * from "./common.js";

function start(): Started {
  const worker = new Worker(new URL("./worker_node.js", import.meta.url), { execArgv: [] });
  let terminated = false;
  const port: Port = {
    post: (message, transfer = []) => worker.postMessage(message, [...transfer]),
    listen: (handler) => worker.on("message", handler as (message: unknown) => void),
  };
  return {
    port,
    terminate: () => {
      terminated = true;
      void worker.terminate();
    },
    busy: (waits) => (waits ? worker.ref() : worker.unref()),
    onEnd: (handler) => {
      worker.on("error", (error) => handler(error.message));
      worker.on("exit", (code) => (terminated ? undefined : handler(`exit code ${code}`)));
    },
  };
}

/** Starts an engine; it can be used when the promise resolves. A program ends without close(), too. */
export function init(options: InitOptions = {}): Promise<Loom> {
  return Loom.start(start, options);
}

/** There is no cache in Node.js. */
export function clearCache(): Promise<void> {
  return Promise.reject(new LoomError("unsupported", "load() keeps no files in Node.js"));
}

/** Loom in a browser. */

import { Loom, type InitOptions } from "./client.js";
import type { Started } from "./link.js";
import type { Port } from "./protocol.js";

export * from "./common.js";
export { clearCache } from "./cache.js";

function start(): Started {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "loom" });
  const port: Port = {
    post: (message, transfer = []) => worker.postMessage(message, [...transfer]),
    listen: (handler) => worker.addEventListener("message", (event) => handler(event.data as never)),
  };
  return {
    port,
    terminate: () => worker.terminate(),
    onEnd: (handler) => worker.addEventListener("error", (event) => handler(event.message)),
  };
}

/** Starts an engine; it can be used when the promise resolves. */
export function init(options: InitOptions = {}): Promise<Loom> {
  return Loom.start(start, options);
}

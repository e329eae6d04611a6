// A worker that runs the conformance drivers on the GPU of this browser.
import { GpuHost } from "/package/dist/gpu.js";

import { runConformance } from "./gpu_conformance.mjs";

addEventListener("message", async ({ data: { url, ...how } }) => {
  try {
    const module = await WebAssembly.compileStreaming(fetch(url));
    postMessage(await runConformance(module, new GpuHost(navigator.gpu), how));
  } catch (error) {
    postMessage({ text: String(error.stack ?? error), passed: 0, failed: 1, skipped: 0, sum: "" });
  }
});

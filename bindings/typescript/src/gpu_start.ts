/** Whether an engine can compute on the GPU here. Errors say what is missing, and become notes of an engine without. */

import { LoomError } from "./errors.js";
import { canSuspend, GpuHost } from "./gpu.js";
import type { Gpu } from "./gpu_types.js";
import type { Host } from "./module.js";

function missing(what: string): LoomError {
  return new LoomError("unsupported", what);
}

/** Asks for an adapter before the module is fetched. Throws LoomError "unsupported". */
export async function openGpu(here: Host, find: () => Promise<Gpu>): Promise<GpuHost> {
  const gpu = await find();
  if (!canSuspend()) {
    throw missing("this host has no JSPI (WebAssembly.Suspending), by which a module waits for the GPU; take a newer one");
  }
  if (!here.relaxed) throw missing("this host has no relaxed SIMD in WebAssembly, which the module for GPUs is made with");
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (adapter === null) throw missing("the browser offers no GPU adapter; its page about graphics says why");
  return new GpuHost(gpu);
}

// The conformance drivers on the GPU of Node.js: Dawn, from the npm package webgpu. Runs from the
// folder where it and the package are installed.
//   LOOM_GPU_CASES=few node gpu_conformance_node.mjs loom_gpu_conformance.wasm [FLAG...]
// FLAG is a flag of GoogleTest. LOOM_TEST_TIMES=1 prints each test as it ends.
import { readFileSync } from "node:fs";

import { create } from "webgpu";

import { runConformance } from "./gpu_conformance.mjs";

const [file, ...args] = process.argv.slice(2);
if (!("Suspending" in WebAssembly)) {
  console.log("conformance on the GPU of Node.js: this one has no JSPI: 0 passed, 0 failed, 1 skipped");
  process.exit(0);
}
const { GpuHost } = await import(new URL("gpu.js", import.meta.resolve("@loom-engine/loom")));
const { text, passed, failed, skipped, sum } = await runConformance(
  await WebAssembly.compile(readFileSync(file)), new GpuHost(create([])), {
    args, environment: { LOOM_GPU_CASES: process.env.LOOM_GPU_CASES ?? "few" },
    write: process.env.LOOM_TEST_TIMES ? (piece) => process.stderr.write(piece) : undefined,
  });
console.error(failed > 0 || passed === 0 ? text : sum);
console.log(`conformance on the GPU of Node.js: ${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);  // Dawn has separate threads

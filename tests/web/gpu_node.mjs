// The package on a GPU in Node.js: Dawn, from the npm package webgpu, over any Vulkan driver. Runs
// from the folder where both packages are installed.
//   LOOM_TREE=. VK_ICD_FILENAMES=... node gpu_node.mjs
// With LOOM_WEB_SAMPLE (sample.mjs) a case runs here or in the browser.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import * as package_ from "@loom-engine/loom";

import { gpuCases, gpuShare } from "./gpu_suite.mjs";

const tree = process.env.LOOM_TREE ?? ".";
const kit = { ...package_, source: (path) => join(tree, path), bytes: async (path) => new Uint8Array(readFileSync(join(tree, path))) };
let passed = 0, failed = 0;
const gpu = await package_.init({ device: "gpu" }), cpu = await package_.init({ threads: 1, activations: "f32" });
if (gpu.info.variant !== "gpu") {
  console.error(`skipped: ${gpu.info.notes.join("; ")}`);
} else {
  for (const name of gpuShare("node", Object.keys(gpuCases), process.env.LOOM_WEB_SAMPLE ?? "whole")) {
    const start = performance.now();
    try {
      await gpuCases[name](kit, { gpu, cpu });
      ++passed;
      if (process.env.LOOM_TEST_TIMES) console.error(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
    } catch (error) {
      ++failed;
      console.error(`${name}: ${error.stack ?? error}`);
    }
  }
}
gpu.close();
cpu.close();
console.log(`GPU in Node.js: ${passed} passed, ${failed} failed, ${passed + failed === 0 ? 1 : 0} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

// Compares every op of the kernels for WebAssembly with the reference, bit by bit: the drivers of
// tests/conformance as a program.
//   node tests/web/conformance_node.mjs loom_conformance.wasm [FILTER]
import { readFileSync } from "node:fs";

import { Exit, wasi } from "./wasi.mjs";

const [file, filter = "*"] = process.argv.slice(2);
const module = await WebAssembly.compile(readFileSync(file));
const chunks = [];
const host = wasi({ args: ["loom_conformance", `--gtest_filter=${filter}`, "--gtest_color=no"],
  write: (_, data) => chunks.push(Buffer.from(data)) });
const named = {};
for (const { module: from, name } of WebAssembly.Module.imports(module)) (named[from] ??= {})[name] = host.functions[name];
const instance = await WebAssembly.instantiate(module, named);
host.attach(instance.exports.memory);
try {
  instance.exports._start();
} catch (error) {
  if (!(error instanceof Exit)) throw error;
}
const text = Buffer.concat(chunks).toString(), count = (word) => Number(new RegExp(`\\[  ${word}  \\] (\\d+) tests?`).exec(text)?.[1] ?? 0);
const passed = count("PASSED"), failed = /\[==========\]/.test(text) ? count("FAILED") : 1;
if (failed > 0) console.error(text);
console.log(`conformance: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

// The golden hashes in Node.js.   node tests/web/golden_node.mjs loom_hash.wasm [ISA]
// With --wasmtime PYTHON the program runs in Wasmtime, by its WASI, and not in Node.js by ours (wasi_host.py).
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { compareGolden } from "./golden.mjs";
import { run as runOnOurs } from "./wasi.mjs";
import { startWasmtime } from "./wasmtime.mjs";

const { values: { wasmtime: python }, positionals: [file, isa = ""] } =
  parseArgs({ allowPositionals: true, options: { wasmtime: { type: "string" } } });
const host = python ? startWasmtime(python, file) : null;
const run = host ? (_, args) => host.run(args) : runOnOurs;
const module = host ? null : await WebAssembly.compile(readFileSync(file));

const text = (name) => readFileSync(new URL(`../golden/${name}`, import.meta.url), "utf8");
let passed = 0, failed = 0;
const kernels = isa || (await run(module, ["isas"])).trim().split("\n").at(-1);
await compareGolden(module, text("hashes.txt"), text("training.txt"), (what, got, wanted) => {
  if (got === wanted) return ++passed;
  ++failed;
  console.error(`${what} (${kernels}): got ${got}, wanted ${wanted}`);
}, isa, run);
host?.stop();
console.log(`golden hashes, ${kernels}: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

// The golden hashes in Node.js.   node tests/web/golden_node.mjs loom_hash.wasm [ISA]
import { readFileSync } from "node:fs";

import { compareGolden } from "./golden.mjs";
import { run } from "./wasi.mjs";

const [file, isa = ""] = process.argv.slice(2);
const text = (name) => readFileSync(new URL(`../golden/${name}`, import.meta.url), "utf8");
const module = await WebAssembly.compile(readFileSync(file));
let passed = 0, failed = 0;
const isas = (await run(module, ["isas"])).trim().split("\n");
await compareGolden(module, text("hashes.txt"), text("training.txt"), (what, got, wanted) => {
  if (got === wanted) return ++passed;
  ++failed;
  console.error(`${what} (${isa || isas.at(-1)}): got ${got}, wanted ${wanted}`);
}, isa);
console.log(`golden hashes, ${isa || isas.at(-1)}: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 ? 0 : 1;

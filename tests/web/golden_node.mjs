// The golden hashes in Node.js.   node tests/web/golden_node.mjs loom_hash.wasm [ISA]
// With --wasi the program meets WASI as Node.js has it (node:wasi), not ours.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { compareGolden } from "./golden.mjs";
import { run as runOnOurs } from "./wasi.mjs";

// Node.js 20 frees what a WASI holds once nothing names the object, also while its program runs, and then crashes.
const kept = [];

async function runOnWasi(module, args) {
  const { WASI } = await import("node:wasi");
  const folder = mkdtempSync(join(tmpdir(), "loom-wasi-")), name = join(folder, "out"), stdout = openSync(name, "w");
  try {
    const wasi = new WASI({ version: "preview1", args: ["loom", ...args], env: {}, stdout });
    kept.push(wasi);
    wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
    return readFileSync(name, "utf8");
  } finally {
    closeSync(stdout);
    rmSync(folder, { recursive: true });
  }
}

const run = process.argv.includes("--wasi") ? runOnWasi : runOnOurs;
const [file, isa = ""] = process.argv.slice(2).filter((word) => word !== "--wasi");
const text = (name) => readFileSync(new URL(`../golden/${name}`, import.meta.url), "utf8");
const module = await WebAssembly.compile(readFileSync(file));
let passed = 0, failed = 0;
const isas = (await run(module, ["isas"])).trim().split("\n");
await compareGolden(module, text("hashes.txt"), text("training.txt"), (what, got, wanted) => {
  if (got === wanted) return ++passed;
  ++failed;
  console.error(`${what} (${isa || isas.at(-1)}): got ${got}, wanted ${wanted}`);
}, isa, run);
console.log(`golden hashes, ${isa || isas.at(-1)}: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 ? 0 : 1;

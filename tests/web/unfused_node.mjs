// A host whose relaxed multiply-add is not fused. Every f32x4.relaxed_madd of the module becomes
// f32x4.relaxed_nmadd, whose results differ. The start check must refuse the kernels that rely on
// it. The hashes must still be the golden ones, by the exact emulation.
//   node tests/web/unfused_node.mjs loom_hash_relaxed.wasm
import { readFileSync } from "node:fs";

import { compareGolden } from "./golden.mjs";
import { run } from "./wasi.mjs";

const bytes = readFileSync(process.argv[2]);
const kMadd = [0xfd, 0x85, 0x02], kNegated = [0xfd, 0x86, 0x02];
let replaced = 0;
for (let i = 0; i + 2 < bytes.length; ++i) {
  if (kMadd.every((byte, j) => bytes[i + j] === byte)) {
    bytes.set(kNegated, i);
    ++replaced;
  }
}
const module = await WebAssembly.compile(bytes);
const text = (name) => readFileSync(new URL(`../golden/${name}`, import.meta.url), "utf8");
let passed = 0, failed = 0;
function tell(what, got, wanted) {
  if (got === wanted) return ++passed;
  ++failed;
  console.error(`${what}: got ${got}, wanted ${wanted}`);
}
tell("fused instructions in the module", replaced > 100, true);
tell("sets of kernels", (await run(module, ["isas"])).trim().split("\n").join(" "), "wasm");
// Two number types show it; golden_node.mjs tests the emulation with all of them.
const some = text("hashes.txt").split("\n").filter((line) => /^(f32|q8_0) /.test(line)).join("\n");
await compareGolden(module, some, text("training.txt"), tell);
console.log(`a host that does not fuse: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 ? 0 : 1;

// What the modules take on the wire, held to budgets: bytes after brotli, as a server sends them.
//   node tests/web/size_test.mjs NAME=FILE...       a file that is not there is skipped
// Before a budget is raised docs/decisions says why.
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { brotliCompress, constants, gzipSync } from "node:zlib";

// Bytes. Wanted in the end: core 1.2 MB, inference 0.6 MB (docs/decisions/0054-small-modules.md, 0064-blocks.md,
// 0073-nodes-that-share-weights.md).
const kBudgets = { whole: 1_417_500, core: 1_335_500, inference: 819_000, gpu: 1_615_000 };

const compressed = promisify(brotliCompress);
let passed = 0, failed = 0, skipped = 0;
// All at once: one takes most of a minute, of one core.
await Promise.all(process.argv.slice(2).map(async (argument) => {
  const [name, file] = argument.split("=");
  if (!existsSync(file)) {
    console.error(`skipped: ${name}: ${file} was not built`);
    ++skipped;
    return;
  }
  const bytes = readFileSync(file), params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const size = (await compressed(bytes, { params })).length, budget = kBudgets[name];
  const text = `${name}: ${bytes.length} bytes, gzip ${gzipSync(bytes, { level: 9 }).length}, brotli ${size}`;
  if (size <= budget) {
    ++passed;
    console.error(text);
  } else {
    ++failed;
    console.error(`${text}, budget ${budget}`);
  }
}));
console.log(`sizes: ${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

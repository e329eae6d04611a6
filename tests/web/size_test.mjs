// Budgets for the size of modules on the wire: bytes after brotli at its best quality, as a server
// sends them.
//   node tests/web/size_test.mjs NAME=FILE...       an absent file is skipped
// That quality takes most of a minute for all modules. A sample (LOOM_WEB_SAMPLE, sample.mjs) first
// uses a quality that takes a second. A module that is small enough there passes; only others are
// compressed at the best quality.
// A higher budget needs a reason in docs/decisions.
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { brotliCompress, constants, gzipSync } from "node:zlib";

// Bytes. `best` is the budget. The goals are core 1.2 MB and inference 0.6 MB
// (docs/decisions/0054-small-modules.md, 0064-blocks.md, 0073-nodes-that-share-weights.md,
// 0076-checks-in-small-modules.md, 0078-what-trains-in-small-modules.md,
// 0082-checks-of-folders-in-small-modules.md, 0088-further-inputs-in-small-modules.md,
// 0090-an-operator-is-a-row.md, 0091-options-in-small-modules.md,
// 0099-options-of-text-are-described.md, 0103-tables.md, 0112-a-first-hour.md,
// 0118-sizes-of-new-families.md, 0124-sizes-of-recurrent-families.md). `fast` is the size
// of a module within its budget at quality 9, measured with `best`.
const kBudgets = {
  whole: { best: 1_628_000, fast: 1_863_600 }, core: { best: 1_540_500, fast: 1_766_300 },
  inference: { best: 899_000, fast: 1_033_300 }, gpu: { best: 1_810_500, fast: 2_078_700 },
};

const compressed = promisify(brotliCompress);
async function size(bytes, quality) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return (await compressed(bytes, { params })).length;
}

const sampled = (process.env.LOOM_WEB_SAMPLE ?? "whole") !== "whole";
async function fits(name, bytes) {
  const budget = kBudgets[name], fast = await size(bytes, 9);
  console.error(`${name}: ${bytes.length} bytes, brotli 9: ${fast} of ${budget.fast}`);
  if (sampled && fast <= budget.fast) return true;
  const best = await size(bytes, 11);
  console.error(`${name}: gzip ${gzipSync(bytes, { level: 9 }).length}, brotli 11: ${best}, budget ${budget.best}`);
  return best <= budget.best;
}

let passed = 0, failed = 0, skipped = 0;
// All at once: the best quality takes some 20 seconds each, of one core.
await Promise.all(process.argv.slice(2).map(async (argument) => {
  const [name, file] = argument.split("=");
  if (!existsSync(file)) {
    console.error(`skipped: ${name}: ${file} was not built`);
    ++skipped;
  } else if (await fits(name, readFileSync(file))) {
    ++passed;
  } else {
    ++failed;
  }
}));
console.log(`sizes: ${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

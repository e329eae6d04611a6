// Runs the blocks of docs/web.md that name this file, as separate programs with the package
// installed.
//   node docs_run.mjs TREE    from the folder where the package is installed
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [tree] = process.argv.slice(2), here = dirname(fileURLToPath(import.meta.url));
const text = readFileSync(join(tree, "docs/web.md"), "utf8");
let passed = 0, failed = 0;
for (const [, block] of text.matchAll(/<!-- run by tests\/web\/docs_run\.mjs -->\n```js\n([^]*?)```/g)) {
  const file = join(here, `block${passed + failed}.mjs`);
  writeFileSync(file, block);
  const ran = spawnSync(process.execPath, [file], { cwd: tree, encoding: "utf8", timeout: 120000 });
  if (ran.status === 0 && ran.stdout.length > 10) {
    ++passed;
  } else {
    ++failed;
    console.error(`docs/web.md: ${block}\nexit status ${ran.status}, signal ${ran.signal}: ${ran.stdout}${ran.stderr}`);
  }
}
console.log(`docs/web.md: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

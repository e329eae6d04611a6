// Runs the blocks of docs/web.md that name this file, as separate programs with the package
// installed. Also runs the page of docs/tutorials/web-page.md. Its document only stores text.
//   node docs_run.mjs TREE    from the folder where the package is installed
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [tree] = process.argv.slice(2), here = dirname(fileURLToPath(import.meta.url));
let passed = 0, failed = 0;

function blocks(page, language) {
  const text = readFileSync(join(tree, page), "utf8");
  const form = new RegExp(`<!-- run by tests/web/docs_run\\.mjs -->\n\`\`\`${language}\n([^]*?)\`\`\``, "g");
  return [...text.matchAll(form)].map(([, block]) => block);
}

function run(page, block, expected) {
  const file = join(here, `block${passed + failed}.mjs`);
  writeFileSync(file, block);
  const ran = spawnSync(process.execPath, [file], { cwd: tree, encoding: "utf8", timeout: 120000 });
  if (ran.status === 0 && ran.stdout.length > 10 && ran.stdout.trimEnd().endsWith(expected)) {
    ++passed;
  } else {
    ++failed;
    console.error(`${page}: ${block}\nexit status ${ran.status}, signal ${ran.signal}: ${ran.stdout}${ran.stderr}`);
  }
}

for (const block of blocks("docs/web.md", "js")) run("docs/web.md", block, "");
const tutorial = "docs/tutorials/web-page.md", [page] = blocks(tutorial, "html"), [shown] = blocks(tutorial, "text");
const script = page.match(/<script type="module">\n([^]*?)<\/script>/)[1];
run(tutorial, `const out = {};
globalThis.document = { getElementById: () => out };
${script.replace("./node_modules/@loom-engine/loom/dist/index.js", "@loom-engine/loom")}
console.log(out.textContent);
loom.close();
`, shown.trimEnd());
console.log(`docs/web.md: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

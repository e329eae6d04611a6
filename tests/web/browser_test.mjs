// The package and the golden hashes in Chromium without a window, driven by Playwright.
//   NODE_PATH=packages/node_modules node tests/web/browser_test.mjs PACKAGE NATIVE.json HASHES
//   NODE_PATH=packages/node_modules node tests/web/browser_test.mjs --app APP NATIVE.json
// PACKAGE: the folder of the installed package; HASHES: the folder with loom_hash.wasm and loom_hash_relaxed.wasm.
// With LOOM_WEB_SAMPLE (sample.mjs) each case runs with one variant. APP is a built app whose page
// is page.mjs (vite_app.sh) with the package.
import { copyFileSync, existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launch, newPage } from "./browser.mjs";
import { tenth } from "./sample.mjs";
import { serveFiles } from "./serve.mjs";

const inApp = process.argv[2] === "--app";
const [folder, native, hashes] = process.argv.slice(inApp ? 3 : 2);
const tree = fileURLToPath(new URL("../../", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "loom-web-"));
copyFileSync(native, join(root, "native.json"));
const server = await serveFiles({ "/": root, "/tree/": tree, ...(inApp ? { "/app/": folder } : { "/package/": folder, "/hashes/": hashes }) });
const sample = process.env.LOOM_WEB_SAMPLE ?? "whole";
const tests = inApp ? "/app/index.html" : "/tree/tests/web/page.html";
const browser = await launch();

let passed = 0, failed = 0;
function count(where, name, error) {
  if (error === null) return ++passed;
  ++failed;
  return console.error(`${where}: ${name}: ${error}`);
}
async function open(alone = false) {
  const page = await newPage(browser);
  page.on("pageerror", (error) => count("page", "no error in the page", String(error)));
  await page.goto(`${server.address}${tests}${alone ? "?alone" : ""}`);
  await page.waitForFunction(() => window.loomTests !== undefined);
  return page;
}
function all(where, { results }) {
  for (const { name, error } of results) count(where, name, error);
}

try {
  let page = await open();
  const { relaxed, shared, memory64 } = await page.evaluate(() => window.loomTests.host());
  count("isolated page", "memory can be shared", shared ? null : "it cannot");
  const wide = memory64 && !inApp && existsSync(join(folder, "dist/wasm/loom-memory64.wasm"));
  const variants = [["simd", 1], ["relaxed", 1], ["threads", 2], ["relaxed-threads", 2], ["memory64", 1], ["memory64-threads", 2]]
    .filter(([name]) => (relaxed || /simd|^threads/.test(name)) && (wide || !name.startsWith("memory64")));
  const names = variants.map(([name]) => name);
  for (const [variant, threads] of variants) {
    const run = await page.evaluate((args) => window.loomTests.suite(...args), [names, variant, threads, sample]);
    all(variant, run);
    count(variant, "lanes", run.info.threads === threads ? null : `${run.info.threads}`);
  }

  all("compat", await page.evaluate(() => window.loomTests.compat()));

  server.asked.length = 0;
  all("cache", await page.evaluate(() => window.loomTests.cache()));
  const ranges = server.asked.filter(({ path, range }) => path.endsWith("stories.entity") && range !== null).map(({ range }) => range);
  const begins = ranges.filter(([first, last]) => last > 0).map(([first]) => first);
  const once = new Set(begins).size === begins.length && begins.length > 1;
  count("cache", "every piece is brought once", once ? null : JSON.stringify(ranges));

  const first = await page.evaluate(() => window.loomTests.firstToken());
  console.error(`first token ${first.toFixed(0)} ms after the file is there`);
  const { longest, took, tokens } = await page.evaluate(() => window.loomTests.responsive());
  const waited = `${tokens} tokens in ${took.toFixed(0)} ms; the page waited ${longest.toFixed(0)} ms at most`;
  console.error(waited);
  count("page", "goes on while the engine computes", longest < took / 2 ? null : waited);

  const programs = inApp ? [] : ["loom_hash.wasm", ...(relaxed ? ["loom_hash_relaxed.wasm"] : [])];
  for (const file of tenth(programs, "page hashes", sample)) {
    const told = await page.evaluate((name) => new Promise((resolve) => {
      const worker = new Worker("/tree/tests/web/hash_worker.mjs", { type: "module" });
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => resolve({ count: 0, differing: [event.message], isa: name });
      worker.postMessage({ url: `/hashes/${name}`, isa: "" });
    }), file);
    passed += told.count - told.differing.length;
    for (const line of told.differing) count(`hashes, ${told.isa}`, "golden", line);
    console.error(`golden hashes in Chromium, ${told.isa}: ${told.count - told.differing.length} of ${told.count}`);
  }

  // A page whose server does not isolate it: it has one thread, and signals still work.
  page = await open(true);
  const alone = await page.evaluate(() => window.loomTests.some([
    "a story is the native one, token by token and as a whole", "a signal ends a text where it is", "a signal ends training"]));
  all("page that is not isolated", alone);
  count("page that is not isolated", "says why it has one thread", alone.info.notes.join().includes("Cross-Origin") ? null : alone.info.notes.join());
} finally {
  await browser.close();
  server.stop();
}
console.log(`${inApp ? "Vite app" : "Chromium"}: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 ? 0 : 1;

#!/usr/bin/env node
// Compares Loom with its peers in one run of one Chromium, each with one thread and the same file.
// wllama (llama.cpp as WebAssembly) runs a language model in q8_0 and q4_0, transformers.js the
// same one in f32. onnxruntime-web runs networks in f32 and int8. The engines alternate, so that
// all see the same machine, and medians are compared.
//
//   scripts/wasm_package.sh && node bench/web_peer.mjs --python ~/onnx/bin/python
//   node bench/web_peer.mjs --rounds 9 --only llm --check 1
//
// --python: one with numpy, onnx and onnxruntime, which makes the models (web_peer_models.py) once
// --loom:   the program that writes GGUF (build/dev/cli/loom)          --only: llm or layers
// --rounds: turns of each engine (5)      --variant: relaxed (as init() chooses) or simd
// Exit status: 0; 1 when a ratio is below --check; 77 when a peer is not there.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { serveFiles } from "../tests/web/serve.mjs";

const { values: asked } = parseArgs({ options: {
  python: { type: "string", default: "python3" }, loom: { type: "string", default: "build/dev/cli/loom" },
  rounds: { type: "string", default: "5" }, only: { type: "string", default: "" }, check: { type: "string", default: "0" },
  variant: { type: "string", default: "" }, help: { type: "boolean", short: "h", default: false },
} });
if (asked.help) {
  console.log("usage: node bench/web_peer.mjs [--python P] [--loom L] [--rounds N] [--only llm|layers] [--variant V] [--check R]");
  process.exit(0);
}
const tree = fileURLToPath(new URL("../", import.meta.url));
const work = join(tree, "build/web/peers"), models = join(work, "models"), package_ = join(tree, "build/web/package");
const kPrompt = "Once upon a time there was a little fox who lived in the wood. Every day the fox went to the river to drink. " +
  "One day it saw a bird with a broken wing. The fox wanted to help, but the bird was afraid and hopped away. ";
const kTokens = 32;
const kLayers = [["dense", [1, 1024], {}], ["dense", [32, 1024], {}], ["conv", [1, 32, 56, 56], {}],
  ["dense", [1, 1024], { int8: true }], ["dense", [32, 1024], { int8: true }]];

function missing(what) {
  console.error(`web_peer: ${what}, so there is no comparison`);
  process.exit(77);
}

// The packages of the peers and the models; downloaded and made once.
function prepare() {
  if (!existsSync(join(package_, "dist/index.js"))) missing("build/web/package was not built (scripts/wasm_package.sh)");
  try {
    if (!existsSync(join(work, "node_modules/onnxruntime-web"))) {
      execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", "--prefix", work, "@wllama/wllama@3",
        "onnxruntime-web@1", "playwright-core@1"], { stdio: "pipe" });
    }
    // Its other dependencies are for Node.js, and are not installed.
    if (!existsSync(join(work, "node_modules/@huggingface/transformers"))) {
      execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", work,
        "@huggingface/transformers@4"], { stdio: "pipe" });
    }
  } catch {
    missing("wllama, transformers.js, onnxruntime-web or playwright-core cannot be had from npm");
  }
  if (existsSync(join(models, "llama/onnx/model.onnx"))) return;
  try {
    execFileSync(asked.python, [join(tree, "bench/web_peer_models.py"), asked.loom, models], { stdio: "pipe" });
  } catch (error) {
    missing(`the models cannot be made: ${String(error.stderr ?? error).trim().split("\n").at(-1)}`);
  }
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const floor = Number(asked.check), rounds = Number(asked.rounds);
let below = 0;
function row(what, ours, theirs, unit) {
  const ratio = ours / theirs;
  if (ratio < floor) ++below;
  console.log(`| ${what} | ${theirs.toPrecision(3)} | ${ours.toPrecision(3)} ${unit} | ${ratio.toFixed(2)} | ${ratio >= 1 ? "HELD" : "NOT HELD"} |`);
}

async function languageModel(page, dtype, peer) {
  const engines = ["loom", peer], told = { loom: [], [peer]: [] };
  for (const name of engines) {
    const what = await page.evaluate(([engine, file, variant]) => window.peers.open("llm", engine, file, { variant }),
      [name, `/models/llama-${dtype}.gguf`, asked.variant]);
    console.error(`${name}: ${what}`);
  }
  // One round that does not count: pages are touched, and all code is compiled.
  for (let turn = 0; turn <= rounds; ++turn) {
    for (const name of turn % 2 === 0 ? engines : engines.toReversed()) {
      const result = await page.evaluate(([engine, text, tokens]) => window.peers.run(engine, text, tokens),
        [name, `${turn}. ${kPrompt}`, kTokens]);
      if (turn > 0) told[name].push(result);
    }
  }
  for (const name of engines) await page.evaluate((engine) => window.peers.close(engine), name);
  const [a, b] = [told.loom[0], told[peer][0]];
  console.error(`read ${a.read} and ${b.read} tokens, wrote ${a.wrote} and ${b.wrote}, ${a.text === b.text ? "the same text" : "other texts"}`);
  for (const kind of ["prefill", "decode"]) {
    row(`${peer}, ${dtype}, ${kind}`, median(told.loom.map((x) => x[kind])), median(told[peer].map((x) => x[kind])), "tokens/s");
  }
}

async function layers(page, name, shape, options) {
  const engines = ["loom", "ort"], told = { loom: [], ort: [] };
  for (const engine of engines) {
    const what = await page.evaluate((all) => window.peers.open("net", ...all),
      [engine, `/models/${name}.onnx`, shape, { ...options, variant: asked.variant }]);
    console.error(`${engine}: ${what}`);
  }
  for (let turn = 0; turn < rounds; ++turn) {
    for (const engine of turn % 2 === 0 ? engines : engines.toReversed()) {
      told[engine].push(await page.evaluate((all) => window.peers.pass(...all), [engine, shape, 0.5]));
    }
  }
  for (const engine of engines) await page.evaluate((one) => window.peers.close(one), engine);
  const [a, b] = [told.loom[0].values, told.ort[0].values];
  const largest = Math.max(...b.map(Math.abs)), off = Math.max(...a.map((value, i) => Math.abs(value - b[i]))) / largest;
  if (!(off < (options.int8 ? 0.05 : 1e-4))) throw new Error(`${name}: the engines differ by ${off} of the largest value`);
  const rate = (engine) => 1 / median(told[engine].map(({ seconds }) => seconds));
  row(`onnxruntime-web, ${name} ${shape.join("x")}, ${options.int8 ? "int8" : "f32"}`, rate("loom"), rate("ort"), "passes/s");
}

prepare();
const require = createRequire(join(work, "package.json"));
const { chromium } = require("playwright-core");
const server = await serveFiles({ "/tree/": tree, "/package/": package_, "/peers/": work, "/models/": models });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox",
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync", "--disable-background-networking",
  "--disable-component-update"] });
try {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(0);
  page.on("pageerror", (error) => console.error(`page: ${error}`));
  await page.goto(`${server.address}/tree/bench/web_peer.html`);
  await page.waitForFunction(() => window.peers !== undefined);
  console.log(`${new Date().toISOString().slice(0, 10)}, ${cpus()[0].model}, Chromium ${browser.version()}, one thread each\n`);
  console.log("| peer and task | peer | Loom | ratio | at least the peer's |\n|---|---|---|---|---|");
  if (asked.only !== "layers") {
    for (const dtype of ["q8_0", "q4_0"]) await languageModel(page, dtype, "wllama");
    await languageModel(page, "f32", "transformers");
  }
  if (asked.only !== "llm") for (const [name, shape, options] of kLayers) await layers(page, name, shape, options);
} finally {
  await browser.close();
  server.stop();
}
process.exitCode = below > 0 ? 1 : 0;

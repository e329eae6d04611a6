// The package on a GPU in headless Chromium. The adapters are: one that computes on the CPU
// (SwiftShader), none, one below the limits, and one whose device is lost.
//   NODE_PATH=packages/node_modules node tests/web/gpu_browser_test.mjs PACKAGE [MODULES]
// PACKAGE is the folder of the installed package. MODULES is that of loom_gpu_conformance.wasm,
// which is skipped if it was not built. Skips if Chromium offers no adapter. LOOM_GPU_CASES=all
// runs every case of every op, which takes hours. With LOOM_WEB_SAMPLE (sample.mjs) a case of
// gpu_suite.mjs runs here or in Node.js.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launch, newPage } from "./browser.mjs";
import { gpuShare } from "./gpu_suite.mjs";
import { serveFiles } from "./serve.mjs";

const tree = fileURLToPath(new URL("../../", import.meta.url));
const [folder, modules] = process.argv.slice(2), drivers = join(modules ?? "", "loom_gpu_conformance.wasm");
const server = await serveFiles({ "/tree/": tree, "/package/": folder, ...(modules ? { "/modules/": modules } : {}) });
const software = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"];
const sample = process.env.LOOM_WEB_SAMPLE ?? "whole";
const kModule = "/package/dist/wasm/loom-gpu.wasm";

let passed = 0, failed = 0, skipped = 0;
function count(name, error) {
  if (error === null) return ++passed;
  ++failed;
  return console.error(`${name}: ${error}`);
}
async function check(name, body) {
  await body().then(() => count(name, null), (error) => count(name, error.stack ?? error));
}
function holds(truth, what) {
  if (!truth) throw new Error(typeof what === "string" ? what : JSON.stringify(what));
}

// `before` is JavaScript that the engine's worker runs first.
async function open(browser, before = "") {
  const page = await newPage(browser);
  page.on("pageerror", (error) => count("no error in the page", String(error)));
  if (before !== "") {
    await page.route("**/dist/worker.js", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: `${before};\n${await response.text()}` });
    });
  }
  await page.goto(`${server.address}/tree/tests/web/gpu_page.html`);
  await page.waitForFunction(() => window.loomGpu !== undefined);
  return page;
}
// The drivers of tests/conformance: some ops of each family, with few cases; Node.js runs all ops.
async function conformance(page) {
  const cases = process.env.LOOM_GPU_CASES ?? "few";
  const some = "GpuKernels.*:GpuConformanceSum.*:GpuConformance." +
    ["binary", "unary", "norm", "softmax", "quantize_rows", "gather_rows", "reduce", "argmax", "copy", "pool", "random"].join(":GpuConformance.");
  const told = await page.evaluate(([args, environment]) => new Promise((resolve) => {
    const worker = new Worker("/tree/tests/web/gpu_conformance_worker.mjs", { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => resolve({ text: event.message, passed: 0, failed: 1, skipped: 0, sum: "" });
    worker.postMessage({ url: "/modules/loom_gpu_conformance.wasm", args, environment });
  }), [cases === "few" ? [`--gtest_filter=${some}`] : [], { LOOM_GPU_CASES: cases }]);
  passed += told.passed;
  failed += told.failed + (told.passed === 0 ? 1 : 0);
  console.error(told.failed > 0 || told.passed === 0 ? told.text : `conformance, ${told.passed} ops: ${told.sum}`);
}
// The CPU computes, and a note says why.
async function fallsBack(page, why) {
  server.asked.length = 0;
  const { info, shape } = await page.evaluate(() => window.loomGpu.fallback());
  holds(info.variant !== "gpu" && info.device === "cpu" && JSON.stringify(shape) === "[1,1]", info);
  holds(info.notes.some((note) => note.startsWith("the CPU computes: ") && why.test(note)), info.notes);
  await page.close();
}
const limited = `const find = navigator.gpu.requestAdapter.bind(navigator.gpu);
navigator.gpu.requestAdapter = async (wanted) => {
  const adapter = await find(wanted);
  return { features: adapter.features, info: adapter.info, limits: { maxStorageBuffersPerShaderStage: 4,
    maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupStorageSize: 16384 } };
}`;

const counting = `let submits = 0;
const submit = GPUQueue.prototype.submit;
GPUQueue.prototype.submit = function (list) {
  ++submits;
  return submit.call(this, list);
};
const channel = new BroadcastChannel("submits");
channel.onmessage = () => channel.postMessage(submits)`;

// Each of these compiles the kernels of a model once more. The last one takes the GPU from all pages.
const withModel = {
  async "a token takes one submission at most"(browser) {
    const counted = await open(browser, counting);
    const [few, many] = await counted.evaluate(() => window.loomGpu.submissions([8, 24]));
    console.error(`${few} submissions for 8 tokens, ${many} for 24`);
    holds(many - few <= 16 && few > 0, { few, many });
    await counted.close();
  },
  async "a device that is lost is an error, and the page goes on"(browser, page) {
    await page.evaluate(() => window.loomGpu.begin());
    const session = await browser.newBrowserCDPSession();
    await session.send("Browser.crashGpuProcess").catch(() => undefined);
    const { first, again } = await page.evaluate(() => window.loomGpu.ended());
    holds(first.code === "lost" && first.message.includes("lost"), first);
    holds(again.code === "lost", again);
    const { info: next } = await page.evaluate(() => window.loomGpu.fallback());
    holds(next.variant === "gpu" || next.notes.length > 0, next);
  },
};

let browser = await launch();
try {
  await check("no adapter: the CPU, and the module is not fetched", async () => {
    await fallsBack(await open(browser), /adapter|WebGPU/);
    holds(!server.asked.some(({ path }) => path === kModule), "loom-gpu.wasm was fetched");
  });
  await browser.close();
  browser = await launch(software);
  const page = await open(browser);
  const { info, results, seconds } = await page.evaluate((which) => window.loomGpu.suite(which), sample);
  if (info.variant !== "gpu") {
    console.error(`skipped: ${info.notes.join("; ")}`);
    ++skipped;
  } else {
    for (const { name, error } of results) count(name, error);
    console.error(Object.entries(seconds).map(([name, took]) => `${took.toFixed(1)} s: ${name}`).join("\n"));
    if (modules && existsSync(drivers)) await conformance(page);
    await check("no navigator.gpu", async () => fallsBack(await open(browser,
      'Object.defineProperty(navigator, "gpu", { value: undefined })'), /navigator\.gpu/));
    await check("no JSPI", async () => fallsBack(await open(browser, "delete WebAssembly.Suspending"), /JSPI/));
    await check("an adapter with less than is needed", async () => fallsBack(await open(browser, limited), /storage buffers/));
    for (const name of gpuShare("page", Object.keys(withModel), sample)) await check(name, () => withModel[name](browser, page));
  }
} finally {
  await browser.close();
  server.stop();
}
console.log(`GPU in Chromium: ${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

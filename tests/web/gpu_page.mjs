// The cases of gpu_suite.mjs in a page: gpu_browser_test.mjs calls these.
import * as package_ from "/package/dist/index.js";

import { gpuCases, gpuShare } from "./gpu_suite.mjs";

const kit = { ...package_, source: (path) => `/tree/${path}` };
const kPrompt = "Once upon a time", kModel = "/tree/models/stories.entity";

window.loomGpu = {
  // Runs engines of both kinds through the cases of the sample; returns the error of each, or null.
  async suite(sample) {
    const gpu = await package_.init({ device: "gpu" }), cpu = await package_.init({ threads: 1, activations: "f32" });
    const results = [], seconds = {};
    if (gpu.info.variant === "gpu") {
      for (const name of gpuShare("page", Object.keys(gpuCases), sample)) {
        const start = performance.now();
        const error = await gpuCases[name](kit, { gpu, cpu }).then(() => null, (what) => String(what.stack ?? what));
        results.push({ name, error });
        seconds[name] = (performance.now() - start) / 1000;
      }
    }
    const { info } = gpu;
    gpu.close();
    cpu.close();
    return { info, results, seconds };
  },

  // The result of init() here, and a computation with it.
  async fallback() {
    const loom = await package_.init({ device: "gpu" });
    const net = await loom.network([package_.layers.Dense(2, 1)], { input: 2, seed: 7 });
    const { shape } = await net.predict(package_.tensor(new Float32Array(2), [1, 2]));
    const { info } = loom;
    loom.close();
    return { info, shape };
  },

  // The number of command lists that texts of this length take, once their kernels are compiled.
  async submissions(lengths) {
    const loom = await package_.init({ device: "gpu" }), llm = await loom.load(kModel);
    const channel = new BroadcastChannel("submits");
    const count = () => new Promise((resolve) => {
      channel.onmessage = ({ data }) => resolve(data);
      channel.postMessage("how many?");
    });
    const submits = [];
    for (const maxTokens of [lengths[0], ...lengths]) {
      const before = await count();
      await llm.generate([1], { maxTokens, ignoreEos: true });
      submits.push(await count() - before);
    }
    channel.close();
    loom.close();
    return submits.slice(1);
  },

  // A text that continues until the device is gone; then a new engine of the same page.
  async begin() {
    const loom = await package_.init({ device: "gpu" }), llm = await loom.load(kModel);
    let tokens = 0;
    const text = llm.generate(kPrompt, { maxTokens: 400, ignoreEos: true, onToken: () => ++tokens });
    const ended = text.then(({ stop }) => ({ stop }), ({ code, message }) => ({ code, message }));
    window.loomGpu.going = { loom, llm, ended, tokens: () => tokens };
    while (tokens < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    return loom.info.device;
  },
  async ended() {
    const { loom, llm, ended } = window.loomGpu.going, first = await ended;
    const again = await llm.generate(kPrompt, { maxTokens: 2 }).then(() => ({}), ({ code, message }) => ({ code, message }));
    loom.close();
    return { first, again };
  },
};

// The measurements of web_peer.mjs, inside a page of Chromium. Each engine has one thread, reads
// the same file, and runs alternately. Rates of texts come from each engine's own interface; passes
// of networks are whole calls through it.

const kPeers = "/peers/node_modules";
const opened = {};

async function bytesOf(address) {
  return new Uint8Array(await (await fetch(address)).arrayBuffer());
}

// Engines of language models: prefill and decode of `prompt`, tokens per second.
const llms = {
  async loom(file, { variant } = {}) {
    const { init } = await import("/package/dist/index.js");
    const loom = await init({ threads: 1, ...(variant ? { variant } : {}) });
    const llm = await loom.load(file);
    return {
      what: loom.info.isa,
      async run(prompt, tokens) {
        const told = await llm.generate(prompt, { maxTokens: tokens, ignoreEos: true, context: 512 });
        return { read: told.promptTokens, prefill: told.promptTokens / told.prefillSeconds,
          wrote: told.tokens, decode: told.tokens / told.decodeSeconds, text: told.text };
      },
      close: () => loom.close(),
    };
  },
  async wllama(file) {
    const { Wllama } = await import(`${kPeers}/@wllama/wllama/esm/index.js`);
    const wllama = new Wllama({ default: `${location.origin}${kPeers}/@wllama/wllama/esm/wasm/wllama.wasm` },
      { suppressNativeLog: true });
    await wllama.loadModel([new Blob([await bytesOf(file)])], { n_threads: 1, n_ctx: 512, n_gpu_layers: 0, n_parallel: 1 });
    return {
      what: `llama.cpp, ${wllama.getNumThreads()} thread`,
      async run(prompt, tokens) {
        const { timings, choices } = await wllama.createCompletion({ prompt, max_tokens: tokens, temperature: 0, ignore_eos: true,
          cache_prompt: false });
        return { read: timings.prompt_n, prefill: timings.prompt_per_second, wrote: timings.predicted_n,
          decode: timings.predicted_per_second, text: choices[0].text };
      },
      close: () => wllama.exit(),
    };
  },
  // The source checkpoint of the file, as ONNX (web_peer_llama.py). Its first token comes with the
  // prefill.
  async transformers(file) {
    const folder = `${kPeers}/@huggingface/transformers`;
    const { AutoModelForCausalLM, AutoTokenizer, env } = await import(`${folder}/dist/transformers.min.js`);
    Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, localModelPath: "/models/", useBrowserCache: false });
    const { wasm } = env.backends.onnx;
    Object.assign(wasm, { wasmPaths: `${location.origin}${folder}/node_modules/onnxruntime-web/dist/`, numThreads: 1 });
    const name = file.split("/").at(-1).replace(/-.*/, "");
    const tokenizer = await AutoTokenizer.from_pretrained(name);
    const model = await AutoModelForCausalLM.from_pretrained(name, { dtype: "fp32", device: "wasm" });
    const timed = async (inputs, count) => {
      const begin = performance.now();
      const ids = await model.generate({ ...inputs, max_new_tokens: count, min_new_tokens: count, do_sample: false });
      return { seconds: (performance.now() - begin) / 1000, ids };
    };
    return {
      what: `transformers.js ${env.version}`,
      async run(prompt, tokens) {
        const inputs = await tokenizer(prompt), read = inputs.input_ids.dims[1];
        const first = await timed(inputs, 1), all = await timed(inputs, tokens), wrote = all.ids.dims[1] - read;
        return { read, prefill: read / first.seconds, wrote, decode: (wrote - 1) / (all.seconds - first.seconds),
          text: tokenizer.decode(all.ids.tolist()[0].slice(read), { skip_special_tokens: true }) };
      },
      close: () => model.dispose(),
    };
  },
};

// Engines of networks: one pass over a batch, through the package's own interface.
const nets = {
  async loom(file, shape, { int8 = false, variant } = {}) {
    const { init, tensor } = await import("/package/dist/index.js");
    const loom = await init({ threads: 1, ...(variant ? { variant } : {}) });
    let net = await loom.loadNetwork(await bytesOf(file), { name: "net.onnx" });
    if (int8) net = await loom.loadNetwork(await net.save("entity", { dtype: "int8" }), { name: "net.entity" });
    return {
      what: loom.info.isa,
      run: async (x) => (await net.predict(tensor(x, shape))).data,
      close: () => loom.close(),
    };
  },
  async ort(file, shape, { int8 = false } = {}) {
    const ort = await import(`${kPeers}/onnxruntime-web/dist/ort.wasm.min.mjs`);
    ort.env.wasm.wasmPaths = `${location.origin}${kPeers}/onnxruntime-web/dist/`;
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.proxy = true;  // in a worker, as Loom always is
    ort.env.logLevel = "error";
    const model = await bytesOf(int8 ? file.replace(".onnx", "-int8.onnx") : file);
    const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
    return {
      what: `onnxruntime-web ${ort.env.versions.web ?? ""}`,
      // A proxy transfers its arguments away.
      run: async (x) => (await session.run({ x: new ort.Tensor("float32", x.slice(), shape) })).y.data,
      close: () => session.release(),
    };
  },
};

function input(shape) {
  return Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i * 12.9898) * 0.99);
}

window.peers = {
  async open(kind, engine, ...more) {
    opened[engine] = await (kind === "llm" ? llms : nets)[engine](...more);
    return opened[engine].what;
  },
  run: (engine, prompt, tokens) => opened[engine].run(prompt, tokens),

  // Seconds of the fastest of the passes of about `least` seconds, with the least interference; and
  // some of the output.
  async pass(engine, shape, least) {
    const x = input(shape), engine_ = opened[engine];
    const y = await engine_.run(x), begin = performance.now();
    let seconds = Infinity, now = begin;
    while (now - begin < 1000 * least) {
      const start = now;
      await engine_.run(x);
      now = performance.now();
      seconds = Math.min(seconds, (now - start) / 1000);
    }
    return { seconds, values: Array.from(y.subarray(0, 256)) };
  },
  close: async (engine) => {
    await opened[engine].close();
    delete opened[engine];
  },
};

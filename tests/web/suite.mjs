// The suite of the TypeScript package, for any host. Results are compared with the native library
// (native.py), and errors with the documented ones. The host passes `kit`:
//   init, LoomError, tensor, layers   of the package.
//   source(path)                      a file of the repository as a page or Node.js names it.
//   bytes(path)                       its bytes.
//   native                            the output of native.py.

const encoder = new TextEncoder();

export async function hash(data) {
  const bytes = typeof data === "string" ? encoder.encode(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const digest = await crypto.subtle.digest("SHA-256", bytes.slice());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function equal(got, wanted, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: got ${a}, wanted ${b}`);
}
function holds(truth, what) {
  if (!truth) throw new Error(what);
}

// The code and the line of the error from `body`.
async function refusal(kit, body) {
  try {
    await body();
  } catch (error) {
    holds(error instanceof kit.LoomError, `not a LoomError: ${error.stack ?? error}`);
    holds(!error.message.includes("\n") && error.message.length > 10, `not one line that helps: ${error.message}`);
    return error;
  }
  throw new Error("nothing was refused");
}

async function unpacked(kit, path) {
  const stream = new Blob([await kit.bytes(path)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The digits of examples/data: training and test data.
async function digits(kit, loom, net, part) {
  const x = await loom.loadDataset(kit.source(`examples/data/digits${part}.gz`), { network: net, inputsOnly: true });
  const labels = (await unpacked(kit, `examples/data/digit-labels${part}.gz`)).subarray(8);
  const data = await loom.dataset(await x.x(), kit.tensor(Int32Array.from(labels)));
  x.close();
  return data;
}

const kPrompt = "Once upon a time";
const kDrawn = { maxTokens: 60, temperature: 0.8, topK: 40, seed: 7 };

export const cases = {
  async "a story is the native one, token by token and as a whole"(kit, loom) {
    const llm = await loom.load(kit.source("models/stories.entity"));
    const { stories } = kit.native;
    const likeliest = await llm.generate(kPrompt, { maxTokens: 40 });
    equal(likeliest.text, stories.likeliest, "the likeliest text");
    equal([...likeliest.ids], stories.ids, "its ids");
    equal(likeliest.stop, "length", "why it ended");
    let text = "";
    for await (const token of llm.stream(kPrompt, kDrawn)) text += token.text;
    equal(text, stories.drawn, "the drawn text");
    equal(await hash(await llm.logits(await llm.tokenize(kPrompt))), stories.logits, "bits of the logits");
    llm.close();
  },

  async "digits are learned with the native bits"(kit, loom) {
    const { layers } = kit, wanted = kit.native.digits;
    const net = await loom.network([layers.Dense(784, 32, { activation: "relu" }), layers.Dense(32, 10)],
      { input: 784, seed: 3 });
    const train = await digits(kit, loom, net, ""), test = await digits(kit, loom, net, "-test");
    const trainer = await net.trainer({ optimizer: "adam", rate: 1e-3, batch: 50, seed: 1 });
    const epochs = [];
    for await (const epoch of trainer.epochs(train, { epochs: 3, validation: test })) epochs.push(epoch);
    equal(epochs.map((e) => e.trainLoss), wanted.losses, "losses");
    equal(epochs.map((e) => e.validationLoss), wanted.validation, "validation losses");
    equal(epochs[2].validationAccuracy, wanted.accuracy, "accuracy");
    equal(await trainer.weightsHash(), wanted.hash, "hash of the weights");
    equal(await hash((await net.predict(await test.x())).data), wanted.outputs, "bits of the outputs");
    equal(await hash(await net.save("entity", { dtype: "int8" })), wanted.file, "bytes of the file");
    for (const made of [trainer, train, test, net]) made.close();
  },

  async "a network of two inputs and two outputs trains and runs with the native bits"(kit, loom) {
    const wanted = kit.native.two_inputs, net = await loom.network(JSON.parse(wanted.network), { seed: 4 });
    const ports = (await net.ports()).map(({ name, output, shape }) => [name, output, ...shape]);
    equal(ports, [["input", false, 2], ["b", false, 3], ["y", true, 2], ["twice", true, 2]], "ports");
    const numbers = (width, m) => kit.tensor(Float32Array.from({ length: 12 * width }, (_, at) =>
      (Math.floor(at / width) * m + at % width) % 5), [12, width]);
    const a = numbers(2, 1), b = numbers(3, 2);
    const first = await loom.dataset(a, numbers(2, 3)), samples = await first.withInput("b", b);
    const trainer = await net.trainer({ optimizer: "adam", rate: 0.01, batch: 4, seed: 1 });
    equal((await trainer.fit(samples, { epochs: 3 })).map((e) => e.trainLoss), wanted.losses, "losses");
    const [quarter, rest] = await samples.split(0.25);
    equal((await trainer.stepSamples(quarter)).loss, wanted.step, "loss of a step");
    const session = await net.session({ maxBatch: 12 }), outputs = await session.runAll({ b, input: a });
    for (const name of ["y", "twice"]) equal(await hash(outputs[name].data), wanted.outputs[name], `bits of ${name}`);
    holds((await refusal(kit, () => session.runAll({ input: a }))).message.includes("'b'"), "the missing input is named");
    holds((await refusal(kit, () => session.runAll({ input: a, b, c: b }))).message.includes("'c'"), "the unknown one too");
    holds((await refusal(kit, () => trainer.fit(first))).message.includes("'b'"), "and the one that samples lack");
    for (const made of [session, trainer, quarter, rest, samples, first, net]) made.close();
  },

  async "a network is saved, loaded and asked in every format"(kit, loom) {
    const { layers, tensor } = kit;
    const net = await loom.network([layers.Dense(3, 5, { activation: "tanh" }), layers.Dense(5, 2)], { input: 3, seed: 5 });
    const x = tensor(Float32Array.from([1, 2, 3, -1, 0.5, 0.25]), [2, 3]);
    const wanted = await net.predict(x);
    equal(wanted.shape, [2, 2], "shape of the outputs");
    for (const [format, name] of [["entity", "a.entity"], ["onnx", "a.onnx"], ["npz", "a.npz"], ["safetensors", "a.safetensors"], ["json", "a.json"]]) {
      const back = await loom.loadNetwork(await net.save(format), { name });
      equal([...(await back.predict(x)).data], [...wanted.data], format);
      back.close();
    }
    net.close();
  },

  async "parameters are read, set and seen"(kit, loom) {
    const { layers, tensor } = kit;
    const net = await loom.network([layers.Dense(2, 1)], { input: 2 });
    const names = (await net.parameters()).map((p) => p.name);
    equal(names, ["(0, 0, 0, 0)/weight", "(0, 0, 0, 0)/bias"], "names");
    await net.setParameter(names[0], tensor(Float32Array.from([2, -1]), [1, 2]));
    await net.setParameter(names[1], tensor(Float32Array.from([0.5])));
    equal([...(await net.predict(tensor(Float32Array.from([3, 4]), [1, 2]))).data], [2.5], "2 * 3 - 4 + 0.5");
    equal([...(await net.parameter(names[0])).data], [2, -1], "weights");
    net.close();
  },

  async "an adapter is trained in place of its weight, and merged"(kit, loom) {
    const { layers, tensor } = kit, x = tensor(Float32Array.from([3, 4, -1, 2]), [2, 2]);
    const net = await loom.network([layers.Dense(2, 2)], { input: 2, seed: 3 });
    const adapted = await net.withAdapter({ weights: ["weight"], rank: 1, alpha: 3, name: "x", seed: 5 });
    equal((await adapted.parameters()).map((p) => p.name).slice(2), ["(0, 0, 0, 0)/weight.x.a", "(0, 0, 0, 0)/weight.x.b"], "names");
    equal([...(await adapted.predict(x)).data], [...(await net.predict(x)).data], "nothing changed yet");
    const samples = await loom.dataset(x, tensor(Float32Array.from([1, -1, 0, 2]), [2, 2]));
    const trainer = await adapted.trainer({ loss: "mse", optimizer: "sgd", rate: 0.01, batch: 2 });
    await trainer.fit(samples, { epochs: 60 });
    equal([...(await adapted.parameter("(0, 0, 0, 0)/weight")).data], [...(await net.parameter("(0, 0, 0, 0)/weight")).data], "frozen");
    const merged = await adapted.mergeAdapters(), [got, wanted] = [await merged.predict(x), await adapted.predict(x)];
    holds(got.data.every((v, i) => Math.abs(v - wanted.data[i]) < 1e-5), "the sum predicts the same");
    holds([...got.data].every((v, i) => Math.abs(v - [1, -1, 0, 2][i]) < 0.5), "and it learned");
    const error = await refusal(kit, () => net.withAdapter({ weights: ["q"] }));
    holds(error.message.includes("no weight of a product is named q"), error.message);
    for (const made of [merged, trainer, samples, adapted, net]) made.close();
  },

  async "texts have vectors, and a decoder ranks no documents"(kit, loom) {
    const llm = await loom.load(kit.source("models/stories.entity")), text = "Once upon a time";
    const [one, two] = [await llm.embed([text]), await llm.embed([text, "The end."])];
    equal([one.shape[0], two.shape[0], one.shape[1]], [1, 2, two.shape[1]], "a vector per text");
    equal([...two.data.slice(0, one.data.length)], [...one.data], "the other text changes nothing");
    const length = Math.hypot(...one.data);
    holds(Math.abs(length - 1) < 1e-5, "length 1");
    const rows = await llm.embed([text], { pooling: "none" });
    equal(rows.shape, [(await llm.tokenize(text)).length, one.shape[1]], "a vector per token");
    equal((await refusal(kit, () => llm.embed([text, text], { pooling: "none" }))).code, "invalid_argument", "of one text");
    equal((await refusal(kit, () => llm.rerank(text, ["a", "b"]))).code, "unsupported", "it has no head of one score");
    const far = await llm.embed([text], { pool: "mean" }).then(() => null, (thrown) => thrown);
    holds(far.message.includes("pooling"), "the option is named");
    equal(typeof (await llm.toolFormat()), "string", "a form of calls");
    llm.close();
  },

  async "a stateful session goes on from its states"(kit, loom) {
    const { layers, tensor } = kit, x = tensor(Float32Array.from([1, 2, 3, 4]), [1, 2, 2]);
    const net = await loom.network([layers.Lstm(2, 3)], { input: [2, 2], seed: 1 });
    const session = await net.session({ stateful: true });
    holds((await session.bytes()) > 0, "memory");
    await session.run(x);
    const states = await session.states(), next = await session.run(x);
    holds(states.length > 0, "states");
    await session.setStates(states);
    equal([...(await session.run(x)).data], [...next.data], "the same again");
    await session.reset();
    equal(await session.position(), 0, "a new stream");
    const short = await net.session({ lengths: true, maxBatch: 1 });
    await short.setLengths([1]);
    const padded = await short.run(x);
    await short.setLengths([1]);
    const other = await short.run(tensor(Float32Array.from([1, 2, 9, 9]), [1, 2, 2]));
    equal([...padded.data.slice(0, 3)], [...other.data.slice(0, 3)], "padding does not count");
    for (const made of [session, short, net]) made.close();
  },

  async "a session tells what every cell gives"(kit, loom) {
    const { layers, tensor } = kit;
    const net = await loom.network([layers.Dense(2, 3), layers.Dense(3, 1)], { input: 2 });
    const session = await net.session();
    const cells = await session.cells(tensor(Float32Array.from([1, 1]), [1, 2]));
    equal(cells.map((cell) => [cell.at, cell.layer, cell.values.shape]),
      [[[0, 0, 0, 0], "Dense", [1, 3]], [[0, 0, 1, 0], "Dense", [1, 1]]], "cells");
    session.close();
    net.close();
  },

  async "a population grows the native genes, and its network gives the genome's bits"(kit, loom) {
    const population = await loom.population({ inputs: 2, population: 60, seed: 7 });
    const x = kit.tensor(Float32Array.from([0, 0, 0, 1, 1, 0, 1, 1]), [4, 2]), wanted = [0, 1, 1, 0];
    equal((await refusal(kit, () => population.best())).code, "invalid_argument", "the best of none");
    for (let generation = 0; generation < 40; ++generation) {
      const { data, shape } = await population.run(x);
      equal(shape, [60, 4, 1], "shape of the answers");
      const fitness = Array.from({ length: 60 }, (_, genome) =>
        1 / (1 + wanted.reduce((sum, want, i) => sum + (data[genome * 4 + i] - want) ** 2 / 4, 0)));
      await population.tell(fitness);
      equal((await population.report(generation)).best, Math.max(...fitness), "the best of a generation");
    }
    equal((await population.info()).generation, 40, "generations");
    const best = await population.best(), net = await loom.genomeNetwork(best);
    equal(await best.json(), JSON.parse(kit.native.evolution.best), "genes of the best");
    equal([...(await net.predict(x)).data], [...(await best.run(x)).data], "its network");
    equal((await refusal(kit, () => population.tell([1]))).code, "invalid_argument", "too few fitnesses");
    for (const made of [net, best, population]) made.close();
  },

  async "networks are compared and crossed"(kit, loom) {
    const { layers } = kit;
    const made = async (seed) => loom.network([layers.Dense(3, 4), layers.Dense(4, 2)], { input: 3, seed });
    const a = await made(1), b = await made(2);
    const same = await a.compareDna(a, "strict");
    equal(Object.values(same.layer_overlaps).map((v) => v.toFixed(12)), ["1.000000000000", "1.000000000000"], "a twin");
    holds((await a.compareDna(b)).overall_overlap < 0.99, "other weights are other signatures");
    const length = (await a.dna("0,0,0,0")).data.reduce((sum, v) => sum + v * v, 0);
    holds(Math.abs(length - 1) < 1e-12, `a signature has length 1: ${length}`);
    const child = await a.splice(b, { mode: "point", split: 0 });
    equal((await child.compareDna(b)).overall_overlap, (await b.compareDna(b)).overall_overlap, "all of b");
    equal((await refusal(kit, () => a.splice(b, { fitnessA: 1 }))).code, "invalid_argument", "one fitness alone");
    equal((await refusal(kit, () => a.dna("7,7,7,7"))).code, "not_found", "no such cell");
    for (const one of [a, b, child]) one.close();
  },

  async "a mesh shows a sample after one tick per layer"(kit, loom) {
    const { layers, tensor } = kit;
    const net = await loom.network([layers.Dense(3, 4, { activation: "tanh" }), layers.Dense(4, 2)], { input: 3, seed: 1 });
    const x = tensor(Float32Array.from([1, -2, 0.5]), [1, 3]);
    const mesh = await net.mesh();
    await mesh.setInput(x);
    await mesh.tick();
    equal([...(await mesh.output()).data], [0, 0], "after one tick");
    await mesh.tick();
    equal([...(await mesh.output()).data], [...(await net.predict(x)).data], "after two");
    const { ticks, latency } = await mesh.info();
    equal([ticks, latency], [2, 2], "ticks and latency");
    mesh.close();
    net.close();
  },

  async "a file tells what is in it without being run"(kit, loom) {
    const file = await loom.open(kit.source("models/stories.entity"));
    const told = await file.json();
    equal([told.format, told.decoder.architecture, told.decoder.width], ["entity", "LlamaForCausalLM", 192], "its model");
    holds(told.layers.some((layer) => layer.depth === 1 && layer.type === "MultiHeadAttention"), "layers below cells");
    const text = told.tensors.findIndex((tensor) => tensor.dtype === "text");
    const matrix = told.tensors.findIndex((tensor) => tensor.shape.length === 2);
    equal((await file.values(matrix)).shape, told.tensors[matrix].shape, "shape of its values");
    equal((await file.hash(matrix)).length, 32, "digits of its hash");
    equal((await refusal(kit, () => file.values(text))).code, "unsupported", "values of a text");
    equal((await refusal(kit, () => file.values(100000))).code, "out_of_range", "no such tensor");
    equal((await refusal(kit, () => loom.open(encoder.encode("no model at all")))).code, "bad_file", "a text");
    file.close();
    const { layers } = kit, net = await loom.network([layers.Dense(2, 3)], { input: 2, seed: 5 });
    const saved = await loom.open(await net.save(), { name: "small.entity" });
    const at = (await saved.json()).tensors.findIndex((tensor) => tensor.shape.length === 2);
    equal([...(await saved.values(at)).data], [...(await net.parameter("(0, 0, 0, 0)/weight")).data], "weights");
    saved.close();
    net.close();
  },

  async "models of random weights have the native logits in every number type"(kit, loom) {
    for (const [dtype, wanted] of Object.entries(kit.native.bits.logits)) {
      const llm = await loom.randomModel("shakespeare", { dtype, seed: 1 });
      const prompt = Int32Array.from({ length: 113 }, (_, i) => (i * 7919 + 13) % llm.info.vocab);
      equal(await hash(await llm.logits(prompt)), wanted, dtype);
      llm.close();
    }
  },

  async "text goes to tokens and back"(kit, loom) {
    const tokenizer = await loom.tokenizer(kit.source("models/stories.entity"));
    const text = "The little fox — naïve, 3 €, 狐 🦊!";
    equal(await tokenizer.decode(await tokenizer.encode(text)), text, "a text with all kinds of characters");
    holds((await tokenizer.vocabSize()) > 100, "a vocabulary");
    const end = await tokenizer.tokenId("<|im_end|>");
    holds((await tokenizer.specialTokens()).includes(end), "special tokens");
    equal((await refusal(kit, () => tokenizer.tokenId("no such token"))).code, "not_found", "no such token");
    tokenizer.close();
  },

  async "reading tells how far it is"(kit, loom) {
    const seen = [];
    const llm = await loom.load(kit.source("models/stories.entity"), { onProgress: (done, total) => seen.push([done, total]) });
    const [done, total] = seen.at(-1);
    holds(done === total && total > 100000, `ends at the size: ${done} of ${total}`);
    llm.close();
  },

  async "a signal ends a text where it is"(kit, loom) {
    const llm = await loom.load(kit.source("models/stories.entity"));
    const ending = new AbortController();
    let tokens = 0;
    const result = await llm.generate(kPrompt, {
      maxTokens: 480, ignoreEos: true, context: 512, signal: ending.signal,
      onToken: () => { if (++tokens === 5) ending.abort(); },
    });
    equal(result.stop, "cancelled", "why it ended");
    holds(result.tokens >= 5 && result.tokens < 470, `ended soon: ${result.tokens}`);
    // Leaving the loop also ends the work, and the engine continues.
    for await (const token of llm.stream(kPrompt, { maxTokens: 480, ignoreEos: true, context: 512 })) if (token.id >= 0) break;
    equal((await llm.generate(kPrompt, { maxTokens: 40 })).text, kit.native.stories.likeliest, "the next text");
    llm.close();
  },

  async "a signal ends training"(kit, loom) {
    const { layers, tensor } = kit;
    const net = await loom.network([layers.Dense(4, 64), layers.Dense(64, 1)], { input: 4 });
    const data = await loom.dataset(tensor(new Float32Array(4000), [1000, 4]), tensor(new Float32Array(1000), [1000, 1]));
    const trainer = await net.trainer({ batch: 4 });
    const ending = new AbortController();
    const error = await refusal(kit, () => trainer.fit(data, { epochs: 1000, signal: ending.signal, onEpoch: () => ending.abort() }));
    equal(error.code, "cancelled", "its code");
    for (const made of [trainer, data, net]) made.close();
  },

  async "damaged files are refused by name, place and reason"(kit, loom) {
    const whole = await kit.bytes("models/stories.entity");
    const cut = await refusal(kit, () => loom.load(whole.slice(0, whole.length / 2), { name: "cut.entity" }));
    equal(cut.code, "bad_file", "a file that is cut short");
    holds(cut.message.includes("cut.entity"), cut.message);
    const other = whole.slice();
    other.fill(0xff, 64, 4096);
    equal((await refusal(kit, () => loom.load(other))).code, "bad_file", "a file with other bytes");
    equal((await refusal(kit, () => loom.load(encoder.encode("no model at all")))).code, "bad_file", "a text");
    equal((await refusal(kit, () => loom.load(kit.source("models/nothing.entity")))).code, "not_found", "no file");
    const llm = await loom.load(whole);
    equal((await llm.generate(kPrompt, { maxTokens: 40 })).text, kit.native.stories.likeliest, "the whole file, after that");
    llm.close();
  },

  async "wrong options and shapes are refused with the names there are"(kit, loom) {
    const { layers, tensor } = kit;
    const net = await loom.network([layers.Dense(2, 1)], { input: 2 });
    holds((await refusal(kit, () => net.trainer({ optimizer: "adma" }))).message.includes("adamw"), "names of optimizers");
    equal((await refusal(kit, () => net.predict(tensor(new Float32Array(3), [2, 2])))).code, "invalid_argument", "a shape");
    equal((await refusal(kit, () => net.predict(tensor(new Float32Array(9), [3, 3])))).code, "invalid_argument", "a width");
    equal((await refusal(kit, () => loom.network([layers.Dense(2, 1)]))).code, "invalid_argument", "no input");
    net.close();
    equal((await refusal(kit, () => net.predict(tensor(new Float32Array(2), [1, 2])))).code, "invalid_argument", "closed");
  },

  async "an option that does not exist is a TypeError with the nearest name"(kit, loom) {
    const { layers, tensor } = kit;
    const net = await loom.network([layers.Dense(2, 1)], { input: 2 });
    const trainer = await net.trainer(), data = await loom.dataset(tensor(new Float32Array(2), [1, 2]), tensor(new Float32Array(1), [1, 1]));
    const llm = await loom.load(await kit.bytes("models/stories.entity"));
    const calls = {
      threads: () => kit.init({ thread: 1 }),
      softCap: () => layers.Dense(2, 1, { soft_cap: 1 }),
      activation: () => layers.Dense(2, 1, { activaton: "relu" }),
      input: () => loom.network([layers.Dense(2, 1)], { inptu: 2 }),
      optimizer: () => net.trainer({ optimiser: "adam" }),
      flipVertical: () => net.trainer({ augment: { flipvertical: 1 } }),
      validation: () => trainer.fit(data, { validaton: data }),
      epochs: () => trainer.epochs(data, { epoch: 1 }).next(),
      temperature: () => llm.generate("a", { temprature: 1 }),
      maxTokens: () => llm.stream("a", { max_tokens: 1 }).next(),
      onToken: () => llm.generate("a", { ontoken: () => undefined }),
      topP: () => llm.chat([{ role: "user", content: "a" }], { topp: 1 }).next(),
      specialTokens: () => llm.tokenize("a", { specialToken: false }),
      skipSpecial: () => llm.detokenize([1], { skipSpecials: false }),
      onProgress: () => loom.load(new Uint8Array(1), { onprogress: () => undefined }),
      cache: () => loom.open(new Uint8Array(1), { cach: true }),
      dtype: () => net.save("entity", { dtyp: "int8" }),
      seed: () => loom.randomModel("tiny", { sed: 1 }),
      population: () => loom.population({ populaton: 10 }),
    };
    for (const [name, body] of Object.entries(calls)) {
      const error = await (async () => body())().then(() => null, (thrown) => thrown);
      holds(error instanceof TypeError && error.message.endsWith(`; did you mean "${name}"?`), `${name}: ${error}`);
    }
    const far = await net.session({ zzz: 1 }).then(() => null, (thrown) => thrown);
    holds(/^unknown option "zzz"; choose from maxBatch, /.test(far?.message), `another word: ${far}`);
    equal((await llm.generate("a", { maxTokens: 2, temperature: undefined })).ids.length, 2, "an undefined option is none");
    for (const one of [net, trainer, data, llm]) one.close();
  },

  async "memory that runs out is an error, and a new engine goes on"(kit) {
    const loom = await kit.init({ threads: 1 });
    const { layers } = kit;
    const error = await refusal(kit, () => loom.network([layers.Dense(40000, 40000)], { input: 40000 }));
    equal(error.code, "out_of_memory", `its code (${error.message})`);
    loom.close();
    equal((await refusal(kit, () => loom.memory())).code, "lost", "a closed engine");
    const next = await kit.init({ threads: 1 });
    const net = await next.network([layers.Dense(2, 1)], { input: 2 });
    equal((await net.predict(kit.tensor(new Float32Array(2), [1, 2]))).shape, [1, 1], "the next engine");
    next.close();
  },

  async "200 models are loaded and closed in the same memory"(kit, loom) {
    const bytes = await kit.bytes("models/stories.entity");
    let after = 0;
    for (let i = 0; i < 200; ++i) {
      const llm = await loom.load(bytes);
      if (i % 50 === 0) await llm.generate(kPrompt, { maxTokens: 2 });
      llm.close();
      if (i === 20) after = (await loom.memory()).heap;
    }
    const { heap, total } = await loom.memory();
    equal([heap, total], [after, 0], "heap and bytes held");
  },
};

// Runs the named cases against an engine of `options`. Calls tell(name, error or null) for each.
export async function runSuite(kit, options, names, tell) {
  const loom = await kit.init(options);
  for (const name of names) {
    try {
      await cases[name](kit, loom);
      tell(name, null);
    } catch (error) {
      tell(name, error);
    }
  }
  const info = loom.info;
  loom.close();
  return info;
}

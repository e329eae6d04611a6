// Compares the package on a GPU with the package on the CPU, for any host. `kit` is that of
// suite.mjs. `gpu` and `cpu` are engines of it, the second with `activations: "f32"`. Adapters that
// compute on the CPU take long to compile a kernel, so networks are small and few.
import { shareOf, tenth } from "./sample.mjs";

// The bounds of docs/webgpu.md: of an op, and of a whole network or model.
const kOp = 1e-6, kWhole = 1e-4, kLoss = 1e-3;

function holds(truth, what) {
  if (!truth) throw new Error(what);
}
// The root mean square of the differences, relative to that of the values, or to 0.1 if these are
// small.
function distance(got, wanted) {
  if (got.length !== wanted.length) return Infinity;
  let error = 0, norm = 0;
  for (let i = 0; i < got.length; ++i) {
    error += (got[i] - wanted[i]) ** 2;
    norm += wanted[i] ** 2;
  }
  return Math.sqrt(error / Math.max(norm, 0.01 * got.length));
}
function near(got, wanted, bound, what) {
  const error = distance(got, wanted);
  holds(error <= bound, `${what}: ${error}, at most ${bound}`);
}
const wave = (count, step = 0.7) => Float32Array.from({ length: count }, (_, i) => Math.sin(i * step) * 0.99);

async function both({ gpu, cpu }, body) {
  return [await body(gpu), await body(cpu)];
}

function mlp({ layers }, loom) {
  return loom.network([layers.Dense(6, 16, { activation: "tanh" }), layers.Dense(16, 3)], { input: 6, seed: 7 });
}

async function learned(kit, loom) {
  const net = await mlp(kit, loom), x = wave(6 * 64, 0.37);
  const labels = Int32Array.from({ length: 64 }, (_, i) => (x[6 * i] > 0 ? 1 : 0) + (x[6 * i + 1] > 0 ? 1 : 0));
  const data = await loom.dataset(kit.tensor(x, [64, 6]), kit.tensor(labels));
  const trainer = await net.trainer({ optimizer: "adam", rate: 1e-2, batch: 32 }), losses = [];
  for await (const epoch of trainer.epochs(data, { epochs: 3 })) losses.push(epoch.trainLoss);
  const step = await trainer.step(kit.tensor(x.slice(0, 12), [2, 6]), kit.tensor(labels.slice(0, 2)));
  losses.push(step.loss, (await trainer.evaluate(data)).loss);
  const saved = await net.save("entity");
  const again = await loom.loadNetwork(saved, { name: "learned.entity" });
  const probe = kit.tensor(wave(12), [2, 6]);
  const [before, after] = [await net.predict(probe), await again.predict(probe)];
  const { data: weights } = await net.parameter((await net.parameters())[0].name);
  for (const object of [again, trainer, data, net]) object.close();
  return { losses, before: before.data, after: after.data, weights };
}

export const gpuCases = {
  async "the engine says what computes"(_, { gpu, cpu }) {
    holds(gpu.info.variant === "gpu" && gpu.info.device !== "cpu" && gpu.info.device !== "", JSON.stringify(gpu.info));
    holds(gpu.info.notes.length === 0, gpu.info.notes.join());
    holds(cpu.info.device === "cpu" && cpu.info.activations === "f32", JSON.stringify(cpu.info));
  },

  async "what goes up comes back: a network without arithmetic has the numbers to the bit"({ layers, tensor }, { gpu }) {
    const net = await gpu.network([layers.Dense(8, 8, { bias: false })], { input: 8, seed: 1 });
    const [{ name, shape }] = await net.parameters(), count = shape.reduce((all, extent) => all * extent, 1);
    const one = Float32Array.from({ length: count }, (_, i) => (i % 9 === 0 ? 1 : 0));
    await net.setParameter(name, tensor(one, shape));
    const x = wave(24), { data } = await net.predict(tensor(x, [3, 8]));
    holds(data.every((value, i) => value === x[i]), `${[...data]}`);
    net.close();
  },

  async "a network gives what it gives on the CPU, twice the same bits"(kit, engines) {
    const x = kit.tensor(wave(12), [2, 6]);
    const [[first, second], [wanted]] = await both(engines, async (loom) => {
      const net = await mlp(kit, loom), made = [(await net.predict(x)).data, (await net.predict(x)).data];
      net.close();
      return made;
    });
    near(first, wanted, kOp, "outputs");
    holds(second.every((value, i) => value === first[i]), "the second time it has other bits");
  },

  async "a session runs, tells its cells, and starts again"(kit, engines) {
    const [got, wanted] = await both(engines, async (loom) => {
      const net = await mlp(kit, loom), session = await net.session(), x = kit.tensor(wave(6), [1, 6]);
      const run = await session.run(x), cells = await session.cells(x);
      await session.reset();
      const again = await session.run(x);
      session.close();
      net.close();
      return [run.data, again.data, ...cells.map(({ values }) => values.data)];
    });
    holds(got.length === wanted.length, `${got.length} and ${wanted.length} results`);
    got.forEach((values, i) => near(values, wanted[i], kOp, `result ${i}`));
  },

  async "training goes the way that it goes on the CPU"(kit, engines) {
    const [got, wanted] = await both(engines, (loom) => learned(kit, loom));
    near(got.losses, wanted.losses, kLoss, "losses");
    near(got.weights, wanted.weights, kLoss, "weights");
    near(got.before, wanted.before, kLoss, "outputs");
    near(got.after, got.before, kOp, "outputs of the file that was written");
  },

  async "a model has the logits of the CPU, and writes its text"(kit, engines) {
    const [got, wanted] = await both(engines, async (loom) => {
      const llm = await loom.load(kit.source("models/stories.entity"));
      const logits = await llm.logits(await llm.tokenize("Once upon a time"));
      const tokens = [];
      for await (const token of llm.stream("Once upon a time", { maxTokens: 8 })) tokens.push(token.text);
      llm.close();
      return { logits, text: tokens.join(""), count: tokens.length };
    });
    near(got.logits, wanted.logits, kWhole, "logits");
    holds(got.text === wanted.text && got.count === wanted.count, `the text is '${got.text}', on the CPU '${wanted.text}'`);
  },

  async "a signal ends a text where it is"(kit, { gpu }) {
    const llm = await gpu.load(kit.source("models/stories.entity")), ending = new AbortController();
    let told = 0;
    const { stop, tokens } = await llm.generate("Once upon a time", {
      maxTokens: 200, ignoreEos: true, signal: ending.signal, onToken: () => (++told === 2 ? ending.abort() : undefined),
    });
    holds(stop === "cancelled" && tokens < 200, `${stop} after ${tokens}`);
    llm.close();
  },

  async "a mesh ticks, and networks are compared and crossed"(kit, engines) {
    const [got, wanted] = await both(engines, async (loom) => {
      const net = await mlp(kit, loom), other = await mlp(kit, loom), mesh = await net.mesh();
      await mesh.setInput(kit.tensor(wave(6), [1, 6]));
      await mesh.tick(3);
      const { data } = await mesh.output();
      const { overall_overlap: overlap } = await net.compareDna(other), child = await net.splice(other);
      const made = (await child.predict(kit.tensor(wave(6), [1, 6]))).data;
      for (const object of [child, mesh, other, net]) object.close();
      return { data, overlap, made };
    });
    near(got.data, wanted.data, kOp, "the mesh");
    near([got.overlap], [wanted.overlap], kOp, "what they have in common");
    near(got.made, wanted.made, kOp, "the child");
  },

  async "wrong arguments are refused as on the CPU"({ LoomError, tensor, ...kit }, { gpu }) {
    const net = await mlp(kit, gpu);
    const error = await net.predict(tensor(new Float32Array(9), [3, 3])).catch((what) => what);
    holds(error instanceof LoomError && error.code === "invalid_argument", String(error));
    const none = await gpu.load(kit.source("models/none.entity")).catch((what) => what);
    holds(none instanceof LoomError, String(none));
    net.close();
  },
};

// Cases, here and in gpu_browser_test.mjs, that compile the kernels of a model or of a training step once more.
const kSlow = ["training goes the way that it goes on the CPU", "a signal ends a text where it is"]
  .flatMap((name) => [`node: ${name}`, `page: ${name}`])
  .concat(["page: a token takes one submission at most", "page: a device that is lost is an error, and the page goes on"]);

// The cases of a sample that a host, "node" or "page", runs (sample.mjs). The hosts share the
// cases, and a tenth of the slow ones runs.
export function gpuShare(host, names, sample) {
  const slow = tenth(kSlow, "gpu", sample), isSlow = (name) => kSlow.includes(`${host}: ${name}`);
  const others = shareOf(names.filter((name) => !isSlow(name)), ["node", "page"], host, "gpu", sample);
  return names.filter((name) => others.includes(name) || slow.includes(`${host}: ${name}`));
}

// The 36 names of the original's diagnostic through the module `compat`: each exists, as the
// diagnostic checks, and has the right values. For any host: `compat` is the result of init() of
// the module, `kit` that of suite.mjs.

// A row of Dense layers as the original describes it.
function dense(widths, activation = "LINEAR", dtype = "FLOAT32") {
  return { id: "net", depth: 1, rows: 1, cols: 1, layers_per_cell: widths.length - 1,
    layers: widths.slice(1).map((width, l) => ({ z: 0, y: 0, x: 0, l, type: "DENSE", activation, dtype,
      input_height: widths[l], output_height: width })) };
}
const swiglu = { id: "gated", depth: 1, rows: 1, cols: 1, layers_per_cell: 1, layers: [{ z: 0, y: 0, x: 0, l: 0,
  type: "SWIGLU", activation: "LINEAR", dtype: "FLOAT32", input_height: 8, output_height: 16 }] };

function equal(got, wanted, what = "") {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: got ${a}, wanted ${b}`);
}
function holds(truth, what) {
  if (!truth) throw new Error(`not so: ${what}`);
}
function near(got, wanted, what) {
  holds(Math.abs(got - wanted) < 1e-6, `${what}: ${got} is ${wanted}`);
}
function refused(code, body) {
  try {
    body();
  } catch (error) {
    equal(error.code, code, error.message);
    return error.message;
  }
  throw new Error(`nothing was refused; wanted ${code}`);
}

// y = 2 a - 3 b, by hand.
function formula(compat) {
  const net = compat.createLoomNetwork(dense([2, 1]));
  const [name] = [...net.weights().keys()];
  net.setWeights(name, { data: Float32Array.from([2, -3]), shape: [1, 2] });
  return net;
}
const numbers = (values) => Array.from(values);
const parse = (text) => JSON.parse(text);

const exports_ = {
  createLoomNetwork(compat) {
    const net = compat.createLoomNetwork(JSON.stringify(dense([4, 8, 2])));
    equal(net.getLayerCount(), 2, "layers");
    net.free();
    refused("bad_file", () => compat.createLoomNetwork({ ...dense([4, 8]), layers: 7 }));
  },
  async loadLoomNetwork(compat, { bytes, layers, loom }) {
    const made = await loom.network([layers.Dense(3, 2)], { input: 3, seed: 9 });
    const net = compat.loadLoomNetwork(await made.save(), "made.entity");
    const x = Float32Array.from([1, -2, 0.5]);
    equal(numbers(net.sequentialForward(x)), numbers((await made.predict({ data: x, shape: [1, 3] })).data), "the file's network");
    net.free();
    made.close();
    const story = await bytes("models/stories.entity");
    refused("unsupported", () => compat.loadLoomNetwork(story));
  },
  compareLoomDNA(compat) {
    const cell = (l, weights) => ({ z: 0, y: 0, x: 0, l, type: "Dense", dtype: "float32", weights });
    const one = (...cells) => JSON.stringify(cells);
    const compare = (a, b) => parse(compat.compareLoomDNA(a, b));
    near(compare(one(cell(0, [3, 4])), one(cell(0, [4, 3]))).overall_overlap, 0.96, "of [3, 4] and [4, 3]");
    equal(compare(one(cell(0, [3, 4])), one(cell(0, [-3, -4]))).overall_overlap, -1, "of opposites");
    equal(compare(one(cell(0, [0, 0])), one(cell(0, [0, 0]))).overall_overlap, 1, "of zeros");
    equal(compare(one(cell(0, [0, 0])), one(cell(0, [1, 0]))).overall_overlap, 0, "of zeros and others");
    const [a, b] = [[1, 2, 3, 4], [4, -3, 2, -1]];
    equal(compare(one(cell(0, a), cell(1, b)), one(cell(0, b), cell(1, a))).logic_shifts.map((s) => [s.source_pos, s.target_pos]),
      [["0,0,0,0", "0,0,0,1"], ["0,0,0,1", "0,0,0,0"]], "cells that changed places");
    refused("invalid_argument", () => compat.compareLoomDNA("{}", "[]"));
  },
  getDefaultTweenConfig(compat) {
    equal(compat.getDefaultTweenConfig(), { BatchSize: 1, UseChainRule: true, GradientScale: 0.1, DepthScaleFactor: 1.1,
      Momentum: 0.9, LearningRate: 0.01, ActivationClamp: 10 });
  },
  defaultSpliceConfig(compat) {
    equal(compat.defaultSpliceConfig(), { CrossoverMode: "blend", BlendAlpha: 0.5, SplitRatio: 0.5, FitnessA: 0, FitnessB: 0 });
  },
  defaultNEATConfig(compat) {
    const { WeightPerturbRate, ActivationMutRate, DefaultFilters, DefaultNumHeads } = compat.defaultNEATConfig(32);
    equal([WeightPerturbRate, ActivationMutRate, DefaultFilters, DefaultNumHeads], [0.8, 0.1, 8, 4]);
    equal(compat.defaultNEATConfig(3).DefaultNumHeads, 1, "heads of a narrow one");
  },
  createLoomNEATPopulation(compat) {
    const population = compat.createLoomNEATPopulation(dense([2, 2]), 6, { Seed: 3 });
    const again = compat.createLoomNEATPopulation(dense([2, 2]), 6, { Seed: 3 });
    equal(population.getNetwork(5).extractDNA(), again.getNetwork(5).extractDNA(), "one seed, one population");
    holds(population.getNetwork(0).extractDNA() !== population.getNetwork(5).extractDNA(), "its members differ");
    population.free();
    again.free();
    refused("invalid_argument", () => compat.createLoomNEATPopulation(dense([2, 2]), 0));
  },
  async setupWebGPU(compat) {
    const { available, reason } = await compat.setupWebGPU();
    equal(available, false);
    holds(reason.includes("CPU"), reason);
  },
};

const members = {
  sequentialForward(net) {
    equal(numbers(net.sequentialForward([1, 1])), [-1], "2 - 3");
    refused("invalid_argument", () => net.sequentialForward([1, 2, 3]));
  },
  extractDNA(net) {
    const [{ type, dtype, weights }] = parse(net.extractDNA());
    equal([type, dtype], ["Dense", "float32"]);
    near(weights[0], 2 / Math.sqrt(13), "the first of [2, -3] at length 1");
  },
  extractBlueprint(net) {
    const { id, total_layers, total_parameters, layers } = parse(net.extractBlueprint("mine"));
    equal([id, total_layers, total_parameters], ["mine", 1, 2]);
    equal([layers[0].type, layers[0].parameters, layers[0].input_shape, layers[0].output_shape], ["Dense", 2, [2], [1]]);
  },
  getLayerCount(net) {
    equal(net.getLayerCount(), 1);
  },
  getLayerSpec(net) {
    const { type, l, in: width, out, parameters } = net.getLayerSpec(0);
    equal([type, l, width, out, parameters], ["Dense", 0, 2, 1, 2]);
    refused("out_of_range", () => net.getLayerSpec(1));
  },
  morphLayer(net) {
    equal(net.morphLayer(0, "INT8"), true);
    equal(net.getLayerSpec(0).dtype, "int8");
    holds(Math.abs(net.sequentialForward([1, 1])[0] + 1) < 0.05, "what 8 bits keep of -1");
    net.morphLayer(0, "float32");
    holds(refused("invalid_argument", () => net.morphLayer(0, "int9")).includes("int8"), "types there are");
  },
  spliceDNA(net, compat) {
    const other = formula(compat), [name] = [...other.weights().keys()];
    other.setWeights(name, { data: Float32Array.from([4, -6]), shape: [1, 2] });
    const child = net.spliceDNA(other, compat.defaultSpliceConfig());
    equal(numbers(child.sequentialForward([1, 0])), [3], "half of 2 and half of 4");
    const fitter = net.spliceDNA(other, JSON.stringify({ FitnessA: 1, FitnessB: 3 }));
    near(fitter.sequentialForward([1, 0])[0], 3.5, "three quarters of b, for the two are alike");
    const point = net.spliceDNA(other, { CrossoverMode: "point", SplitRatio: 0.5 });
    equal(numbers(point.sequentialForward([1, 1])), [-4], "2 of a, -6 of b");
    for (const one of [other, child, fitter, point]) one.free();
  },
  neatMutate(net) {
    const child = net.neatMutate({ Seed: 5, WeightPerturbRate: 1, WeightPerturbScale: 0.1, ActivationMutRate: 0 });
    const again = net.neatMutate({ Seed: 5, WeightPerturbRate: 1, WeightPerturbScale: 0.1, ActivationMutRate: 0 });
    const [moved] = [...child.weights().values()];
    holds(Math.abs(moved.data[0] - 2) <= 0.1 && moved.data[0] !== 2, `2 moved by 0.1 at most: ${moved.data[0]}`);
    equal(child.extractDNA(), again.extractDNA(), "one seed, one child");
    const other = net.neatMutate({ WeightPerturbRate: 0, ActivationMutRate: 0, LayerToggleRate: 0 });
    equal(other.extractDNA(), net.extractDNA(), "no chance, no change");
    for (const one of [child, again, other]) one.free();
  },
  createStepState(_, compat) {
    const net = compat.createLoomNetwork(dense([2, 3, 1], "TANH")), state = net.createStepState();
    state.setInput([0.5, -1]);
    state.step();
    equal(numbers(state.getOutput()), [0], "after one tick");
    state.step();
    equal(numbers(state.getOutput()), numbers(net.sequentialForward([0.5, -1])), "after two");
    equal(state.stepCount(), 2);
    state.free();
    net.free();
  },
  createTweenState(net, compat) {
    const state = net.createTweenState(compat.getDefaultTweenConfig());
    refused("invalid_argument", () => state.applyGaps());
    let last = Infinity;
    for (let i = 0; i < 80; ++i) {
      state.forward([1, 1]);
      if (i % 2 === 0) state.backward([3]);
      else state.backwardChainRule([3]);
      const loss = state.applyGaps(0.05);
      holds(loss < last || loss < 1e-9, `the loss falls: ${last} to ${loss}`);
      last = loss;
    }
    near(net.sequentialForward([1, 1])[0], 3, "the target is reached");
    state.free();
  },
  async initGPU(net) {
    equal(await net.initGPU(), false);
  },
  syncToGPU(net) {
    equal(net.syncToGPU(), false);
  },
  syncToCPU(net) {
    equal(net.syncToCPU(), true);
    equal(numbers(net.sequentialForward([1, 1])), [-1], "nothing was moved");
  },
  train(net) {
    // y = a + b: the weights go to 1 and 1.
    const batches = [[1, 0, 1], [0, 1, 1], [1, 1, 2], [-1, 1, 0]].map(([a, b, y]) => ({ input: [a, b], target: [y] }));
    const { loss_history: losses, final_loss: last, epochs } = net.train(JSON.stringify(batches), 60, 0.1);
    equal([losses.length, epochs], [60, 60]);
    holds(last < 1e-4 && last < losses[0] / 1000, `the loss falls from ${losses[0]} to ${last}`);
    holds(Math.abs(net.sequentialForward([2, 3])[0] - 5) < 0.05, "and the sum of others is right");
    refused("invalid_argument", () => net.train([], 1));
  },
  free(_, compat) {
    const net = formula(compat);
    net.free();
    net.free();
    refused("invalid_argument", () => net.sequentialForward([1, 1]));
  },
  _id(net, compat) {
    const other = formula(compat);
    holds(Number.isInteger(net._id) && net._id !== other._id, "two networks have two numbers");
    other.free();
  },
};

const neat = {
  _id(population) {
    holds(Number.isInteger(population._id) && population._id > 0, "a number");
  },
  size(population) {
    equal(population.size, 8);
  },
  getNetwork(population) {
    equal(population.getNetwork(7).getLayerCount(), 1);
    refused("out_of_range", () => population.getNetwork(8));
  },
  evolveWithFitnesses(population) {
    // The fitness is the output for [1, 0]: the best is carried over, so later ones do not get
    // worse.
    const score = (net) => -Math.abs(net.sequentialForward([1, 0])[0] - 1);
    let best = -Infinity;
    for (let generation = 0; generation < 12; ++generation) {
      const scores = Array.from({ length: population.size }, (_, i) => score(population.getNetwork(i)));
      population.evolveWithFitnesses(scores);
      equal(population.bestFitness(), Math.max(...scores), "the best fitness");
      equal(score(population.best()), Math.max(...scores), "and the one that has it");
      holds(population.bestFitness() >= best, "it never falls");
      best = population.bestFitness();
    }
    population.evolveWithFitnesses([NaN, 1, 2, 3, 4, 5, 6, 7]);
    equal(population.bestFitness(), 7, "NaN is below all others");
    refused("invalid_argument", () => population.evolveWithFitnesses([1]));
  },
  best(population) {
    equal(population.best()._id, population.getNetwork(0)._id, "the first");
  },
  bestFitness(population) {
    equal(population.bestFitness(), 0, "before the first generation");
    population.evolveWithFitnesses([1, 2, 3, 4, 5, 6, 7, 8]);
    equal(population.bestFitness(), 8);
  },
  summary(population) {
    population.evolveWithFitnesses([1, 2, 3, 4, 5, 6, 7, 8]);
    equal(population.summary(), "generation 1: best 8.0000, mean 4.5000, worst 1.0000, 8 networks");
  },
  free(population) {
    population.free();
    equal(population.size, 0);
    refused("out_of_range", () => population.best());
  },
};

const smoke = {
  "sequentialForward returns numbers"(compat) {
    const net = compat.createLoomNetwork(dense([4, 8, 2], "RELU"));
    const y = net.sequentialForward([1, 2, 3, 4]);
    holds(y.length === 2 && numbers(y).every(Number.isFinite), "two finite numbers");
    net.free();
  },
  "extractDNA parses"(compat) {
    const net = compat.createLoomNetwork(dense([4, 8, 2]));
    equal(parse(net.extractDNA()).map(({ weights }) => weights.length), [32, 16], "weights of each layer");
    net.free();
  },
  "compareLoomDNA of a network with itself"(compat) {
    const net = compat.createLoomNetwork(dense([4, 8, 2])), dna = net.extractDNA();
    const { overall_overlap: overlap, logic_shifts: shifts } = parse(compat.compareLoomDNA(dna, dna));
    near(overlap, 1, "overlap");
    equal(shifts, [], "nothing has moved");
    net.free();
  },
  "createLoomNetwork of a SwiGLU network"(compat) {
    const net = compat.createLoomNetwork(swiglu);
    equal(net.getLayerSpec(0).type, "SwiGLU");
    equal(net.sequentialForward(new Float32Array(8)).length, 8, "width of the output");
    net.free();
  },
};

/** Name of a check -> what it does with (compat, kit). */
export const compatCases = {};
for (const [name, body] of Object.entries(exports_)) {
  compatCases[`export ${name}`] = (compat, kit) => {
    equal(typeof globalThis[name], "function", "on the global object");
    return body(compat, kit);
  };
}
for (const [name, body] of Object.entries(members)) {
  compatCases[`network ${name}`] = async (compat) => {
    const net = formula(compat);
    holds(name in net, "it is there");
    await body(net, compat);
    net.free();
  };
}
for (const [name, body] of Object.entries(neat)) {
  compatCases[`population ${name}`] = (compat) => {
    const population = compat.createLoomNEATPopulation(dense([2, 1]), 8, { Seed: 4, ActivationMutRate: 0 });
    holds(name in population, "it is there");
    body(population);
    population.free();
  };
}
for (const [name, body] of Object.entries(smoke)) compatCases[`smoke ${name}`] = (compat) => body(compat);
compatCases["there are 36 of them"] = () => equal(Object.keys(compatCases).length - 1, 36);

/** A population of networks that grow until they solve a task (NEAT). */

import { tensor, type Genome, type GenomeDescription, type Loom, type Population } from "@loom-engine/loom";

import { LineChart } from "./chart";
import { choice, el, field, Figures, number, Status, svg, valueOf } from "./dom";
import { engine, noteError } from "./engine";

const kMap = 40;

interface Task {
  readonly x: Float32Array;  // [rows, 2]
  readonly y: Float32Array;
}

/** Points on a grid of 9 x 9 over 0 to 1, and whether they belong. */
function grid(belongs: (x: number, y: number) => boolean): Task {
  const x: number[] = [], y: number[] = [];
  for (let i = 0; i < 81; ++i) {
    const [a, b] = [(i % 9) / 8, Math.floor(i / 9) / 8];
    x.push(a, b);
    y.push(belongs(a, b) ? 1 : 0);
  }
  return { x: Float32Array.from(x), y: Float32Array.from(y) };
}

const tasks: Record<string, () => Task> = {
  xor: () => ({ x: Float32Array.from([0, 0, 0, 1, 1, 0, 1, 1]), y: Float32Array.from([0, 1, 1, 0]) }),
  circle: () => grid((x, y) => Math.hypot(x - 0.5, y - 0.5) < 0.36),
  stripes: () => grid((x) => x > 0.3 && x < 0.7),
};

/** 1 / (1 + mean squared error) of each genome. */
function fitnesses(outputs: ArrayLike<number>, { y }: Task, genomes: number): Float64Array {
  const out = new Float64Array(genomes);
  for (let genome = 0; genome < genomes; ++genome) {
    let sum = 0;
    for (let i = 0; i < y.length; ++i) sum += ((outputs[genome * y.length + i] ?? 0) - (y[i] ?? 0)) ** 2 / y.length;
    out[genome] = 1 / (1 + sum);
  }
  return out;
}

/** How far a node is from the inputs, along the longest way. */
function depths({ nodes, connections }: GenomeDescription): Map<number, number> {
  const depth = new Map(nodes.map((node) => [node.id, 0]));
  for (let round = 0; round < nodes.length; ++round) {
    for (const { from, to, enabled } of connections) {
      if (enabled) depth.set(to, Math.min(Math.max(depth.get(to) ?? 0, (depth.get(from) ?? 0) + 1), nodes.length));
    }
  }
  return depth;
}

class Evolve {
  readonly #status = new Status();
  readonly #chart = new LineChart("Fitness by generation", "generation", 0, 1);
  readonly #figures = new Figures(["Generation", "Best", "Species", "Hidden nodes", "Connections"]);
  readonly #task = choice([["xor", "Exclusive or"], ["circle", "A disc"], ["stripes", "A stripe"]]);
  readonly #size = number(100, 4, 400, 1);
  readonly #seed = number(7, 0, 1000000, 1);
  readonly #most = number(100, 1, 1000, 1);
  readonly #start = el("button", { class: "main", click: () => void this.#evolve() }, "Evolve");
  readonly #stop = el("button", { disabled: true, click: () => (this.#going = false) }, "Stop");
  readonly #graph = svg("svg", { viewBox: "0 0 400 260", class: "graph", role: "img", "aria-label": "No network yet" });
  readonly #map = el("canvas", { class: "map", width: kMap, height: kMap, role: "img", "aria-label": "No answers yet" });
  #going = false;

  page(): HTMLElement {
    return el("section", {}, el("h2", {}, "Evolve"),
      el("p", {}, "Networks grow nodes and connections from generation to generation; the fitter ones have more children (NEAT)."),
      el("div", { class: "controls" }, field("Task", this.#task), field("Genomes", this.#size), field("Seed", this.#seed),
        field("Generations at most", this.#most)),
      el("div", { class: "row" }, this.#start, this.#stop),
      this.#status.element, this.#figures.element, this.#chart.element,
      el("div", { class: "two" }, el("div", {}, el("h3", {}, "The best network"), this.#graph),
        el("div", {}, el("h3", {}, "Its answer for every point"), this.#map)));
  }

  async #evolve(): Promise<void> {
    if (this.#going) return;
    this.#going = true;
    this.#start.disabled = true;
    this.#stop.disabled = false;
    try {
      const loom = await engine();
      const population = await loom.population({ inputs: 2, outputs: 1, population: valueOf(this.#size),
        seed: valueOf(this.#seed), addNode: 0.06 });
      try {
        await this.#run(loom, population);
      } finally {
        population.close();
      }
    } catch (error) {
      noteError(error);
      this.#status.fail(error);
    } finally {
      this.#going = false;
      this.#start.disabled = false;
      this.#stop.disabled = true;
    }
  }

  async #run(loom: Loom, population: Population): Promise<void> {
    const task = (tasks[this.#task.value] as () => Task)();
    const x = tensor(task.x, [task.y.length, 2]), genomes = (await population.info()).size;
    const best: [number, number][] = [], mean: [number, number][] = [], most = valueOf(this.#most);
    let record = 0, generation = 0;
    for (; this.#going && generation < most && record < 0.99; ++generation) {
      await population.tell(fitnesses((await population.run(x)).data as Float32Array, task, genomes));
      const report = await population.report(generation);
      best.push([generation, report.best]);
      mean.push([generation, report.mean]);
      this.#figures.set("Generation", String(generation + 1));
      this.#figures.set("Species", String(report.species));
      this.#chart.draw([{ name: "best", points: best }, { name: "mean", points: mean }]);
      if (report.best <= record) continue;
      record = report.best;
      this.#figures.set("Best", record.toFixed(4));
      this.#figures.set("Hidden nodes", String(report.hidden));
      this.#figures.set("Connections", String(report.connections));
      await this.#show(await population.best());
    }
    const how = record >= 0.99 ? "Solved" : this.#going ? "Not solved" : "Stopped";
    const net = await loom.genomeNetwork(await population.best());
    const parameters = (await net.parameters()).length;
    net.close();
    this.#status.say(`${how} after ${generation} generations, ${(generation * genomes).toLocaleString("en")} networks; fitness ` +
      `${record.toFixed(4)}. As a network of layers the best has ${parameters} parameter tensors.`);
  }

  async #show(genome: Genome): Promise<void> {
    try {
      this.#draw(await genome.json());
      const points = new Float32Array(2 * kMap * kMap);
      for (let i = 0; i < kMap * kMap; ++i) points.set([(i % kMap) / (kMap - 1), 1 - Math.floor(i / kMap) / (kMap - 1)], 2 * i);
      const answers = (await genome.run(tensor(points, [kMap * kMap, 2]))).data as Float32Array;
      const context = this.#map.getContext("2d") as CanvasRenderingContext2D;
      const image = context.createImageData(kMap, kMap);
      answers.forEach((v, i) => image.data.set([30 + 210 * v, 60 + 130 * v, 170 - 110 * v, 255], 4 * i));
      context.putImageData(image, 0, 0);
      const yes = answers.filter((v) => v > 0.5).length / answers.length;
      this.#map.setAttribute("aria-label", `${(yes * 100).toFixed(0)} % of the points are answered with yes`);
    } finally {
      genome.close();
    }
  }

  #draw(description: GenomeDescription): void {
    const depth = depths(description), deepest = Math.max(...depth.values(), 1);
    const columns = new Map<number, number[]>();
    for (const { id, role } of description.nodes) {
      const column = role === "output" ? deepest : depth.get(id) ?? 0;
      columns.set(column, [...(columns.get(column) ?? []), id]);
    }
    const place = new Map<number, [number, number]>();
    for (const [column, ids] of columns) {
      ids.forEach((id, i) => place.set(id, [40 + (column / deepest) * 320, ((i + 1) / (ids.length + 1)) * 260]));
    }
    const lines = description.connections.filter(({ enabled }) => enabled === true).map(({ from, to, weight }) => {
      const [x1, y1] = place.get(from) ?? [0, 0], [x2, y2] = place.get(to) ?? [0, 0];
      return svg("line", { x1, y1, x2, y2, class: weight < 0 ? "minus" : "plus", "stroke-width": 0.6 + Math.min(Math.abs(weight), 8) / 3 });
    });
    const dots = description.nodes.flatMap(({ id, role }) => {
      const [cx, cy] = place.get(id) ?? [0, 0];
      const name = role === "input" ? `x${id}` : role === "bias" ? "1" : role === "output" ? "y" : "";
      return [svg("circle", { cx, cy, r: 11 }), svg("text", { x: cx, y: cy + 4, "text-anchor": "middle" }, name)];
    });
    this.#graph.replaceChildren(...lines, ...dots);
    this.#graph.setAttribute("aria-label", `${description.nodes.length} nodes and ${lines.length} connections; broken lines are negative`);
  }
}

export function evolvePage(): HTMLElement {
  return new Evolve().page();
}

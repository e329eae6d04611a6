/** Recomputes in this page what the native engine computed, and compares the hashes. */

import { layers, tensor, type Loom } from "@loom-engine/loom";

import native from "../native.json";
import { digits } from "./digits_data";
import { el, Status } from "./dom";
import { engine, noteError, ownFile } from "./engine";

/** SHA-256 of the numbers in memory, or of a text. */
async function hashOf(data: ArrayBufferView | string): Promise<string> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const digest = await crypto.subtle.digest("SHA-256", bytes.slice());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

interface Row {
  readonly what: string;
  readonly wanted: string;
  compute(loom: Loom): Promise<string>;
}

const kPromptTokens = 113;

function logitsRow([dtype, wanted]: readonly [string, string]): Row {
  return { what: `Logits of a random decoder, weights in ${dtype}`, wanted, compute: async (loom) => {
    const model = await loom.randomModel("shakespeare", { dtype: dtype as "float32", seed: 1 });
    try {
      const { vocab } = model.info;
      return await hashOf(await model.logits(Int32Array.from({ length: kPromptTokens }, (_, i) => (i * 7919 + 13) % vocab)));
    } finally {
      model.close();
    }
  } };
}

/** Three epochs of the digits, as tests/web/native.py trains them. */
async function trained(loom: Loom): Promise<{ weights: string; outputs: string }> {
  const net = await loom.network([layers.Dense(784, 32, { activation: "relu" }), layers.Dense(32, 10)], { input: 784, seed: 3 });
  const train = await digits(loom, net, ""), test = await digits(loom, net, "-test");
  const trainer = await net.trainer({ optimizer: "adam", rate: 1e-3, batch: 50, seed: 1 });
  try {
    await trainer.fit(train, { epochs: 3, validation: test });
    return { weights: await trainer.weightsHash(), outputs: await hashOf((await net.predict(await test.x())).data) };
  } finally {
    for (const one of [trainer, train, test, net]) one.close();
  }
}

async function story(loom: Loom): Promise<string> {
  const model = await loom.load(ownFile("models/stories.entity"));
  try {
    return await hashOf((await model.generate("Once upon a time", { maxTokens: 60, temperature: 0.8, topK: 40, seed: 7 })).text);
  } finally {
    model.close();
  }
}

async function evolved(loom: Loom): Promise<string> {
  const population = await loom.population({ inputs: 2, population: 60, seed: 7 });
  const x = tensor(Float32Array.from([0, 0, 0, 1, 1, 0, 1, 1]), [4, 2]), wanted = [0, 1, 1, 0];
  try {
    for (let generation = 0; generation < 40; ++generation) {
      const { data } = await population.run(x);
      await population.tell(Array.from({ length: 60 }, (_, genome) =>
        1 / (1 + wanted.reduce((sum, want, i) => sum + (Number(data[genome * 4 + i]) - want) ** 2 / 4, 0))));
    }
    const best = await population.best();
    return await hashOf((await best.run(x)).data);
  } finally {
    population.close();
  }
}

function rows(): Row[] {
  let training: Promise<{ weights: string; outputs: string }> | null = null;
  const once = (loom: Loom): Promise<{ weights: string; outputs: string }> => (training ??= trained(loom));
  return [
    ...Object.entries(native.logits).map(logitsRow),
    { what: "Weights after three epochs of the digits", wanted: native.weights, compute: async (loom) => (await once(loom)).weights },
    { what: "Answers of that network to the test digits", wanted: native.outputs, compute: async (loom) => (await once(loom)).outputs },
    { what: "A drawn story of 60 tokens", wanted: native.story, compute: story },
    { what: "Answers of the best network after 40 generations", wanted: native.evolved, compute: evolved },
  ];
}

export function bitsPage(): HTMLElement {
  const status = new Status(), body = el("tbody");
  const start = el("button", { class: "main", click: () => void compare() }, "Compute and compare");
  const line = (row: Row, here: string, verdict: Node | string): HTMLElement => el("tr", {}, el("td", {}, row.what),
    el("td", { class: "hash" }, el("code", {}, row.wanted.slice(0, 16))), el("td", { class: "hash" }, el("code", {}, here.slice(0, 16))),
    el("td", {}, verdict));
  body.append(...rows().map((row) => line(row, "–", "not yet")));

  async function compare(): Promise<void> {
    start.disabled = true;
    const all = rows();
    let same = 0, done = 0;
    body.replaceChildren(...all.map((row) => line(row, "…", "computing")));
    try {
      const loom = await engine();
      for (const row of all) {
        status.say(`${done} of ${all.length} computed …`);
        const here = await row.compute(loom), equal = here === row.wanted;
        body.children[done++]?.replaceWith(line(row, here, el("span", { class: equal ? "same" : "other" }, equal ? "same" : "differs")));
        if (equal) ++same;
      }
      status.say(same === all.length ? `All ${all.length} have the bits of the native engine.`
        : `${all.length - same} of ${all.length} differ; please report it, with the engine's line below.`);
    } catch (error) {
      noteError(error);
      status.fail(error);
    } finally {
      start.disabled = false;
    }
  }

  return el("section", {}, el("h2", {}, "Same bits"),
    el("p", {}, "Logits, training, a drawn text and evolution, computed here, beside what the native engine computed: the numbers are " +
      "hashed as they lie in memory, so one bit that differs would show."),
    el("div", { class: "row" }, start), status.element,
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hashes" }, el("table", {},
      el("thead", {}, el("tr", {}, ...["What", "Native", "Here", "Verdict"].map((name) => el("th", { scope: "col" }, name)))), body)));
}

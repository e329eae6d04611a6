/** Train a network on handwritten digits, watch its loss, and ask it. */

import { layers, tensor, type Dataset, type Loom, type Network } from "@loom-engine/loom";

import { LineChart } from "./chart";
import { digits } from "./digits_data";
import { choice, el, field, Figures, number, Status, svg, valueOf } from "./dom";
import { chosen, deviceChoice, deviceNote, engine, noteError, type Device } from "./engine";

const kSide = 28;

/** Where a digit is drawn, or a sample shown. */
class Pad {
  readonly canvas = el("canvas", { class: "pad", width: kSide, height: kSide, role: "img",
    "aria-label": "A digit, 28 by 28; draw with the pointer, or take one by the button" });
  readonly pixels = new Float32Array(kSide * kSide);
  constructor(readonly changed: () => void) {
    const draw = (event: PointerEvent): void => {
      if (event.buttons === 0) return;
      const box = this.canvas.getBoundingClientRect();
      this.#blot(((event.clientX - box.left) / box.width) * kSide, ((event.clientY - box.top) / box.height) * kSide);
    };
    this.canvas.addEventListener("pointerdown", draw as EventListener);
    this.canvas.addEventListener("pointermove", draw as EventListener);
    this.canvas.addEventListener("pointerup", () => this.changed());
    this.show(this.pixels);
  }
  get empty(): boolean {
    return this.pixels.every((value) => value === 0);
  }
  clear(): void {
    this.show(new Float32Array(kSide * kSide));
    this.changed();
  }
  #blot(x: number, y: number): void {
    for (let row = 0; row < kSide; ++row) {
      for (let column = 0; column < kSide; ++column) {
        const near = 1.9 - Math.hypot(column + 0.5 - x, row + 0.5 - y);
        const at = row * kSide + column;
        if (near > 0) this.pixels[at] = Math.max(this.pixels[at] ?? 0, Math.min(near, 1));
      }
    }
    this.show(this.pixels);
  }
  show(values: ArrayLike<number>): void {
    this.pixels.set(values);
    const context = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    const image = context.createImageData(kSide, kSide);
    this.pixels.forEach((value, i) => image.data.set([value * 255, value * 255, value * 255, 255], 4 * i));
    context.putImageData(image, 0, 0);
  }
}

class Digits {
  readonly #status = new Status();
  readonly #chart = new LineChart("Loss while it trains", "step");
  readonly #figures = new Figures(["Epoch", "Loss", "Right of the test", "Samples a second"]);
  readonly #hidden = number(32, 1, 512, 1);
  readonly #epochs = number(5, 1, 100, 1);
  readonly #rate = number(0.001, 0.0001, 1, 0.0001);
  readonly #optimizer = choice([["adam", "Adam"], ["sgd", "SGD"], ["adamw", "AdamW"]]);
  readonly #start = el("button", { class: "main", click: () => void this.#train() }, "Train");
  readonly #stop = el("button", { disabled: true, click: () => this.#ending?.abort() }, "Stop");
  readonly #guess = el("p", { class: "status", role: "status" }, "Train it first.");
  readonly #bars = svg("svg", { viewBox: "0 0 300 150", class: "chart", role: "img", "aria-label": "No prediction" });
  readonly #pad = new Pad(() => void this.#ask());
  readonly #device = deviceChoice();
  #on: Device = "cpu";
  #note = "";
  #net: Network | null = null;
  #test: Float32Array | null = null;
  #ending: AbortController | null = null;
  #next = 0;

  page(): HTMLElement {
    return el("section", {}, el("h2", {}, "Digits"),
      el("p", {}, "A network learns 28 × 28 pictures of digits in this page, on the CPU with the losses and weights of the native engine, bit for bit."),
      el("div", { class: "controls" }, field("Hidden units", this.#hidden), field("Epochs", this.#epochs),
        field("Learning rate", this.#rate), field("Optimizer", this.#optimizer),
        field("Computed by", this.#device)),
      el("div", { class: "row" }, this.#start, this.#stop),
      this.#status.element, this.#figures.element, this.#chart.element,
      el("h3", {}, "Ask it"),
      el("div", { class: "two" },
        el("div", {}, this.#pad.canvas, el("div", { class: "row" },
          el("button", { click: () => void this.#sample() }, "Take a test digit"),
          el("button", { click: () => this.#pad.clear() }, "Clear"))),
        el("div", {}, this.#guess, this.#bars)));
  }

  async #train(): Promise<void> {
    if (this.#ending !== null) return;
    const ending = new AbortController();
    this.#ending = ending;
    this.#start.disabled = true;
    this.#stop.disabled = false;
    this.#status.say("Reading the digits …");
    this.#on = chosen(this.#device);
    try {
      const loom = await engine(this.#on);
      this.#note = deviceNote(loom, this.#on);
      await this.#run(loom, ending.signal);
    } catch (error) {
      noteError(error, this.#on);
      if ((error as { code?: string }).code === "cancelled") this.#status.say("Stopped; it knows what it learned until then.");
      else this.#status.fail(error);
    } finally {
      this.#ending = null;
      this.#start.disabled = false;
      this.#stop.disabled = true;
    }
    if (this.#net !== null) await this.#ask();
  }

  async #run(loom: Loom, signal: AbortSignal): Promise<void> {
    const hidden = valueOf(this.#hidden), open: { close(): void }[] = [];
    this.#net?.close();
    const net = await loom.network([layers.Dense(784, hidden, { activation: "relu" }), layers.Dense(hidden, 10)],
      { input: 784, seed: 3 });
    this.#net = net;
    try {
      const train = await digits(loom, net, ""), test = await digits(loom, net, "-test");
      open.push(train, test);
      this.#test = Float32Array.from((await test.x()).data as Float32Array);
      await this.#fit(net, train, test, signal, open);
    } finally {
      for (const one of open) one.close();
    }
  }

  async #fit(net: Network, train: Dataset, validation: Dataset, signal: AbortSignal, open: { close(): void }[]):
    Promise<void> {
    const optimizer = this.#optimizer.value as "adam";
    const trainer = await net.trainer({ optimizer, rate: valueOf(this.#rate), batch: 50, seed: 1 });
    open.push(trainer);
    const epochs = valueOf(this.#epochs), began = performance.now();
    const losses: [number, number][] = [], checks: [number, number][] = [];
    let step = 0, drawn = 0;
    const draw = (): void => {
      drawn = performance.now();
      this.#chart.draw([{ name: "training", points: losses }, { name: "test", points: checks }]);
    };
    await trainer.fit(train, { epochs, validation, signal,
      onBatch: ({ loss }) => {
        losses.push([++step, loss]);
        if (performance.now() - drawn > 100) draw();
      },
      onEpoch: (epoch) => {
        checks.push([step, epoch.validationLoss]);
        this.#figures.set("Epoch", `${epoch.number} of ${epochs}`);
        this.#figures.set("Loss", epoch.trainLoss.toFixed(4));
        this.#figures.set("Right of the test", `${(epoch.validationAccuracy * 100).toFixed(1)} %`);
        const samples = (epoch.number * train.info.samples) / ((performance.now() - began) / 1000);
        this.#figures.set("Samples a second", samples.toFixed(0));
        this.#status.say(`Epoch ${epoch.number} of ${epochs}: test loss ${epoch.validationLoss.toFixed(4)}.`);
        draw();
      } });
    draw();
    this.#status.say(`Trained.${this.#note} Hash of the weights: ${await trainer.weightsHash()}`);
  }

  async #sample(): Promise<void> {
    if (this.#test === null) return void (this.#guess.textContent = "Train it first; then the test digits are there.");
    const count = this.#test.length / (kSide * kSide), at = (this.#next++ * 7) % count;
    this.#pad.show(this.#test.subarray(at * kSide * kSide, (at + 1) * kSide * kSide));
    await this.#ask();
  }

  /** An empty pad has no prediction. */
  #sayNothing(): void {
    this.#guess.textContent = "Draw a digit, or take a test digit.";
    this.#bars.setAttribute("aria-label", "No prediction");
    this.#bars.replaceChildren();
  }

  async #ask(): Promise<void> {
    const net = this.#net;
    if (net === null || this.#ending !== null) return;
    if (this.#pad.empty) return this.#sayNothing();
    try {
      const outputs = await net.predict(tensor(this.#pad.pixels.slice(), [1, kSide * kSide]));
      const shares = Array.from((await net.probabilities(outputs)).data as Float32Array);
      const best = shares.indexOf(Math.max(...shares));
      this.#guess.textContent = `It sees a ${best}, with ${((shares[best] ?? 0) * 100).toFixed(1)} %.`;
      this.#bars.setAttribute("aria-label", shares.map((share, i) => `${i}: ${(share * 100).toFixed(0)} %`).join(", "));
      this.#bars.replaceChildren(...shares.flatMap((share, i) => [
        svg("rect", { class: "bar", x: 8 + i * 29, y: 128 - share * 120, width: 22, height: share * 120 }),
        svg("text", { x: 19 + i * 29, y: 144, "text-anchor": "middle" }, String(i))]));
    } catch (error) {
      noteError(error, this.#on);
      this.#guess.textContent = (error as Error).message;
    }
  }
}

export function digitsPage(): HTMLElement {
  return new Digits().page();
}

/** The contents of a model file: its layers as a tree, its tensors with their shapes, and how their values are spread. */

import type { FileDescription, ModelFile } from "@loom-engine/loom";

import { histogram } from "./chart";
import { dropZone, el, Status } from "./dom";
import { engine, noteError, ownFile } from "./engine";

type LayerRow = FileDescription["layers"][number];

function sized(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} kB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

function layerText({ at, type, settings, in: from, out, parameters }: LayerRow): string {
  const shapes = from !== "" && out !== "" ? ` ${from} → ${out}` : "";
  const count = parameters > 0 ? ` · ${parameters.toLocaleString("en")} parameters` : "";
  return `${at} ${type}${shapes}${settings === "" ? "" : ` · ${settings}`}${count}`;
}

/** The layers from `at` on that are as deep as the first of them, each with those below it. */
function tree(layers: readonly LayerRow[], at: { next: number }, depth: number): HTMLUListElement {
  const list = el("ul", { class: depth === 0 ? "tree" : undefined });
  for (let layer = layers[at.next]; layer !== undefined && layer.depth >= depth; layer = layers[at.next]) {
    ++at.next;
    const below = layers[at.next];
    const text = el("code", {}, layerText(layer));
    if (below !== undefined && below.depth > depth) {
      list.append(el("li", {}, el("details", { open: depth === 0 && layers.length < 60 }, el("summary", {}, text),
        tree(layers, at, depth + 1))));
    } else {
      list.append(el("li", {}, text));
    }
  }
  return list;
}

class Look {
  readonly #status = new Status();
  readonly #out = el("div");
  #file: ModelFile | null = null;

  page(): HTMLElement {
    const own = el("button", { click: () => void this.#open(ownFile("models/stories.entity")) }, "Open the story model");
    return el("section", {}, el("h2", {}, "Look inside"),
      el("p", {}, "What an .entity file holds (or .gguf, .onnx, .safetensors): nothing of it is run."),
      dropZone("Drop a model file here, or choose one", ".entity,.gguf,.onnx,.safetensors,.npz,.json", (file) => void this.#open(file), own),
      this.#status.element, this.#out);
  }

  async #open(source: string | File): Promise<void> {
    try {
      const loom = await engine();
      this.#status.say("Reading …");
      this.#file?.close();
      this.#file = null;
      this.#out.replaceChildren();
      const file = await loom.open(source);
      this.#file = file;
      this.#show(file, await file.json());
    } catch (error) {
      noteError(error);
      this.#status.fail(error);
    }
  }

  #show(file: ModelFile, told: FileDescription): void {
    const bytes = told.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const { decoder } = told;
    const what = decoder === null ? "a network" : `${decoder.architecture}: ${decoder.layers} layers of width ${decoder.width}, ` +
      `${decoder.vocab} tokens, context ${decoder.context}`;
    this.#status.say(`${told.format}, grid ${told.grid}, ${told.parameters.toLocaleString("en")} parameters, ` +
      `${told.tensors.length} tensors in ${sized(bytes)}; ${what}.`);
    const spread = el("div", { "aria-live": "polite" });
    const rows = told.tensors.map(({ name, dtype, shape, bytes: size }, i) => {
      const button = el("button", { click: () => void this.#spread(file, i, name, row, spread) }, name);
      const row = el("tr", {}, el("td", {}, button), el("td", {}, shape.length === 0 ? "scalar" : shape.join(" × ")),
        el("td", {}, dtype), el("td", { class: "number" }, sized(size)));
      return row;
    });
    const head = el("tr", {}, ...["Tensor", "Shape", "Type"].map((name) => el("th", { scope: "col" }, name)),
      el("th", { scope: "col", class: "number" }, "Bytes"));
    this.#out.replaceChildren(
      el("h3", {}, "Layers"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Layers" },
        tree(told.layers, { next: 0 }, 0)),
      el("h3", {}, "Values of a tensor"), spread,
      el("h3", {}, "Tensors"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Tensors" },
        el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))),
      ...(told.notes.length === 0 ? [] : [el("h3", {}, "Notes"), el("ul", {}, ...told.notes.map((note) => el("li", {}, note)))]));
    const first = told.tensors.findIndex(({ shape, dtype }) => shape.length === 2 && dtype !== "text");
    const row = rows[first];
    if (row !== undefined) void this.#spread(file, first, told.tensors[first]?.name ?? "", row, spread);
  }

  async #spread(file: ModelFile, tensor: number, name: string, row: HTMLElement, to: HTMLElement): Promise<void> {
    for (const other of row.parentElement?.children ?? []) other.removeAttribute("aria-selected");
    row.setAttribute("aria-selected", "true");
    try {
      const [values, hash] = [await file.values(tensor), await file.hash(tensor)];
      to.replaceChildren(el("p", {}, el("code", {}, `${name} [${values.shape.join(", ")}]`)),
        histogram(`Values of ${name}`, values.data as Float32Array), el("p", {}, "Hash of its bytes: ", el("code", {}, hash)));
    } catch (error) {
      noteError(error);
      to.replaceChildren(el("p", { class: "status bad" }, (error as Error).message));
    }
  }
}

export function lookPage(): HTMLElement {
  return new Look().page();
}

/** Small makers of elements, so that pages read as what they show. */

type Child = Node | string;
type Properties = Record<string, string | number | boolean | ((event: never) => void) | undefined>;

function fill(element: Element, properties: Properties, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
}

/** An element of HTML; functions among the properties listen to the event of that name. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, properties: Properties = {}, ...children: Child[]):
  HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, properties, children);
  return element;
}

/** The same of SVG. */
export function svg(tag: string, properties: Properties = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, properties, children);
  return element;
}

/** A control under its name. */
export function field(name: string, control: HTMLElement): HTMLLabelElement {
  return el("label", { class: "field" }, name, control);
}

export function choice(values: readonly (readonly [string, string])[]): HTMLSelectElement {
  return el("select", {}, ...values.map(([value, name]) => el("option", { value }, name)));
}

export function number(value: number, min: number, max: number, step: number): HTMLInputElement {
  return el("input", { type: "number", value, min, max, step, inputmode: "decimal" });
}

/** The value of a number field, clamped to its limits. */
export function valueOf(input: HTMLInputElement): number {
  const value = Number(input.value);
  const kept = Number.isFinite(value) ? Math.min(Math.max(value, Number(input.min)), Number(input.max)) : Number(input.min);
  input.value = String(kept);
  return kept;
}

/** A line that tells how it goes; read aloud when it changes. */
export class Status {
  readonly element = el("p", { class: "status", role: "status" });
  say(text: string): void {
    this.element.className = "status";
    this.element.textContent = text;
  }
  fail(error: unknown): void {
    this.element.className = "status bad";
    this.element.textContent = error instanceof Error ? error.message : String(error);
  }
}

/** Figures with their names. */
export class Figures {
  readonly element = el("dl", { class: "figures" });
  readonly #values = new Map<string, HTMLElement>();
  constructor(names: readonly string[]) {
    for (const name of names) {
      const value = el("dd", {}, "–");
      this.#values.set(name, value);
      this.element.append(el("div", {}, el("dt", {}, name), value));
    }
  }
  set(name: string, value: string): void {
    const element = this.#values.get(name);
    if (element !== undefined) element.textContent = value;
  }
}

/** A place to drop a file, with a button for those who choose one. */
export function dropZone(label: string, accept: string, take: (file: File) => void, ...more: Child[]): HTMLElement {
  const input = el("input", { type: "file", accept, "aria-label": label, change: () => {
    const file = input.files?.[0];
    if (file !== undefined) take(file);
  } });
  const zone = el("div", { class: "drop" }, el("p", {}, label), el("div", { class: "row" }, input, ...more));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file !== undefined) take(file);
  });
  return zone;
}

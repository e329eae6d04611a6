/** Chat with a model that was dropped, or go on with a text. */

import type { LLM, Turn } from "@loom-engine/loom";

import { choice, dropZone, el, field, number, Status, valueOf } from "./dom";
import { chosen, deviceChoice, deviceNote, engine, noteError, ownFile, type Device } from "./engine";

class Chat {
  readonly #status = new Status();
  readonly #log = el("div", { role: "log", "aria-label": "The conversation", tabindex: 0 });
  readonly #text = el("textarea", { rows: 3, "aria-label": "Your text" });
  readonly #how = choice([["text", "Continue text"], ["turns", "Chat"]]);
  readonly #temperature = number(0.8, 0, 2, 0.1);
  readonly #tokens = number(120, 1, 2000, 1);
  readonly #send = el("button", { class: "main", disabled: true, click: () => void this.#answer() }, "Send");
  readonly #stop = el("button", { disabled: true, click: () => this.#ending?.abort() }, "Stop");
  readonly #bar = el("progress", { hidden: true, "aria-label": "Reading the file" });
  readonly #device = deviceChoice();
  #model: LLM | null = null;
  #source: string | File | null = null;
  #on: Device = "cpu";
  #turns: Turn[] = [];
  #ending: AbortController | null = null;

  page(): HTMLElement {
    const story = el("button", { click: () => void this.#load(ownFile("models/stories.entity")) }, "Load the story model (2 MB)");
    const anew = el("button", { click: () => this.#anew() }, "New conversation");
    this.#text.value = "Once upon a time";
    this.#device.addEventListener("change", () => this.#source !== null && void this.#load(this.#source));
    this.#text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.#answer();
    });
    return el("section", {}, el("h2", {}, "Chat"),
      el("p", {}, "A language model that runs in this page: an .entity or a GGUF file."),
      dropZone("Drop a model here, or choose one", ".entity,.gguf", (file) => void this.#load(file), story),
      this.#bar, this.#status.element, this.#log, this.#text,
      el("div", { class: "row" }, this.#send, this.#stop, anew),
      el("div", { class: "controls" }, field("Mode", this.#how),
        field("Temperature", this.#temperature), field("Tokens at most", this.#tokens),
        field("Computed by", this.#device)));
  }

  #anew(): void {
    this.#ending?.abort();
    this.#turns = [];
    this.#log.replaceChildren();
    this.#text.focus();
  }

  async #load(source: string | File): Promise<void> {
    this.#ending?.abort();
    this.#send.disabled = true;
    this.#source = source;
    const device = chosen(this.#device);
    try {
      const loom = await engine(device);
      this.#model?.close();
      this.#model = null;
      this.#bar.hidden = false;
      const began = performance.now();
      const model = await loom.load(source, { onProgress: (done, total) => {
        this.#bar.max = Math.max(total, 1);
        this.#bar.value = done;
      } });
      this.#model = model;
      this.#on = device;
      this.#anew();
      const { architecture, parameters, dtype, hasChatTemplate } = model.info;
      this.#how.value = hasChatTemplate && source instanceof File ? "turns" : "text";
      (this.#how.options[1] as HTMLOptionElement).disabled = !hasChatTemplate;
      this.#status.say(`${architecture}, ${(parameters / 1e6).toFixed(1)} million parameters in ${dtype}, loaded in ` +
        `${((performance.now() - began) / 1000).toFixed(2)} s.${deviceNote(loom, device)}`);
      this.#send.disabled = false;
    } catch (error) {
      noteError(error, device);
      this.#status.fail(error);
    } finally {
      this.#bar.hidden = true;
    }
  }

  async #answer(): Promise<void> {
    const model = this.#model, asked = this.#text.value;
    if (model === null || this.#ending !== null || asked.trim() === "") return;
    const turns = this.#how.value === "turns";
    const ending = new AbortController();
    this.#ending = ending;
    this.#send.disabled = true;
    this.#stop.disabled = false;
    const said = el("p", { class: "said" }, turns ? "" : asked);
    this.#log.append(...(turns ? [el("p", { class: "said asked" }, asked)] : []), said);
    if (turns) this.#text.value = "";
    try {
      await this.#write(model, asked, turns, said, ending.signal);
    } catch (error) {
      noteError(error, this.#on);
      this.#status.fail(error);
    } finally {
      this.#ending = null;
      this.#send.disabled = this.#model === null;
      this.#stop.disabled = true;
    }
  }

  async #write(model: LLM, asked: string, turns: boolean, said: HTMLElement, signal: AbortSignal): Promise<void> {
    const options = { temperature: valueOf(this.#temperature), maxTokens: valueOf(this.#tokens), signal };
    if (turns) this.#turns.push({ role: "user", content: asked });
    const began = performance.now();
    let tokens = 0, first = 0, text = "";
    for await (const token of turns ? model.chat(this.#turns, options) : model.stream(asked, options)) {
      if (++tokens === 1) first = performance.now() - began;
      text += token.text;
      said.append(token.text);
    }
    if (turns) this.#turns.push({ role: "assistant", content: text });
    const seconds = (performance.now() - began - first) / 1000;
    const speed = tokens > 1 ? `, ${((tokens - 1) / Math.max(seconds, 1e-3)).toFixed(0)} tokens a second after it` : "";
    this.#status.say(`${tokens} tokens; the first after ${first.toFixed(0)} ms${speed}.`);
  }
}

export function chatPage(): HTMLElement {
  return new Chat().page();
}

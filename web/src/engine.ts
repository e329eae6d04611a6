/** The engines of the page, one for the CPU and one for the GPU: each is made when it is needed, and made anew where it
 * was lost. */

import { init, LoomError, type Loom } from "@loom-engine/loom";

import { choice } from "./dom";

export type Device = "cpu" | "gpu";

const running = new Map<Device, Promise<Loom>>();

function sentence(note: string): string {
  return `${note.charAt(0).toUpperCase()}${note.slice(1)}.`;
}
function told(loom: Loom): string {
  const { variant, threads, isa, device, notes } = loom.info;
  const lanes = threads === 1 ? "1 thread" : `${threads} threads`;
  const what = variant === "gpu" ? `WebGPU on ${device}` : `WebAssembly "${variant}"`;
  return [`Engine: ${what}, instruction set ${isa}, ${lanes}.`, ...notes.map(sentence)].join(" ");
}

export function engine(device: Device = "cpu"): Promise<Loom> {
  const known = running.get(device);
  if (known !== undefined) return known;
  const made = (async () => {
    const line = document.getElementById("engine") as HTMLElement;
    line.textContent = "The engine starts …";
    try {
      const loom = await init({ device });
      line.textContent = told(loom);
      return loom;
    } catch (error) {
      running.delete(device);
      line.textContent = `The engine does not start: ${(error as Error).message}`;
      throw error;
    }
  })();
  running.set(device, made);
  return made;
}

/** After an error that ended the engine the next call of engine() makes another one. */
export function noteError(error: unknown, device: Device = "cpu"): void {
  const code = error instanceof LoomError ? error.code : "";
  if (code === "lost" || code === "internal" || code === "out_of_memory") running.delete(device);
}

export function deviceChoice(): HTMLSelectElement {
  return choice([["cpu", "CPU"], ["gpu", "GPU, if there is one"]]);
}
export function chosen(select: HTMLSelectElement): Device {
  return select.value === "gpu" ? "gpu" : "cpu";
}
/** For an engine on the GPU: that it computes, or why the CPU does. "" for one of the CPU. */
export function deviceNote(loom: Loom, asked: Device): string {
  if (asked === "cpu") return "";
  if (loom.info.variant === "gpu") return ` It runs on the GPU (${loom.info.device}).`;
  return ` ${sentence(loom.info.notes.find((note) => note.startsWith("the CPU computes")) ?? "the CPU computes")}`;
}

/** A file that belongs to the site. */
export function ownFile(path: string): string {
  return new URL(path, document.baseURI).href;
}

/** The engine of the page: one, made when it is needed, and made anew where it was lost. */

import { init, LoomError, type Loom } from "@loom-engine/loom";

let running: Promise<Loom> | null = null;

function told(loom: Loom): string {
  const { variant, threads, isa, notes } = loom.info;
  const lanes = threads === 1 ? "1 thread" : `${threads} threads`;
  return [`Engine: WebAssembly "${variant}", instruction set ${isa}, ${lanes}.`, ...notes].join(" ");
}

export function engine(): Promise<Loom> {
  running ??= (async () => {
    const line = document.getElementById("engine") as HTMLElement;
    line.textContent = "The engine starts …";
    try {
      const loom = await init();
      line.textContent = told(loom);
      return loom;
    } catch (error) {
      running = null;
      line.textContent = `The engine does not start: ${(error as Error).message}`;
      throw error;
    }
  })();
  return running;
}

/** After an error that ended the engine the next call of engine() makes another one. */
export function noteError(error: unknown): void {
  const code = error instanceof LoomError ? error.code : "";
  if (code === "lost" || code === "internal" || code === "out_of_memory") running = null;
}

/** A file that belongs to the site. */
export function ownFile(path: string): string {
  return new URL(path, document.baseURI).href;
}

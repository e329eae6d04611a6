/** The connection of a client to the worker of its engine. */

import { LoomError, revived } from "./errors.js";
import type { CancelToken, Handle, Operations, Port, Reply, Request } from "./protocol.js";

/** A worker that was started, as this host starts them. */
export interface Started {
  readonly port: Port;
  terminate(): void;
  /** Whether calls wait for the worker. In Node.js an idle worker does not keep the program running. */
  busy?(waits: boolean): void;
  /** Called when the worker ends by itself. */
  onEnd(handler: (why: string) => void): void;
}

/** `Symbol.dispose` where the host has it. */
export const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

export type Events = Readonly<Record<string, (value: never) => void>>;

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly events: Events;
}

function cancelToken(signal: AbortSignal): { token: CancelToken; cancel(): void; end(): void } {
  const isolated = (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated ?? true;
  if (typeof SharedArrayBuffer === "function" && isolated) {
    const word = new SharedArrayBuffer(4);
    const cancel = (): void => void Atomics.store(new Int32Array(word), 0, 1);
    signal.addEventListener("abort", cancel);
    return { token: { word }, cancel, end: () => signal.removeEventListener("abort", cancel) };
  }
  // No memory can be shared: the worker looks whether this address still exists.
  const url = URL.createObjectURL(new Blob(["go on"]));
  const cancel = (): void => URL.revokeObjectURL(url);
  signal.addEventListener("abort", cancel);
  return { token: { url }, cancel, end: () => (signal.removeEventListener("abort", cancel), cancel()) };
}

/** The connection to a worker. */
export class Link {
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #over: LoomError | null = null;

  constructor(readonly started: Started) {
    started.port.listen((reply: Reply) => this.#take(reply));
    started.onEnd((why) => this.end(new LoomError("lost", `the engine's worker ended: ${why}; make a new engine`)));
  }

  #take(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    if (waiting === undefined) return;
    if ("event" in reply) return waiting.events[reply.event]?.(reply.value as never);
    this.#waiting.delete(reply.id);
    if (this.#waiting.size === 0) this.started.busy?.(false);
    if ("error" in reply) waiting.reject(revived(reply.error));
    else waiting.resolve(reply.result);
  }

  end(why: LoomError): void {
    this.#over ??= why;
    this.started.terminate();
    for (const waiting of this.#waiting.values()) waiting.reject(this.#over);
    this.#waiting.clear();
  }

  async ask<K extends keyof Operations>(operation: K, args: Parameters<Operations[K]>, events: Events = {},
    signal?: AbortSignal): Promise<ReturnType<Operations[K]>> {
    if (this.#over !== null) throw this.#over;
    if (signal?.aborted === true) throw new LoomError("cancelled", `${operation}: cancelled before it began`);
    const cancelling = signal === undefined ? null : cancelToken(signal);
    try {
      return await new Promise((resolve, reject) => {
        const id = this.#next++;
        if (this.#waiting.size === 0) this.started.busy?.(true);
        this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject, events });
        this.started.port.post({ id, operation, args, cancel: cancelling?.token } satisfies Request);
      });
    } finally {
      cancelling?.end();
    }
  }
}

/** An object that close() closes at once, and `using` at the end of its block. */
export abstract class Closable {
  #closed = false;
  constructor(protected readonly link: Link, protected readonly handle: Handle) {}
  /** Frees the memory. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    void this.link.ask("free", [this.handle]).catch(() => undefined);
  }
  [dispose](): void {
    this.close();
  }
}

/** Values that arrive while work goes on, as an async iterator. */

export interface CallOptions {
  /** Ends the work with code "cancelled". */
  readonly signal?: AbortSignal | undefined;
}

/** Values that come while a promise is on its way. */
export class Feed<T> {
  readonly #values: T[] = [];
  #ended = false;
  #error: unknown = null;
  #wake: (() => void) | null = null;

  push(value: T): void {
    this.#values.push(value);
    this.#wake?.();
  }
  follow(promise: Promise<unknown>): void {
    promise.then(() => undefined, (error: unknown) => void (this.#error = error)).finally(() => {
      this.#ended = true;
      this.#wake?.();
    });
  }
  async *values(): AsyncGenerator<T, void> {
    for (;;) {
      while (this.#values.length > 0) yield this.#values.shift() as T;
      if (this.#error !== null) throw this.#error;
      if (this.#ended) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

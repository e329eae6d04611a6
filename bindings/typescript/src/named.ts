/** Options by name, as loom_options_set() reads them: each value as a text. */

import type { Calls } from "./calls.js";
import { after, ending, type Later } from "./later.js";
import { snake } from "./memory.js";

function textOf(value: unknown): string {
  if (value === null) return "";
  if (Array.isArray(value)) return value.every((v) => typeof v === "number") ? value.join(",") : JSON.stringify(value);
  if (typeof value !== "object") return String(value);
  return JSON.stringify(Object.entries(value).map(([pattern, factor]) => `${pattern}=${String(factor)}`));
}

/** Name of the library and text of each option. */
function* texts(given: object): Generator<readonly [string, string]> {
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    if (value === undefined || (name === "optimizer" && value === "automatic")) continue;
    if (name !== "augment") yield [snake(name), textOf(value)];
    else for (const [inner, number] of Object.entries(value as object)) yield [`augment.${snake(inner)}`, textOf(number)];
  }
}

/** Calls `body` with the address of options, which it frees. */
export function withOptions<T>(calls: Calls, kind: string, given: object, body: (options: number) => Later<T>): Later<T> {
  const module = calls.module;
  const options = calls.out((scope, out, m) => m.call((f) => f.loom_options_new(m.memory.text(scope, kind), out)));
  return ending(() => {
    for (const [name, text] of texts(given)) {
      calls.scoped((scope, m) =>
        calls.check(m.call((f) => f.loom_options_set(options, m.memory.text(scope, name), m.memory.text(scope, text)))));
    }
    return after(body(options), (value) => value);
  }, () => module.call((f) => f.loom_options_free(options)));
}

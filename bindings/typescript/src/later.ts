/** Values that exist, or will: the calls of a module answer at once, unless it waits for a device. */

export type Later<T> = T | Promise<T>;

/** Continues with a value, at once if it exists. */
export function after<T, U>(value: Later<T>, then: (value: T) => Later<U>): Later<U> {
  return value instanceof Promise ? value.then(then) : then(value);
}

/** Runs `body`, and `end` after it, however it ends. */
export function ending<T>(body: () => Later<T>, end: () => Later<unknown>): Later<T> {
  let value: Later<T>;
  try {
    value = body();
  } catch (error) {
    return after(end(), () => {
      throw error;
    });
  }
  if (value instanceof Promise) return value.finally(end);
  const result = value;
  return after(end(), () => result);
}

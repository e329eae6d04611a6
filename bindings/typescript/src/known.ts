/** Names of options. A name that does not exist is a TypeError with the nearest name. */

/** The names of an interface; the compiler checks that none is missing. */
export function namesOf<T>(names: Readonly<Record<keyof T, 0>>): readonly string[] {
  return Object.keys(names);
}

/** Edits from a to b, with swapped neighbours as one edit. */
function edits(a: string, b: string): number {
  let before: number[] = [], row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; ++i) {
    const next = [i];
    for (let j = 1; j <= b.length; ++j) {
      const other = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + other);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}

/** The nearest of the names, ignoring case and underscores: at most one edit in three letters. */
function nearest(name: string, names: readonly string[]): string | null {
  const plain = (text: string): string => text.replaceAll("_", "").toLowerCase();
  const asked = plain(name);
  let best: string | null = null, least = Math.max(1, Math.floor(asked.length / 3)) + 1;
  for (const one of asked.length > 64 ? [] : names) {
    const distance = edits(asked, plain(one));
    if (distance < least && distance < one.length) [best, least] = [one, distance];
  }
  return best;
}

export function unknownOption(name: string, names: readonly string[]): TypeError {
  const near = nearest(name, names);
  const help = near === null ? `choose from ${names.join(", ")}` : `did you mean "${near}"?`;
  return new TypeError(`unknown option "${name}"; ${help}`);
}

/** Throws a TypeError if an option is in none of the lists. */
export function checkOptions(options: object, ...known: readonly (readonly string[])[]): void {
  const names = known.flat();
  const name = Object.keys(options).find((one) => !names.includes(one));
  if (name !== undefined) throw unknownOption(name, names);
}

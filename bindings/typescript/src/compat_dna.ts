/** Signatures of networks as texts, and how alike two of them are. The rules are those of include/loom/dna.hpp in its
 * mode "strict", which is the original's; the engine itself compares networks, not texts. */

export interface Signature {
  readonly z: number;
  readonly y: number;
  readonly x: number;
  readonly l: number;
  readonly type: string;
  readonly dtype: string;
  /** A vector of length 1; [1] of a cell without weights. */
  readonly weights: readonly number[];
}

export interface DnaResult {
  readonly overall_overlap: number;
  readonly layer_overlaps: Record<string, number>;
  readonly logic_shifts: { source_pos: string; target_pos: string; overlap: number }[];
}

const kShiftThreshold = 0.8, kShiftMargin = 0.05, kLeastWeights = 4;

/** Cosine of two vectors; both zero: 1, one: 0. Another kind, number type or length gives 0. */
function similarity(a: Signature, b: Signature): number {
  if (a.type !== b.type || a.dtype !== b.dtype || a.weights.length !== b.weights.length) return 0;
  let dot = 0, first = 0, second = 0;
  a.weights.forEach((value, i) => {
    const other = b.weights[i] ?? 0;
    dot += value * other;
    first += value * value;
    second += other * other;
  });
  if (first === 0 || second === 0) return first === second ? 1 : 0;
  return Math.min(Math.max(dot / Math.sqrt(first * second), -1), 1);
}

const place = ({ z, y, x, l }: Signature): string => `${z},${y},${x},${l}`;

/** Cells of the first that are elsewhere in the second, the best first; each place is taken once. */
function shifts(first: readonly Signature[], second: readonly Signature[]): DnaResult["logic_shifts"] {
  const found: DnaResult["logic_shifts"] = [];
  for (const cell of first) {
    if (cell.weights.length < kLeastWeights) continue;
    const own = second.find((other) => place(other) === place(cell));
    const here = own === undefined ? -1 : similarity(cell, own);
    for (const other of second) {
      const overlap = similarity(cell, other);
      if (place(other) !== place(cell) && overlap > kShiftThreshold && overlap > here + kShiftMargin) {
        found.push({ source_pos: place(cell), target_pos: place(other), overlap });
      }
    }
  }
  found.sort((a, b) => b.overlap - a.overlap);
  const sources = new Set<string>(), targets = new Set<string>();
  return found.filter(({ source_pos: source, target_pos: target }) => {
    if (sources.has(source) || targets.has(target)) return false;
    sources.add(source);
    targets.add(target);
    return true;
  });
}

export function compareDna(first: readonly Signature[], second: readonly Signature[]): DnaResult {
  const overlaps: Record<string, number> = {};
  for (const cell of first) {
    const other = second.find((one) => place(one) === place(cell));
    if (other !== undefined) overlaps[place(cell)] = similarity(cell, other);
  }
  const all = Object.values(overlaps);
  const mean = all.length === 0 ? 0 : all.reduce((sum, value) => sum + value, 0) / all.length;
  return { overall_overlap: mean, layer_overlaps: overlaps, logic_shifts: shifts(first, second) };
}

// The golden hashes (tests/golden) of a module of loom_hash, in any host: logits of every number type of
// hashes.txt, and training of every layer kind of training.txt.
import { run } from "./wasi.mjs";

export function lines(text) {
  return text.trim().split("\n").map((line) => line.trim().split(/\s+/));
}

// Calls `tell(what, got, wanted)` for each. isa: "" selects the module's choice. runs: a function
// that runs a program.
export async function compareGolden(module, hashes, training, tell, isa = "", runs = run) {
  const chosen = isa ? ["--isa", isa] : [];
  for (const [dtype, wanted] of lines(hashes)) {
    const args = ["verify", "hash", "--shape", "shakespeare", "--dtype", dtype, "--prompt-tokens", "113"];
    tell(`logits ${dtype}`, (await runs(module, [...args, ...chosen])).trim(), wanted);
  }
  const got = new Map(lines(await runs(module, ["verify", "training", ...chosen])).map(([kind, ...rest]) => [kind, rest.join(" ")]));
  for (const [kind, ...wanted] of lines(training)) tell(`training ${kind}`, got.get(kind), wanted.join(" "));
}

// A worker that computes the golden hashes with a module of loom_hash.
import { compareGolden } from "./golden.mjs";
import { run } from "./wasi.mjs";

addEventListener("message", async ({ data: { url, isa } }) => {
  try {
    const module = await WebAssembly.compileStreaming(fetch(url));
    const text = async (name) => (await fetch(`/tree/tests/golden/${name}`)).text();
    const differing = [];
    let count = 0;
    await compareGolden(module, await text("hashes.txt"), await text("training.txt"), (what, got, wanted) => {
      ++count;
      if (got !== wanted) differing.push(`${what}: got ${got}, wanted ${wanted}`);
    }, isa);
    const isas = (await run(module, ["isas"])).trim().split("\n");
    postMessage({ count, differing, isa: isa || isas.at(-1) });
  } catch (error) {
    postMessage({ count: 0, differing: [String(error.stack ?? error)], isa });
  }
});

// The suite in a page: browser_test.mjs calls these.
import * as package_ from "/package/dist/index.js";
import * as compat_ from "/package/dist/compat.js";

import { compatCases } from "./compat_suite.mjs";
import { shareOf } from "./sample.mjs";
import { cases, runSuite } from "./suite.mjs";

const kit = async () => ({
  ...package_,
  source: (path) => `/tree/${path}`,
  bytes: async (path) => new Uint8Array(await (await fetch(`/tree/${path}`)).arrayBuffer()),
  native: await (await fetch("/native.json")).json(),
});

const results = [];
const tell = (name, error) => results.push({ name, error: error === null ? null : String(error.stack ?? error) });
const take = () => results.splice(0);

async function one(name, body) {
  try {
    await body();
    tell(name, null);
  } catch (error) {
    tell(name, error);
  }
}
function holds(truth, what) {
  if (!truth) throw new Error(what);
}

window.loomTests = {
  host: () => package_.host(),
  isolated: () => crossOriginIsolated,

  // The share of one of these variants in the sample.
  async suite(variants, variant, threads, sample) {
    const names = shareOf(Object.keys(cases), variants, variant, "page", sample);
    const info = await runSuite(await kit(), { variant, threads }, names, tell);
    return { info, results: take() };
  },

  // The names of the original, on the page's own thread.
  async compat() {
    const all = await kit(), loom = await package_.init({ threads: 1 }), compat = await compat_.init();
    compat_.install(compat);
    for (const [name, body] of Object.entries(compatCases)) await one(name, () => body(compat, { ...all, loom }));
    loom.close();
    return { results: take() };
  },

  // Cases of the suite by name, with the engine that init() chooses here.
  async some(names) {
    const all = await kit(), loom = await package_.init();
    for (const name of names) await one(name, () => cases[name](all, loom));
    const { info } = loom;
    loom.close();
    return { info, results: take() };
  },

  // A model from the origin's own file system: downloaded in ranges, resumed after an interruption,
  // then available.
  async cache() {
    const all = await kit(), loom = await package_.init({ threads: 1 });
    const path = all.source("models/stories.entity");
    await package_.clearCache();
    const ending = new AbortController();
    await one("bringing a file into the cache can be cancelled", async () => {
      let code = "";
      try {
        await loom.load(path, { cache: true, signal: ending.signal, onProgress: () => ending.abort() });
      } catch (error) {
        ({ code } = error);
      }
      holds(code === "cancelled", `ended with '${code}'`);
    });
    for (const name of ["it goes on where it broke off", "it is at hand the second time"]) {
      await one(name, async () => {
        const llm = await loom.load(path, { cache: true });
        const { text } = await llm.generate("Once upon a time", { maxTokens: 40 });
        holds(text === all.native.stories.likeliest, `the text is ${text}`);
        llm.close();
      });
    }
    await one("a file handle of the origin's file system is read", async () => {
      const root = await navigator.storage.getDirectory();
      const handle = await root.getFileHandle("mine.entity", { create: true });
      const out = await handle.createWritable();
      await out.write(await all.bytes("models/stories.entity"));
      await out.close();
      const llm = await loom.load(handle);
      holds((await llm.generate("Once upon a time", { maxTokens: 40 })).text === all.native.stories.likeliest, "its text");
      llm.close();
    });
    loom.close();
    return { results: take() };
  },

  // Milliseconds from the files in memory to the first token.
  async firstToken() {
    const all = await kit(), loom = await package_.init({ threads: 1 }), bytes = await all.bytes("models/stories.entity");
    const start = performance.now();
    const llm = await loom.load(bytes);
    let at = 0;
    await llm.generate("Once upon a time", { maxTokens: 1, onToken: () => { at ||= performance.now() - start; } });
    loom.close();
    return at;
  },

  // The page continues while the engine computes. This is the longest time that it had to wait,
  // relative to the time of the text. A page that computes itself waits for all of it. A page that
  // shares the processor with other programs waits for a part.
  async responsive() {
    const all = await kit(), loom = await package_.init({ threads: 1 });
    const llm = await loom.load(all.source("models/stories.entity"));
    let longest = 0, last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
    }, 4);
    const start = last, { tokens } = await llm.generate("Once upon a time", { maxTokens: 400, ignoreEos: true, context: 512 });
    clearInterval(timer);
    const end = performance.now();
    loom.close();
    return { longest: Math.max(longest, end - last), took: end - start, tokens };
  },
};

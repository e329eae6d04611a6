// The package in Node.js.   LOOM_NATIVE=native.json LOOM_TREE=. node --test tests/web/package.test.mjs
// It is imported by name, from its installed folder. With LOOM_WEB_SAMPLE (sample.mjs) each case
// runs with one variant.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as package_ from "@loom-engine/loom";
import * as compat_ from "@loom-engine/loom/compat";

import { compatCases } from "./compat_suite.mjs";
import { shareOf } from "./sample.mjs";
import { cases } from "./suite.mjs";

const tree = process.env.LOOM_TREE ?? ".";
const kit = {
  ...package_,
  source: (path) => join(tree, path),
  bytes: async (path) => new Uint8Array(readFileSync(join(tree, path))),
  native: JSON.parse(readFileSync(process.env.LOOM_NATIVE, "utf8")),
};
const { relaxed, shared, memory64 } = package_.host();
// The package may lack memory64, if the compiler did not support it (scripts/wasm_package.sh
// reports it).
const wide = memory64 && relaxed && existsSync(new URL(import.meta.resolve("@loom-engine/loom/wasm/loom-memory64.wasm")));
const variants = [["simd", 1], ...(relaxed ? [["relaxed", 1]] : []), ...(shared ? [["threads", 3]] : []),
  ...(relaxed && shared ? [["relaxed-threads", 3]] : []), ...(wide ? [["memory64", 1]] : []),
  ...(wide && shared ? [["memory64-threads", 3]] : [])];

const sample = process.env.LOOM_WEB_SAMPLE ?? "whole", salt = `node ${relaxed}`, names = variants.map(([name]) => name);

for (const [variant, threads] of variants) {
  test(variant, async (t) => {
    const loom = await package_.init({ variant, threads });
    try {
      assert.equal(loom.info.variant, variant);
      assert.equal(loom.info.threads, threads);
      for (const name of shareOf(Object.keys(cases), names, variant, salt, sample)) {
        await t.test(name, () => cases[name](kit, loom));
      }
    } finally {
      loom.close();
    }
  });
}

test("a program without close() ends", () => {
  const program = `import { init, layers, tensor } from "@loom-engine/loom";
    const loom = await init({ threads: 2 });
    const net = await loom.network([layers.Dense(3, 2)], { input: 3 });
    console.log((await net.predict(tensor(Float32Array.from([1, 2, 3]), [1, 3]))).shape.join());`;
  const done = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname, encoding: "utf8", timeout: 120_000,
  });
  assert.equal(done.signal, null, "it was still running");
  assert.equal(done.stdout, "1,2\n", done.stderr);
});

test("numbers without a shape are refused with a remedy", async () => {
  const loom = await package_.init({ threads: 1 });
  try {
    const net = await loom.network([package_.layers.Dense(3, 2)], { input: 3 });
    for (const numbers of [Float32Array.from([1, 2, 3]), [1, 2, 3], { data: [1, 2, 3], shape: [1, 3] }, null]) {
      await assert.rejects(() => net.predict(numbers), { code: "invalid_argument", message: /tensor\(numbers, shape\)/ });
    }
  } finally {
    loom.close();
  }
});

test("compat", async (t) => {
  const loom = await package_.init({ threads: 1 }), compat = await compat_.init();
  compat_.install(compat);
  try {
    for (const [name, body] of Object.entries(compatCases)) await t.test(name, () => body(compat, { ...kit, loom }));
  } finally {
    loom.close();
  }
});

// Modules without a part, in place of the whole one.
for (const part of ["core", "inference"]) {
  const name = `@loom-engine/loom/wasm/loom-${part}${relaxed ? "-relaxed" : ""}.wasm`;
  test(`the module ${part}`, async (t) => {
    const bytes = new Uint8Array(readFileSync(new URL(import.meta.resolve(name))));
    const variant = relaxed ? "relaxed" : "simd";
    const loom = await package_.init({ threads: 1, variant, modules: { [variant]: bytes } });
    const story = "a story is the native one, token by token and as a whole";
    const more = part === "core" ? ["digits are learned with the native bits", "a signal ends training"] : [];
    try {
      for (const one of [story, "text goes to tokens and back", "parameters are read, set and seen", ...more]) {
        await t.test(one, () => cases[one](kit, loom));
      }
      await t.test("what it was made without is refused by name", async () => {
        await assert.rejects(() => loom.population(), { code: "unsupported", message: /loom_population_create/ });
      });
    } finally {
      loom.close();
    }
  });
}

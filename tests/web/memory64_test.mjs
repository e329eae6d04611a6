// A model of more than 4 GiB in one module. It is a sparse GGUF file whose weights are zero, except
// those of a few tokens. So the expected results can be computed here by other means. Runs next to
// an installed package. If this host has no memory64 the model is refused, and the line gives the
// reason.
//   node memory64_test.mjs FOLDER     (for 4.3 GiB of a sparse file)
import assert from "node:assert/strict";
import { open, readFile, rm } from "node:fs/promises";
import { freemem } from "node:os";
import { join } from "node:path";

import * as package_ from "@loom-engine/loom";

const kWidth = 4096, kInner = 45056, kVocab = 65536, kHeads = 32, kEpsilon = 2 ** -20;
const kGiB = 2 ** 30, kNeeded = 8 * kGiB;
const kInputs = [5, 60001, 65535], kOutputs = [3, 40000, 65535];  // the weights of the last ones are beyond 4 GiB

// ---- a file

const u32 = (value) => new Uint8Array(new Uint32Array([value]).buffer);
const u64 = (value) => new Uint8Array(new BigUint64Array([BigInt(value)]).buffer);
const f32 = (value) => new Uint8Array(new Float32Array([value]).buffer);
const text = (value) => [u64(value.length), new TextEncoder().encode(value)];
const number = (key, value) => [...text(key), u32(4), u32(value)];
const real = (key, value) => [...text(key), u32(6), f32(value)];
const word = (key, value) => [...text(key), u32(8), ...text(value)];

// Name and extents, the innermost first; small ones come first, and the tables of tokens last.
const kTensors = [
  ["output_norm.weight", [kWidth]], ["blk.0.attn_norm.weight", [kWidth]], ["blk.0.ffn_norm.weight", [kWidth]],
  ...["q", "k", "v", "output"].map((name) => [`blk.0.attn_${name}.weight`, [kWidth, kWidth]]),
  ["blk.0.ffn_gate.weight", [kWidth, kInner]], ["blk.0.ffn_up.weight", [kWidth, kInner]],
  ["blk.0.ffn_down.weight", [kInner, kWidth]],
  ["output.weight", [kWidth, kVocab]], ["token_embd.weight", [kWidth, kVocab]],
];

function layout() {
  const metadata = [word("general.architecture", "llama"), word("tokenizer.ggml.model", "no_vocab"),
    number("llama.block_count", 1), number("llama.context_length", 128), number("llama.embedding_length", kWidth),
    number("llama.feed_forward_length", kInner), number("llama.attention.head_count", kHeads),
    number("llama.vocab_size", kVocab), real("llama.attention.layer_norm_rms_epsilon", kEpsilon)];
  const at = new Map(), infos = [];
  let offset = 0;
  for (const [name, extents] of kTensors) {
    infos.push(...text(name), u32(extents.length), ...extents.map(u64), u32(0), u64(offset));
    at.set(name, offset);
    offset += 4 * extents.reduce((product, extent) => product * extent, 1);
  }
  const parts = [new TextEncoder().encode("GGUF"), u32(3), u64(kTensors.length), u64(metadata.length), ...metadata.flat(), ...infos];
  const header = Buffer.concat(parts), begin = Math.ceil(header.length / 32) * 32;
  return { header, place: (name) => begin + at.get(name), size: begin + offset };
}

// Numbers of +-1 and between, from the number of the row alone.
function row(seed) {
  let state = seed * 2654435761 >>> 0;
  return Float32Array.from({ length: kWidth }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
}

async function write(path) {
  const { header, place, size } = layout(), file = await open(path, "w");
  try {
    await file.truncate(size);
    await file.write(header, 0, header.length, 0);
    const put = (at, values) => file.write(new Uint8Array(values.buffer), 0, values.byteLength, at);
    for (const [name, [width]] of kTensors.slice(0, 3)) await put(place(name), new Float32Array(width).fill(1));
    for (const id of kInputs) await put(place("token_embd.weight") + 4 * kWidth * id, row(id + 1));
    for (const id of kOutputs) await put(place("output.weight") + 4 * kWidth * id, row(id + 100001));
  } finally {
    await file.close();
  }
  assert.ok(place("token_embd.weight") + 4 * kWidth * kInputs[1] > 4 * kGiB, "a token's weights do not lie beyond 4 GiB");
  return size;
}

// Without weights between them, an output is the product of its row and the normalized row of the
// last token.
function wantedLogit(input, output) {
  const x = row(input + 1), w = row(output + 100001);
  const scale = 1 / Math.sqrt(x.reduce((sum, value) => sum + value * value, 0) / kWidth + kEpsilon);
  return x.reduce((sum, value, i) => sum + value * scale * w[i], 0);
}

async function holdsLogits(llm) {
  for (const input of kInputs) {
    const logits = await llm.logits([kInputs[0], input]);
    assert.equal(logits.length, kVocab);
    for (const output of kOutputs) {
      const wanted = wantedLogit(input, output);
      assert.ok(Math.abs(logits[output] - wanted) < 1e-4 * Math.max(1, Math.abs(wanted)),
        `token ${input}, logit ${output}: ${logits[output]}, wanted ${wanted}`);
    }
    assert.equal(logits.filter((value) => value !== 0).length, kOutputs.length);
  }
}

// ---- tests

const { memory64, relaxed } = package_.host(), wide = memory64 && relaxed;
const withEngine = async (options, body) => {
  const loom = await package_.init(options);
  try {
    await body(loom);
  } finally {
    loom.close();
  }
};
const cases = {
  "a model of 4.3 GiB is loaded where it was asked for, and one step is right": (path) =>
    withEngine({ memory64: true, threads: 1 }, async (loom) => {
      assert.equal(loom.info.variant, "memory64");
      assert.match(loom.info.notes.join(), /memory64: it was asked for/);
      const llm = await loom.load(path);
      await holdsLogits(llm);
      assert.ok((await loom.memory()).heap > 4 * kGiB);
    }),
  "an engine of 32 bits moves for it, and says why": (path) => withEngine({ threads: 2 }, async (loom) => {
    assert.doesNotMatch(loom.info.variant, /memory64/);
    const llm = await loom.load(path);
    assert.equal(loom.info.variant, "memory64-threads");
    assert.equal(loom.info.threads, 2);
    assert.match(loom.info.notes.join(), /large\.gguf: \d+ bytes are more than a module with addresses of 32 bits holds/);
    await holdsLogits(llm);
  }),
};
const refusals = {
  "objects of an engine of 32 bits are not ended for it": (path) => withEngine({ threads: 1 }, async (loom) => {
    const net = await loom.network([package_.layers.Dense(2, 1)], { input: 2 });
    await assert.rejects(() => loom.load(path), { code: "out_of_memory", message: /has other objects/ });
    assert.deepEqual((await net.predict(package_.tensor(Float32Array.of(0, 0), [1, 2]))).shape, [1, 1]);
  }),
};
const elsewhere = {
  "a host without memory64 refuses it, and says why": (path) => withEngine({ threads: 1, memory64: true }, async (loom) => {
    assert.match(loom.info.notes.join(), /addresses of 32 bits: this host has no/);
    await assert.rejects(() => loom.load(path), { code: "out_of_memory", message: /has no (memory64|relaxed SIMD)/ });
  }),
};

let passed = 0, failed = 0, skipped = 0;
const free = async () => {
  const told = await readFile("/proc/meminfo", "utf8").then((all) => /MemAvailable:\s+(\d+)/.exec(all)?.[1], () => undefined);
  return told === undefined ? freemem() : 1024 * Number(told);
};
const path = join(process.argv[2], "large.gguf");
try {
  await write(path);
  for (const [name, body] of Object.entries(wide ? { ...refusals, ...cases } : elsewhere)) {
    const available = await free();
    if (name in cases && available < kNeeded) {
      console.error(`skipped: ${name}: ${(available / kGiB).toFixed(1)} GiB of memory are free, and it takes ${kNeeded / kGiB}`);
      ++skipped;
      continue;
    }
    await body(path).then(() => ++passed, (error) => {
      ++failed;
      console.error(`${name}: ${error.stack}`);
    });
  }
} finally {
  await rm(path, { force: true });
}
console.log(`memory64: ${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

// Runs loom_gpu_conformance.wasm, the drivers of tests/conformance against the GPU of this host. It
// is a program of GoogleTest that suspends. `host` is a GpuHost of the package; write(text) gets
// the output as it comes. Returns the output, and the number of passed tests.
import { Exit, wasi } from "./wasi.mjs";

export async function runConformance(module, host, { args = [], environment = {}, write = () => {} } = {}) {
  const decoder = new TextDecoder();
  let text = "";
  const system = wasi({ args: ["conformance", ...args], environment, write: (_, bytes) => {
    const piece = decoder.decode(bytes, { stream: true });
    text += piece;
    write(piece);
  } });
  const instance = await WebAssembly.instantiate(module,
    { gpu: host.imports(), wasi_snapshot_preview1: system.functions });
  system.attach(instance.exports.memory);
  host.attach(instance.exports);
  instance.exports._initialize();
  try {
    await WebAssembly.promising(instance.exports.run)();
  } catch (error) {
    if (!(error instanceof Exit)) text += `\n1 FAILED TEST\n${error.stack ?? error}`;
  }
  const number = (pattern) => Number(pattern.exec(text)?.[1] ?? 0);
  return {
    text, passed: number(/\[ {2}PASSED {2}\] (\d+)/), failed: number(/(\d+) FAILED TEST/),
    skipped: number(/\[ {2}SKIPPED \] (\d+)/), sum: /^.*cases with floats.*$/m.exec(text)?.[0] ?? "",
  };
}

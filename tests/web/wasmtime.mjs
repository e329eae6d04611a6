// A child process that runs one program for WASI in Wasmtime (wasi_host.py), once per call of run().
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export function startWasmtime(python, file) {
  const child = spawn(python, [fileURLToPath(new URL("wasi_host.py", import.meta.url)), file],
    { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((_, reject) => {
    child.on("error", reject);
    child.on("exit", (status, signal) => reject(new Error(`wasi_host.py ended: exit status ${status}, signal ${signal}`)));
  });
  ended.catch(() => undefined);  // an unawaited end is not an error
  const replies = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async run(args) {
      child.stdin.write(`${JSON.stringify(args)}\n`);
      const { value, done } = await Promise.race([replies.next(), ended]);
      if (done) await ended;
      const { output, error } = JSON.parse(value);
      if (error !== undefined) throw new Error(`Wasmtime: ${args.join(" ")}: ${error}`);
      return output;
    },
    stop: () => child.stdin.end(),
  };
}

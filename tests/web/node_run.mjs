// Runs package.test.mjs of this folder, and sums up in the last line. That file describes
// LOOM_NATIVE and LOOM_TREE.
import { fileURLToPath } from "node:url";
import { run } from "node:test";

let passed = 0, failed = 0, skipped = 0;
const stream = run({ files: [fileURLToPath(new URL("package.test.mjs", import.meta.url))], concurrency: false });
// Cases have a parent, the variant that they run with; the variants themselves are not counted.
stream.on("test:pass", ({ nesting, skip }) => (nesting === 0 ? 0 : skip ? ++skipped : ++passed));
stream.on("test:fail", ({ nesting, name, details }) => {
  if (nesting > 0 || details.error?.failureType !== "subtestsFailed") {
    ++failed;
    console.error(`${name}: ${details.error?.cause?.stack ?? details.error}`);
  }
});
stream.on("test:stderr", ({ message }) => process.stderr.write(message));
stream.on("end", () => {
  console.log(`package: ${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
});
stream.resume();

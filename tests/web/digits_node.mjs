// Compares decimals of a module with exact ones of integers.
//   node tests/web/digits_node.mjs loom_digits.wasm
import { readFileSync } from "node:fs";

import { run } from "./wasi.mjs";

// The value of those bits as a fraction of integers.
function fraction(bits) {
  const exponent = Number(bits >> 52n & 2047n), low = bits & (1n << 52n) - 1n;
  const mantissa = exponent === 0 ? low : low | 1n << 52n, power = BigInt(Math.max(exponent, 1) - 1075);
  return power >= 0n ? [mantissa << power, 1n] : [mantissa, 1n << -power];
}

// The nearest integer, ties to even.
function rounded(above, below) {
  const floor = above / below, twice = 2n * (above % below);
  return twice > below || (twice === below && floor % 2n === 1n) ? floor + 1n : floor;
}

function fixed([above, below], digits) {
  const all = String(rounded(above * 10n ** BigInt(digits), below)).padStart(digits + 1, "0"), point = all.length - digits;
  return digits === 0 ? all : `${all.slice(0, point)}.${all.slice(point)}`;
}

function scientific([above, below], digits) {
  // The power of ten of the first digit: about, then exactly.
  let power = above === 0n ? 0 : String(above).length - String(below).length;
  const scaled = () => (power > digits ? rounded(above, below * 10n ** BigInt(power - digits))
    : rounded(above * 10n ** BigInt(digits - power), below));
  if (above !== 0n && (power >= 0 ? above < below * 10n ** BigInt(power) : above * 10n ** BigInt(-power) < below)) --power;
  if (String(scaled()).length > digits + 1) ++power;  // 9.99 became 10.0
  const all = String(scaled()).padStart(digits + 1, "0");
  const sign = power < 0 ? "-" : "+", exponent = String(Math.abs(power)).padStart(2, "0");
  return `${all[0]}${digits > 0 ? "." : ""}${all.slice(1)}e${sign}${exponent}`;
}

const module = await WebAssembly.compile(readFileSync(process.argv[2]));
let passed = 0, failed = 0;
for (const line of (await run(module, [])).trim().split("\n")) {
  const [hex, count, asFixed, asScientific, shortest, float] = line.split(" "), bits = BigInt(`0x${hex}`), digits = Number(count);
  const sign = bits >> 63n === 1n ? "-" : "", value = fraction(bits & (1n << 63n) - 1n);
  const wanted = [sign + fixed(value, digits), sign + scientific(value, digits)];
  const back = new DataView(new ArrayBuffer(8));
  back.setFloat64(0, Number(shortest));
  // Beyond the largest float it is infinity, which has no digits.
  const narrow = Math.fround(Number(shortest)), same = Object.is(Math.fround(Number(float.replace("inf", "Infinity"))), narrow);
  if (asFixed === wanted[0] && asScientific === wanted[1] && back.getBigUint64(0) === bits && same) ++passed;
  else if (++failed <= 5) console.error(`${hex} with ${digits} digits: ${asFixed} ${asScientific} ${shortest} ${float}, wanted ${wanted.join(" ")}`);
}
console.log(`digits: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

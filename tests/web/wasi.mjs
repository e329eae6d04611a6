// The part of WASI (preview 1) that a module of Loom needs, for any host: arguments, variables,
// output, a clock. No files.
const kSuccess = 0, kBadDescriptor = 8, kNotSupported = 58;

export class Exit extends Error {
  constructor(code) {
    super(`the program ended with ${code}`);
    this.code = code;
  }
}

// `write(descriptor, bytes)` gets the output of the module.
export function wasi({ args = [], environment = {}, write = () => {} } = {}) {
  let memory = null;
  let width = 4;  // bytes of an address
  const view = () => new DataView(memory.buffer);
  const put = (at, value) => (width === 8 ? view().setBigUint64(at, BigInt(value), true) : view().setUint32(at, value, true));
  const take = (at) => (width === 8 ? Number(view().getBigUint64(at, true)) : view().getUint32(at, true));
  const bytes = (at, size) => new Uint8Array(memory.buffer, at, size);
  const encoded = (list) => list.map((text) => new TextEncoder().encode(`${text}\0`));
  const texts = encoded(args), variables = encoded(Object.entries(environment).map(([name, value]) => `${name}=${value}`));
  const sizes = (list) => (count, size) => {
    put(count, list.length);
    put(size, list.reduce((sum, text) => sum + text.length, 0));
    return kSuccess;
  };
  const written = (list) => (places, at) => {
    for (const text of list) {
      put(places, at);
      bytes(at, text.length).set(text);
      places += width;
      at += text.length;
    }
    return kSuccess;
  };
  const functions = {
    args_sizes_get: sizes(texts),
    args_get: written(texts),
    environ_sizes_get: sizes(variables),
    environ_get: written(variables),
    clock_time_get(clock, precision, out) {
      const now = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(out, BigInt(Math.round(now * 1e6)), true);
      return kSuccess;
    },
    fd_write(descriptor, pieces, count, written) {
      let size = 0;
      for (let i = 0; i < count; ++i) {
        const piece = pieces + 2 * width * i, length = take(piece + width);
        write(descriptor, bytes(take(piece), length).slice());
        size += length;
      }
      put(written, size);
      return kSuccess;
    },
    fd_close: () => kSuccess,
    fd_seek: () => kNotSupported,
    fd_fdstat_get(descriptor, out) {
      if (descriptor > 2) return kBadDescriptor;
      bytes(out, 24).fill(0);
      view().setUint8(out, 2);  // a character device
      return kSuccess;
    },
    fd_prestat_get: () => kBadDescriptor,
    fd_prestat_dir_name: () => kBadDescriptor,
    random_get(at, size) {
      for (let i = 0; i < size; i += 65536) crypto.getRandomValues(bytes(at + i, Math.min(65536, size - i)));
      return kSuccess;
    },
    sched_yield: () => kSuccess,
    proc_exit(code) {
      throw new Exit(code);
    },
  };
  // All other functions of the C library exist and refuse. 64-bit addresses and the precision of a
  // clock are bigints.
  const numbers = (body) => (...args) => body(...args.map((value) => (typeof value === "bigint" ? Number(value) : value)));
  const all = new Proxy(functions, { get: (target, name) => numbers(target[name] ?? (() => kNotSupported)) });
  const attach = (to, wide = false) => {
    memory = to;
    width = wide ? 8 : 4;
  };
  return { functions: all, attach };
}

// True if a memory has 64-bit addresses: it then grows only by bigints.
function isWide(memory) {
  try {
    memory.grow(0);
    return false;
  } catch {
    return true;
  }
}

// Runs a program (a module with _start) and returns its output. Throws Exit if it fails.
export async function run(module, args, imports = {}) {
  const chunks = [], errors = [];
  const host = wasi({ args: ["loom", ...args], write: (to, data) => (to === 2 ? errors : chunks).push(data) });
  const named = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    named[from] ??= {};
    named[from][name] = from === "wasi_snapshot_preview1" ? host.functions[name] : imports[from]?.[name];
  }
  const instance = await WebAssembly.instantiate(module, named);
  host.attach(instance.exports.memory, isWide(instance.exports.memory));
  const text = (parts) => parts.map((part) => new TextDecoder().decode(part)).join("");
  try {
    instance.exports._start();
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    if (error.code !== 0) throw new Error(text(errors) || error.message);
  }
  return text(chunks);
}

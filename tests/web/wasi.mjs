// As much of WASI (preview 1) as a module of Loom asks for, for any host: arguments, variables, output, a clock. No files.
const kSuccess = 0, kBadDescriptor = 8, kNotSupported = 58;

export class Exit extends Error {
  constructor(code) {
    super(`the program ended with ${code}`);
    this.code = code;
  }
}

// `write(descriptor, bytes)` gets what the module prints.
export function wasi({ args = [], environment = {}, write = () => {} } = {}) {
  let memory = null;
  const view = () => new DataView(memory.buffer);
  const bytes = (at, size) => new Uint8Array(memory.buffer, at, size);
  const encoded = (list) => list.map((text) => new TextEncoder().encode(`${text}\0`));
  const texts = encoded(args), variables = encoded(Object.entries(environment).map(([name, value]) => `${name}=${value}`));
  const sizes = (list) => (count, size) => {
    view().setUint32(count, list.length, true);
    view().setUint32(size, list.reduce((sum, text) => sum + text.length, 0), true);
    return kSuccess;
  };
  const written = (list) => (places, at) => {
    for (const text of list) {
      view().setUint32(places, at, true);
      bytes(at, text.length).set(text);
      places += 4;
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
        const length = view().getUint32(pieces + 8 * i + 4, true);
        write(descriptor, bytes(view().getUint32(pieces + 8 * i, true), length).slice());
        size += length;
      }
      view().setUint32(written, size, true);
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
  // What else the C library names is there, and refuses.
  const all = new Proxy(functions, { get: (target, name) => target[name] ?? (() => kNotSupported) });
  return { functions: all, attach: (to) => (memory = to) };
}

// Runs a program (a module with _start) and returns what it printed. Throws Exit where it fails.
export async function run(module, args, imports = {}) {
  const chunks = [], errors = [];
  const host = wasi({ args: ["loom", ...args], write: (to, data) => (to === 2 ? errors : chunks).push(data) });
  const named = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    named[from] ??= {};
    named[from][name] = from === "wasi_snapshot_preview1" ? host.functions[name] : imports[from]?.[name];
  }
  const instance = await WebAssembly.instantiate(module, named);
  host.attach(instance.exports.memory);
  const text = (parts) => parts.map((part) => new TextDecoder().decode(part)).join("");
  try {
    instance.exports._start();
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    if (error.code !== 0) throw new Error(text(errors) || error.message);
  }
  return text(chunks);
}

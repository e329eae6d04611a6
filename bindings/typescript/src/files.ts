/** Files for a module: read from an address, a File, a path or bytes into its memory, a piece at a time. */

import { LoomError } from "./errors.js";
import type { Memory } from "./memory.js";

/** The sources that load() takes. Strings are addresses in a page, and addresses or paths in Node.js. */
export type Source = string | URL | Blob | ArrayBuffer | Uint8Array | FileSystemFileHandle;

export interface Opened {
  readonly name: string;
  readonly size: number;
  /** Pieces in order. */
  pieces(): AsyncIterable<Uint8Array>;
}

export interface Reading {
  /** false: ends with code "cancelled". */
  readonly progress: (done: number, total: number) => boolean;
  readonly cache: boolean;
}

function bytesOf(source: ArrayBuffer | Uint8Array): Uint8Array {
  return source instanceof Uint8Array ? source : new Uint8Array(source);
}

async function* fromStream(stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function* only(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

function ofBlob(blob: Blob, name: string): Opened {
  return { name, size: blob.size, pieces: () => fromStream(blob.stream()) };
}

async function ofUrl(url: URL, reading: Reading): Promise<Opened> {
  const { openCached } = await import("./cache.js");
  if (reading.cache) {
    const cached = await openCached(url, reading.progress);
    if (cached !== null) return cached;
  }
  let response: Response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw new LoomError("io_error", `${url.href}: ${(error as Error).message}; is the server there?`);
  }
  if (!response.ok || response.body === null) {
    const code = response.status === 404 ? "not_found" : "io_error";
    throw new LoomError(code, `${url.href}: the server answers ${response.status} ${response.statusText}`);
  }
  const length = Number(response.headers.get("content-length") ?? 0);
  const packed = response.headers.get("content-encoding");
  if (length > 0 && (packed === null || packed === "identity")) {
    return { name: url.pathname, size: length, pieces: () => fromStream(response.body as ReadableStream<Uint8Array>) };
  }
  // Its size is known when it is here.
  return ofBlob(await response.blob(), url.pathname);
}

/** Opens a source. `readPath`: how this host opens paths; null: it has none. */
export async function open(source: Source, reading: Reading,
  readPath: ((path: string) => Promise<Opened>) | null): Promise<Opened> {
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) {
    const bytes = bytesOf(source);
    return { name: "the bytes", size: bytes.byteLength, pieces: () => only(bytes) };
  }
  if (source instanceof Blob) return ofBlob(source, (source as File).name ?? "the file");
  if (typeof source === "object" && "getFile" in source) return ofBlob(await source.getFile(), source.name);
  const text = String(source);
  if (readPath !== null && (!/^[a-z][a-z0-9+.-]+:/i.test(text) || text.startsWith("file:"))) return readPath(text);
  const base = (globalThis as { location?: { href: string } }).location?.href;
  return ofUrl(new URL(text, base), reading);
}

/** Copies a source into the memory of a module; the address is the caller's to free. */
export async function readInto(memory: Memory, source: Opened, reading: Reading): Promise<number> {
  const address = memory.allocate(source.size);
  let done = 0;
  try {
    for await (const piece of source.pieces()) {
      if (done + piece.byteLength > source.size) {
        throw new LoomError("io_error", `${source.name}: longer than the ${source.size} bytes that it said`);
      }
      memory.bytes(address + done, piece.byteLength).set(piece);
      done += piece.byteLength;
      if (!reading.progress(done, source.size)) throw new LoomError("cancelled", `${source.name}: reading was cancelled`);
    }
    if (done < source.size) {
      throw new LoomError("io_error", `${source.name}: ended after ${done} of ${source.size} bytes; try again`);
    }
    return address;
  } catch (error) {
    memory.free(address);
    throw error;
  }
}

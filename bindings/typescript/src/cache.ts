/** Files of servers in the origin's own file system (OPFS), brought by ranges, so that what broke off goes on. */

import { LoomError } from "./errors.js";
import type { Opened } from "./files.js";

/** Only workers have it, so the types of pages lack it. */
interface SyncAccess {
  getSize(): number;
  truncate(size: number): void;
  write(bytes: Uint8Array, options: { at: number }): number;
  flush(): void;
  close(): void;
}

function access(handle: FileSystemFileHandle): Promise<SyncAccess> {
  return (handle as unknown as { createSyncAccessHandle(): Promise<SyncAccess> }).createSyncAccessHandle();
}

const kFolder = "loom-cache-1";
const kPiece = 1 << 20;

interface Note {
  readonly url: string;
  readonly size: number;
  /** The server's name for this version of the file. */
  readonly version: string;
}

async function folder(): Promise<FileSystemDirectoryHandle | null> {
  try {
    const root = await navigator.storage.getDirectory();
    return await root.getDirectoryHandle(kFolder, { create: true });
  } catch {
    return null;  // no such file system here
  }
}

async function keyOf(url: URL): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(url.href));
  return Array.from(new Uint8Array(digest).slice(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Size and version of a file that its server hands out in ranges; null: it does not. */
async function ask(url: URL): Promise<Note | null> {
  const response = await fetch(url, { headers: { Range: "bytes=0-0" } });
  await response.body?.cancel();
  const total = /\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1];
  if (response.status !== 206 || total === undefined) return null;
  const version = response.headers.get("etag") ?? response.headers.get("last-modified") ?? "";
  return { url: url.href, size: Number(total), version };
}

async function readNote(files: FileSystemDirectoryHandle, key: string): Promise<Note | null> {
  try {
    return JSON.parse(await (await (await files.getFileHandle(`${key}.json`)).getFile()).text()) as Note;
  } catch {
    return null;
  }
}

async function writeNote(files: FileSystemDirectoryHandle, key: string, note: Note): Promise<void> {
  const file = await access(await files.getFileHandle(`${key}.json`, { create: true }));
  const bytes = new TextEncoder().encode(JSON.stringify(note));
  file.truncate(0);
  file.write(bytes, { at: 0 });
  file.close();
}

/** Brings what of the file is not there yet. */
async function bring(url: URL, note: Note, handle: FileSystemFileHandle,
  progress: (done: number, total: number) => boolean): Promise<void> {
  const file = await access(handle);
  try {
    for (let at = Math.min(file.getSize(), note.size); at < note.size;) {
      const last = Math.min(at + kPiece, note.size) - 1;
      const headers: Record<string, string> = { Range: `bytes=${at}-${last}` };
      if (note.version !== "") headers["If-Range"] = note.version;
      const response = await fetch(url, { headers });
      const piece = new Uint8Array(await response.arrayBuffer());
      if (response.status !== 206 || piece.length !== last - at + 1) {
        throw new LoomError("io_error", `${url.href}: changed while it was read, or broke off at byte ${at}; try again`);
      }
      file.write(piece, { at });
      at += piece.length;
      if (!progress(at, note.size)) throw new LoomError("cancelled", `${url.href}: reading was cancelled`);
    }
    file.flush();
  } finally {
    file.close();
  }
}

/** The file of this address, from the cache or brought into it. null: no cache here, or a server without ranges, or
 * no room; then it is read without one. */
export async function openCached(url: URL, progress: (done: number, total: number) => boolean): Promise<Opened | null> {
  const files = await folder();
  if (files === null || typeof FileSystemFileHandle === "undefined" ||
    !("createSyncAccessHandle" in FileSystemFileHandle.prototype)) return null;
  const key = await keyOf(url);
  const known = await readNote(files, key);
  let note: Note | null;
  try {
    note = await ask(url);
  } catch {
    note = known;  // no network: what is there, if all of it is
  }
  if (note === null) return null;
  if (known !== null && (known.size !== note.size || known.version !== note.version)) {
    await files.removeEntry(key).catch(() => undefined);
  }
  try {
    await writeNote(files, key, note);
    const handle = await files.getFileHandle(key, { create: true });
    await bring(url, note, handle, progress);
    const file = await handle.getFile();
    return { name: url.pathname, size: file.size, pieces: () => pieces(file) };
  } catch (error) {
    if (error instanceof DOMException && error.name === "QuotaExceededError") {
      await files.removeEntry(key).catch(() => undefined);
      return null;
    }
    throw error;
  }
}

async function* pieces(file: File): AsyncIterable<Uint8Array> {
  for (let at = 0; at < file.size; at += kPiece) {
    yield new Uint8Array(await file.slice(at, at + kPiece).arrayBuffer());
  }
}

/** Removes everything that load() with `cache` has kept in this origin. */
export async function clearCache(): Promise<void> {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry(kFolder, { recursive: true }).catch(() => undefined);
}

import { Status } from "./ffi.js";

/** How a call failed. `lost`: the engine was closed, or ended by a failure before. */
export type ErrorCode = Exclude<Status, "ok"> | "lost";

/** Every failure of the package: one line that says what, where, and what to do. */
export class LoomError extends Error {
  override readonly name = "LoomError";
  constructor(readonly code: ErrorCode, message: string) {
    super(message);
  }
}

const names = Object.keys(Status) as Status[];

/** The word of a number of loom_status. */
export function statusName(status: number): ErrorCode {
  const name = names[status];
  return name === undefined || name === "ok" ? "internal" : name;
}

/** An error that came over a port as plain data. */
export function revived(error: { code?: unknown; message: string }): LoomError {
  return new LoomError((error.code as ErrorCode | undefined) ?? "internal", error.message);
}

/** The names of the original project, in Node.js. See compat_core.ts. */

import { start, type Compat } from "./compat_core.js";
import { compile } from "./modules_node.js";

export * from "./compat_core.js";

/** Makes an engine on this thread; what it gives answers at once. */
export function init(): Promise<Compat> {
  return start(compile);
}

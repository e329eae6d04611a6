// A server of static files for the tests: folders of the repository under names, ranges, and the
// headers that isolate a page. Counts its requests.
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css",
  ".wasm": "application/wasm", ".json": "application/json", ".svg": "image/svg+xml" };

// roots: { "/name/": folder }; isolated: pages may share memory, which a request can change
// (?alone).
export async function serveFiles(roots, { isolated = true } = {}) {
  const asked = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    const root = Object.keys(roots).filter((name) => url.pathname.startsWith(name)).sort((a, b) => b.length - a.length)[0];
    const inside = root === undefined ? ".." : normalize(decodeURIComponent(url.pathname.slice(root.length)) || "index.html");
    let size = -1, file = "";
    if (!inside.startsWith("..")) {
      file = join(roots[root], inside);
      try { size = statSync(file).isFile() ? statSync(file).size : -1; } catch { size = -1; }
    }
    const headers = { "Cache-Control": "no-store", "Content-Type": types[extname(file)] ?? "application/octet-stream" };
    if (isolated && !url.searchParams.has("alone")) {
      headers["Cross-Origin-Opener-Policy"] = "same-origin";
      headers["Cross-Origin-Embedder-Policy"] = "require-corp";
    }
    if (size < 0) {
      response.writeHead(404, headers).end();
      return;
    }
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
    asked.push({ path: url.pathname, range: range === null ? null : [Number(range[1]), Number(range[2])] });
    headers.ETag = `"${size}"`;
    if (range === null) {
      response.writeHead(200, { ...headers, "Content-Length": size });
      createReadStream(file).pipe(response);
      return;
    }
    const first = Number(range[1]), last = Math.min(Number(range[2]), size - 1);
    response.writeHead(206, { ...headers, "Content-Length": last - first + 1, "Content-Range": `bytes ${first}-${last}/${size}` });
    createReadStream(file, { start: first, end: last }).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}`, asked, stop: () => server.close() };
}

// The site is static: any server of files will do. One that sends these two headers gives it threads.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default {
  base: "./",
  build: { target: "es2022", chunkSizeWarningLimit: 900 },
  worker: { format: "es" },
  server: { headers },
  preview: { headers },
};

// The page of tests/web names the package by the address that browser_test.mjs serves it at; an app, as npm does.
export default {
  base: "./",
  build: { target: "es2022", chunkSizeWarningLimit: 900 },
  worker: { format: "es" },
  resolve: {
    alias: {
      "/package/dist/index.js": "@loom-engine/loom",
      "/package/dist/compat.js": "@loom-engine/loom/compat",
    },
  },
};

import { defineConfig } from "vite";

export default defineConfig({
  base: "/console/",
  // One folder, since the paths of files below /console have but one part.
  build: {
    outDir: "../functions/serve-console/built",
    assetsDir: "",
    emptyOutDir: false,
    target: "es2023",
    modulePreload: { polyfill: false },
    // A data: address would be one more thing that the policy must allow.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: { proxy: { "^/(v0|api)/": process.env.WAYMARK_BASE_URL ?? "http://127.0.0.1:9000" } },
});

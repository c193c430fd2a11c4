import { defineConfig } from "vite";

export default defineConfig({
  base: "/console/",
  // A single folder: file paths below /console have one segment.
  build: {
    outDir: "../functions/serve-console/built",
    assetsDir: "",
    emptyOutDir: false,
    target: "es2023",
    modulePreload: { polyfill: false },
    // The content security policy does not allow data: URLs.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: { proxy: { "^/(v0|api)/": process.env.WAYMARK_BASE_URL ?? "http://127.0.0.1:9000" } },
});

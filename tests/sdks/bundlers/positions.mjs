// Bundles five npm packages with source maps, and writes for each NAME.map, and NAME.jsonl with random
// positions and the answers of @jridgewell/trace-mapping: [line, column, source, line, column], from 0.
// The last three are null if there is no source: node positions.mjs FOLDER COUNT SEED
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TraceMap, decodedMappings, originalPositionFor } from "@jridgewell/trace-mapping";
import { build } from "esbuild";

const [, , folder, count, seed] = process.argv;
const packages = {
  "react-dom": 'export * from "react-dom/client";',
  three: 'export * from "three";',
  "lodash-es": 'export * from "lodash-es";',
  sentry: 'export * from "@sentry/browser";',
  acorn: 'export * from "acorn";',
};

// A linear congruential generator: the same seed gives the same positions.
let state = BigInt(seed) * 2n + 1n;
const random = (limit) => {
  state = (state * 6364136223846793005n + 1442695040888963407n) % 2n ** 64n;
  return Number((state >> 33n) % BigInt(limit));
};

for (const [name, contents] of Object.entries(packages)) {
  const outfile = join(folder, `${name}.js`);
  const stdin = { contents, resolveDir: import.meta.dirname };
  // Two packages are not minified: they have many lines.
  const minify = name !== "three" && name !== "acorn";
  await build({ stdin, outfile, bundle: true, minify, format: "esm", sourcemap: true, logLevel: "error" });
  const map = new TraceMap(readFileSync(`${outfile}.map`, "utf8"));
  const lines = decodedMappings(map);
  const mapped = lines.flatMap((segments, line) => (segments.length > 0 ? [line] : []));
  const rows = Array.from({ length: Number(count) }, () => {
    // Few lines of inlined workers and licenses have mappings.
    const line = random(20) === 0 ? random(lines.length) : mapped[random(mapped.length)];
    const last = lines[line].at(-1)?.[0] ?? 0;
    const column = random(last + 20);
    const found = originalPositionFor(map, { line: line + 1, column });
    const at = found.source === null ? [null, null, null] : [found.source, found.line - 1, found.column];
    return JSON.stringify([line, column, ...at]);
  });
  writeFileSync(join(folder, `${name}.jsonl`), rows.join("\n"));
}

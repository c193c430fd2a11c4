// Compresses the files of the last build in functions/serve-console/built and removes older ones.
// Fails if the scripts and styles exceed the size budget.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** Maximum bytes of scripts and styles in gzip. */
const BUDGET = 130_000;
const built = join(dirname(fileURLToPath(import.meta.url)), "../../functions/serve-console/built");
const names = readdirSync(built).filter((name) => !name.startsWith("."));
const page = readFileSync(join(built, "index.html"), "utf8");

// Files that the document does not name are from earlier builds.
const isNeeded = (name) => name === "index.html" || page.includes(`/${name}`);
for (const name of names.filter((name) => !isNeeded(name)))
  rmSync(join(built, name), { recursive: true });

let total = 0;
for (const name of names.filter(isNeeded)) {
  const content = readFileSync(join(built, name));
  const gzip = gzipSync(content, { level: 9 });
  writeFileSync(join(built, `${name}.gz`), gzip);
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(join(built, `${name}.br`), brotliCompressSync(content, { params }));
  if (/\.(js|css)$/.test(name)) total += gzip.length;
}
console.log(`Console: ${total} of ${BUDGET} bytes of scripts and styles in gzip.`);
if (total > BUDGET) process.exit(1);

// Leaves in functions/serve-console/built what the last build made, each file beside its compressed forms, and says how much
// that is. Fails if it is more than a visitor should have to wait for.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const BUDGET = 120_000;
const built = join(dirname(fileURLToPath(import.meta.url)), "../../functions/serve-console/built");
const names = readdirSync(built).filter((name) => !name.startsWith("."));
const page = readFileSync(join(built, "index.html"), "utf8");

// The document names what it needs; all else is of earlier builds.
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
console.log(`The console: ${total} bytes of scripts and styles in gzip, of ${BUDGET} at most.`);
if (total > BUDGET) process.exit(1);

// Builds a shop twice with each bundler, minified and with Sentry's plugin unmodified, which uploads the
// source maps. Then visits each build in a headless browser, where an error is reported:
// node build_and_visit.mjs CHROMIUM
//
// The plugins read SENTRY_URL, SENTRY_ORG, SENTRY_PROJECT and SENTRY_AUTH_TOKEN. SENTRY_DSN is the
// destination of the SDK. Prints the outcome of each visit as JSON.
import { cp, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { sentryEsbuildPlugin } from "@sentry/esbuild-plugin";
import { sentryVitePlugin } from "@sentry/vite-plugin";
import { sentryWebpackPlugin } from "@sentry/webpack-plugin";
import { build as esbuild } from "esbuild";
import puppeteer from "puppeteer-core";
import { build as vite } from "vite";
import webpack from "webpack";

const here = fileURLToPath(new URL(".", import.meta.url));
const failures = [];
const plugin = (release) => ({
  release: { name: release },
  telemetry: false,
  errorHandler: (error) => failures.push(String(error)),
});

const bundlers = {
  vite: async (folder, release) => {
    await writeFile(join(folder, "index.html"), '<script type="module" src="/main.js"></script>');
    await vite({
      root: folder, logLevel: "error", configFile: false,
      build: { sourcemap: true, outDir: join(folder, "dist") },
      plugins: [sentryVitePlugin(plugin(release))],
    });
  },
  webpack: (folder, release) => new Promise((done, fail) => {
    webpack({
      mode: "production", context: folder, entry: "./main.js", devtool: "source-map",
      output: { path: join(folder, "dist"), filename: "[name].[contenthash].js" },
      plugins: [sentryWebpackPlugin(plugin(release))],
    }, (error, stats) => (error ?? stats.hasErrors() ? fail(error ?? stats.toString()) : done()));
  }),
  esbuild: async (folder, release) => {
    // The plugin resolves outputs from the process's folder.
    process.chdir(folder);
    await esbuild({
      absWorkingDir: folder, entryPoints: ["main.js"], bundle: true, minify: true, sourcemap: true,
      outdir: join(folder, "dist"), logLevel: "error",
      plugins: [sentryEsbuildPlugin(plugin(release))],
    });
    process.chdir(here);
  },
};

// Another build has other code in front, so that names, lines and columns differ.
const warehouse = (build) => {
  const shelf = (number) => `function shelf${number}(goods) { return goods.filter((it) => it > ${number}); }`;
  const shelves = Array.from({ length: 1 + 40 * build }, (_, number) => number);
  return `${shelves.map(shelf).join("\n")}
export const warehouse = () => [${shelves.map((number) => `shelf${number}`).join(", ")}].map((it) => it([${build}]));`;
};

const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath: process.argv[2], args });
const visits = [];
try {
  for (const [bundler, build] of Object.entries(bundlers)) {
    for (const number of [0, 1]) {
      const release = `${bundler}@${number}`;
      const folder = await mkdtemp(join(tmpdir(), "waymark-bundlers-"));
      try {
        await cp(join(here, "shop"), folder, { recursive: true });
        await writeFile(join(folder, "warehouse.js"), warehouse(number));
        await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
        const { symlink } = await import("node:fs/promises");
        await symlink(resolve(here, "node_modules"), join(folder, "node_modules"));
        await build(folder, release);
        visits.push({ release, ...await visit(join(folder, "dist"), release) });
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    }
  }
  console.log(JSON.stringify({ visits, failures }));
} finally {
  await browser.close();
}

async function visit(dist, release) {
  const names = await readdir(dist, { recursive: true });
  const script = names.find((name) => name.endsWith(".js"));
  const page = `<!doctype html><link rel="icon" href="data:,"><script>
    window.dsn = ${JSON.stringify(process.env.SENTRY_DSN)}; window.release = ${JSON.stringify(release)};
    </script><script type="module" src="/${script}"></script>`;
  const content = await readFile(join(dist, script));
  const server = createServer(({ url }, response) => {
    const [type, body] = url === "/" ? ["text/html", page] : ["text/javascript", content];
    response.writeHead(200, { "content-type": type }).end(body);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const tab = await browser.newPage();
  try {
    await tab.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "load" });
    await tab.waitForFunction(() => window.report !== undefined);
    return { script, sent: await tab.evaluate(() => window.report()) };
  } finally {
    await tab.close();
    server.close();
  }
}

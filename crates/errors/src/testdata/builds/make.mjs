// Bundles every build of the application with every bundler, triggers its bugs, and writes the
// frames that @sentry/browser reads from their stacks to frames.json.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defaultStackParser } from '@sentry/browser';
import * as esbuild from 'esbuild';
import { rolldown } from 'rolldown';
import TerserPlugin from 'terser-webpack-plugin';
import { build as vite } from 'vite';
import webpack from 'webpack';
import { ROUTES, sources } from './app.mjs';

const BUILDS = 20;
const WORK = join(import.meta.dirname, '.work');
const HOST = 'https://shop.example.com';

const packed = (terserOptions) => (entry, out) => new Promise((resolve, reject) => {
  const optimization = { minimize: true, minimizer: [new TerserPlugin({ terserOptions, parallel: false })] };
  const output = { path: out, filename: 'main.[contenthash].js' };
  const config = { mode: 'production', target: 'web', entry, output, optimization };
  webpack(config, (error, stats) => error || stats.hasErrors() ? reject(error ?? stats.toString()) : resolve());
});
const withEsbuild = (options) => (entry, out) => esbuild.build({
  entryPoints: [entry], outdir: out, bundle: true, minify: true, entryNames: '[name]-[hash]', logLevel: 'error', ...options,
});
const BUNDLERS = {
  'esbuild': withEsbuild({ format: 'iife' }),
  'esbuild-keep-names': withEsbuild({ format: 'iife', keepNames: true }),
  'esbuild-plain': withEsbuild({ format: 'iife', minify: false }),
  'vite': (entry, out) => vite({
    root: join(entry, '..'), logLevel: 'error', configFile: false,
    build: { outDir: out, minify: 'esbuild', rollupOptions: { input: entry } },
  }),
  'vite-terser': (entry, out) => vite({
    root: join(entry, '..'), logLevel: 'error', configFile: false,
    build: { outDir: out, minify: 'terser', rollupOptions: { input: entry } },
  }),
  'rolldown': async (entry, out) => {
    const bundle = await rolldown({ input: entry, logLevel: 'silent' });
    await bundle.write({ dir: out, minify: true, entryFileNames: 'assets/[name]-[hash].js' });
  },
  'webpack': packed({}),
  'webpack-two-passes': packed({ compress: { passes: 2 }, mangle: { toplevel: true } }),
};

function scripts(folder) {
  return readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.js')).map((name) => join(folder, name));
}

// Returns the data that the SDK sends for an error: only the bundle's frames, the one that threw at
// the end. Calls from here have no name, like a listener or a route's function.
function reported(error, out) {
  const root = pathToFileURL(out).href;
  const frames = defaultStackParser(error.stack, 0).filter((frame) => frame.filename?.startsWith(root));
  return {
    type: error.name,
    value: error.message,
    frames: frames.map((frame, index) => [index === 0 ? '?' : frame.function, HOST + frame.filename.slice(root.length)]),
  };
}

Error.stackTraceLimit = 50;
console.debug = () => {};
const written = {};
for (const [bundler, bundle] of Object.entries(BUNDLERS)) {
  const builds = [];
  for (let build = 0; build < BUILDS; build += 1) {
    rmSync(WORK, { recursive: true, force: true });
    const source = join(WORK, 'src');
    mkdirSync(source, { recursive: true });
    for (const [name, code] of Object.entries(sources(build))) writeFileSync(join(source, name), code);
    const out = join(WORK, 'dist', `${bundler}-${build}`);
    await bundle(join(source, 'main.js'), out);
    for (const script of scripts(out)) await import(pathToFileURL(script).href);
    const bugs = {};
    for (const route of ROUTES) {
      try {
        globalThis.shop[route](build);
        throw new Error(`${bundler}: ${route} has no bug`);
      } catch (error) {
        bugs[route] = reported(error, out);
      }
    }
    builds.push(bugs);
  }
  written[bundler] = builds;
  console.log(bundler);
}
rmSync(WORK, { recursive: true, force: true });
const lines = Object.entries(written).map(([bundler, builds]) =>
  `${JSON.stringify(bundler)}: [\n${builds.map((build) => JSON.stringify(build)).join(',\n')}\n]`);
writeFileSync(join(import.meta.dirname, 'frames.json'), `{\n${lines.join(',\n')}\n}\n`);

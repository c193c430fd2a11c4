// Tests the console by mouse and keyboard, and checks the results with the API.
//
// Usage: node run.mjs BASE_URL CHROMIUM PROJECT KEY READ_ONLY_KEY FOREIGN_KEY STORE_PATH OTHER_PROJECT
// OTHER_STORE_PATH LINK_CODE OWNER_TOKEN. LINK_CODE is the code of a link with READ_ONLY_KEY. OWNER_TOKEN is
// the token of a sign-in link for owner@example.com; without it, the tests of people do not run.
//
// ADMIN_KEY is a key with all scopes. ONLY is a pattern that selects tests by name. MEASURE=1 runs the
// performance tests, which need an idle machine; without it the others run. KEYS_ONLY=1 runs those of a
// deployment without email and single sign-on. RELEASE=1 checks the times of
// pages, too: the functions are a release build.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";
import { derived } from "./cases/derived.mjs";
import { edits } from "./cases/edits.mjs";
import { errors } from "./cases/errors.mjs";
import { flags } from "./cases/flags.mjs";
import { frame } from "./cases/frame.mjs";
import { hostile } from "./cases/hostile.mjs";
import { kept } from "./cases/kept.mjs";
import { keys } from "./cases/keys.mjs";
import { others } from "./cases/others.mjs";
import { tags } from "./cases/tags.mjs";
import { tasks } from "./cases/tasks.mjs";
import { people } from "./cases/people.mjs";
import { Api, fill, fillOther } from "./data.mjs";
import { VIEWPORT } from "./visitor.mjs";

const [base, executablePath, project, key, readOnlyKey, foreignKey, store, other, otherStore, linkCode, ownerToken] = process.argv.slice(2);
const api = new Api(base, key, store);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// Chromium's sandbox needs privileges that containers lack. Animations take CPU time.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-prefers-reduced-motion"];
const [known, browser] = await Promise.all([
  fill(api, project),
  puppeteer.launch({ executablePath, args, defaultViewport: VIEWPORT }),
  fillOther(new Api(base, key, otherStore)),
]);
const listErrors = async () => (await api.send("GET", `/v0/projects/${project}/errors?limit=100`)).items;
const measured = {};
const adminKey = process.env.ADMIN_KEY;
const context = { browser, base, project, other, key, adminKey, readOnlyKey, foreignKey, linkCode, ownerToken, api, known, axe, measured, listErrors };
const { performance: frameTimes, ...frameTests } = frame(context);
const { performance: errorTimes, ...errorTests } = errors(context);

let failed = 0;
const only = process.env.ONLY;

/** Runs tests one after the other. */
async function runAll(tests) {
  for (const [name, test] of Object.entries(tests)) {
    if (only && !new RegExp(only).test(name)) continue;
    const started = performance.now();
    try {
      await test();
      console.log(`ok ${name} (${Math.round(performance.now() - started)} ms)`);
    } catch (error) {
      failed++;
      console.error(`FAILED ${name}\n${error.stack}`);
    }
  }
}

// The tests of a group run in order. Those of different groups change different data, so they run
// concurrently, the longest first. Those of people mostly wait for emails.
const groups = [
  { ...errorTests, ...others(context), ...tasks(context) },
  frameTests,
  edits(context),
  { ...flags(context), ...kept(context) },
  { ...hostile(context), ...derived(context), ...tags(context) },
];
const CONCURRENCY = 2;

async function runGroups() {
  for (let it = groups.shift(); it; it = groups.shift()) await runAll(it);
}

try {
  if (process.env.MEASURE) {
    await runAll({ ...frameTimes, ...errorTimes });
  } else if (process.env.KEYS_ONLY) {
    await runAll(keys(context));
  } else {
    const runners = Array.from({ length: CONCURRENCY }, runGroups);
    await Promise.all([ownerToken && runAll(people(context)), ...runners]);
  }
  console.log(JSON.stringify(measured));
} finally {
  await browser.close();
}
process.exitCode = failed ? 1 : 0;

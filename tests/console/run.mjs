// Does with the console what people do, by clicks and keys alone, and then asks the API whether it was
// done: node run.mjs BASE_URL CHROMIUM PROJECT KEY READ_ONLY_KEY FOREIGN_KEY STORE_PATH OTHER_PROJECT OTHER_STORE_PATH
// LINK_CODE, the code of a link to READ_ONLY_KEY.
// With ONLY in the environment, a pattern, the tests whose names it matches alone. With MEASURE=1 only the tests
// that measure, which need the machine for themselves; without it the others.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";
import { edits } from "./cases/edits.mjs";
import { errors } from "./cases/errors.mjs";
import { flags } from "./cases/flags.mjs";
import { frame } from "./cases/frame.mjs";
import { hostile } from "./cases/hostile.mjs";
import { kept } from "./cases/kept.mjs";
import { others } from "./cases/others.mjs";
import { Api, fill, fillOther } from "./data.mjs";

const [base, executablePath, project, key, readOnlyKey, foreignKey, store, other, otherStore, linkCode] = process.argv.slice(2);
const api = new Api(base, key, store);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// Chromium's sandbox needs rights that containers do not give.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const [known, browser] = await Promise.all([
  fill(api, project),
  puppeteer.launch({ executablePath, args }),
  fillOther(new Api(base, key, otherStore)),
]);
const listErrors = async () => (await api.send("GET", `/v0/projects/${project}/errors?limit=100`)).items;
const measured = {};
const stage = { browser, base, project, other, key, readOnlyKey, foreignKey, linkCode, api, known, axe, measured, listErrors };
const { alone: opening, ...ofFrame } = frame(stage);
const { alone: walking, ...ofErrors } = errors(stage);

let failed = 0;
const only = process.env.ONLY;

/** Carries out tests one after the other. */
async function inTurn(tests) {
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

try {
  if (process.env.MEASURE) {
    await inTurn({ ...opening, ...walking });
  } else {
    // Tests that only look at pages run beside tests that change them.
    await Promise.all([inTurn({ ...ofFrame, ...hostile(stage) }), inTurn({ ...ofErrors, ...others(stage), ...flags(stage), ...edits(stage), ...kept(stage) })]);
  }
  console.log(JSON.stringify(measured));
} finally {
  await browser.close();
}
process.exitCode = failed ? 1 : 0;

// Evaluates one flag of 20 in this process with the official SDK of each product, by turns, and prints the
// microseconds of an evaluation as JSON: node flags.mjs UNLEASH_MODULES OPENFEATURE_MODULES < sources.json
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const [unleashModules, openFeatureModules] = process.argv.slice(2);
const { startUnleash } = createRequire(`${unleashModules}/`)("unleash-client");
const { FlagdCore, MemoryStorage } = createRequire(`${openFeatureModules}/`)("@openfeature/flagd-core");
const { Unleash, Waymark } = JSON.parse(await text(process.stdin));
const silent = { debug() {}, info() {}, warn: console.error, error: console.error };

const unleash = await startUnleash({
  appName: "comparison", url: Unleash.url, customHeaders: { Authorization: Unleash.token },
});
const storage = new MemoryStorage(silent);
storage.setConfigurations(JSON.stringify(Waymark.document));
const flagd = new FlagdCore(storage, silent);

const evaluate = {
  Waymark: (user) => flagd.resolveBooleanEvaluation("flag-07", false, { targetingKey: user }, silent).value,
  Unleash: (user) => unleash.isEnabled("flag-07", { userId: user }),
};
const EVALUATIONS = 50_000;
const figures = { Waymark: [], Unleash: [] };
const on = { Waymark: 0, Unleash: 0 };
// The first round warms up.
for (let round = 0; round < 8; round++) {
  for (const name of Object.keys(figures)) {
    const start = process.hrtime.bigint();
    for (let number = 0; number < EVALUATIONS; number++) on[name] += evaluate[name](`user-${number}`);
    if (round > 0) figures[name].push(Number(process.hrtime.bigint() - start) / 1e3 / EVALUATIONS);
  }
}
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
for (const name of Object.keys(figures)) {
  console.log(JSON.stringify({ name, microseconds: median(figures[name]), on: on[name] / EVALUATIONS / 8 }));
}
unleash.destroy();
process.exit();

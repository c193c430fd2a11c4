// Evaluates flag exports with flagd's official core, which first validates them with its schemas.
// The expected results are in tests/tests/flags/.
//
// Standard input is a list of {document, evaluations: [{flag, type, default, context}]}. Prints a line
// per evaluation.

import { text } from "node:stream/consumers";

import { FlagdCore, MemoryStorage } from "@openfeature/flagd-core";

const evaluations = {
  boolean: "resolveBooleanEvaluation",
  string: "resolveStringEvaluation",
  number: "resolveNumberEvaluation",
  object: "resolveObjectEvaluation",
};

const silent = { debug() {}, info() {}, warn: console.error, error: console.error };
for (const exported of JSON.parse(await text(process.stdin))) {
  const storage = new MemoryStorage(silent);
  storage.setConfigurations(exported.document, true);
  const flagd = new FlagdCore(storage, silent);
  for (const { flag, type, default: fallback, context } of exported.evaluations) {
    console.log(JSON.stringify(flagd[evaluations[type]](flag, fallback, context)));
  }
}

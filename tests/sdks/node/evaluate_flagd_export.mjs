// Evaluates exports of flags with the official core of flagd, after it has held its own schemas
// against them. What must come of it stands in tests/tests/flags/.
//
// The standard input is a list of {document, evaluations: [{flag, type, default, context}]}; each
// evaluation is answered by a line.

import { text } from "node:stream/consumers";

import { FlagdCore, MemoryStorage } from "@openfeature/flagd-core";

const evaluations = {
  boolean: "resolveBooleanEvaluation",
  string: "resolveStringEvaluation",
  number: "resolveNumberEvaluation",
  object: "resolveObjectEvaluation",
};

const silent = { debug() {}, info() {}, warn: console.error, error: console.error };
for (const asked of JSON.parse(await text(process.stdin))) {
  const storage = new MemoryStorage(silent);
  storage.setConfigurations(asked.document, true);
  const flagd = new FlagdCore(storage, silent);
  for (const { flag, type, default: fallback, context } of asked.evaluations) {
    console.log(JSON.stringify(flagd[evaluations[type]](flag, fallback, context)));
  }
}

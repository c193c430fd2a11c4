// Evaluates flags like a server. The expected results are in
// tests/tests/end_to_end/flags/openfeature_sdks/.
//
// OFREP_ENDPOINT and API_KEY configure the provider. Each line of standard input is an evaluation.
// Prints a line with its details from the SDK.

import { createInterface } from "node:readline";

import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OpenFeature } from "@openfeature/server-sdk";

const evaluations = {
  boolean: "getBooleanDetails",
  string: "getStringDetails",
  number: "getNumberDetails",
  object: "getObjectDetails",
};

await OpenFeature.setProviderAndWait(
  new OFREPProvider({
    baseUrl: process.env.OFREP_ENDPOINT,
    headers: [["authorization", `Bearer ${process.env.API_KEY}`]],
  }),
);
const client = OpenFeature.getClient();

for await (const line of createInterface({ input: process.stdin })) {
  const { flag, type, default: fallback, context } = JSON.parse(line);
  const details = await client[evaluations[type]](flag, fallback, context);
  console.log(JSON.stringify(details));
}

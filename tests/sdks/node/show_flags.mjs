// Uses flags like a page. The expected results are in tests/tests/end_to_end/flags/openfeature_sdks/.
//
// OFREP_ENDPOINT and API_KEY configure the provider. Each line of standard input is a command. Prints
// a line per command.

import { createInterface } from "node:readline";

import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { OpenFeature, ProviderEvents } from "@openfeature/web-sdk";

const evaluations = {
  boolean: "getBooleanDetails",
  string: "getStringDetails",
  number: "getNumberDetails",
  object: "getObjectDetails",
};

const client = OpenFeature.getClient();

// Pending events, and the callback that waits for the next one.
const events = [];
let waiting;

for (const type of [ProviderEvents.ConfigurationChanged, ProviderEvents.Stale, ProviderEvents.Error]) {
  OpenFeature.addHandler(type, (details) => {
    events.push({ type, flagsChanged: details?.flagsChanged ?? [], message: details?.message });
    waiting?.();
  });
}

const commands = {
  async start({ context, pollInterval }) {
    const provider = new OFREPWebProvider({
      baseUrl: process.env.OFREP_ENDPOINT,
      headers: [["x-api-key", process.env.API_KEY]],
      pollInterval,
    });
    await OpenFeature.setContext(context);
    await OpenFeature.setProviderAndWait(provider).catch(() => {});
    return { status: client.providerStatus };
  },
  async evaluate({ flag, type, default: fallback }) {
    return client[evaluations[type]](flag, fallback);
  },
  async setContext({ context }) {
    await OpenFeature.setContext(context);
    return { status: client.providerStatus };
  },
  async nextEvent() {
    while (events.length === 0) {
      await new Promise((resolve) => (waiting = resolve));
    }
    return events.shift();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...options } = JSON.parse(line);
  console.log(JSON.stringify(await commands[command](options)));
}
await OpenFeature.close();

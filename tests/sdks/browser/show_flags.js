// Uses flags like a page of an application. The expected results are in
// tests/tests/end_to_end/flags/openfeature_sdks/.

import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { OpenFeature, ProviderEvents } from "@openfeature/web-sdk";

const evaluations = { boolean: "getBooleanDetails", string: "getStringDetails" };
const client = OpenFeature.getClient();
const changes = [];
let waiting;

OpenFeature.addHandler(ProviderEvents.ConfigurationChanged, (details) => {
  changes.push(details?.flagsChanged ?? []);
  waiting?.();
});

window.commands = {
  async start({ context, pollInterval }) {
    const provider = new OFREPWebProvider({
      baseUrl: window.endpoint,
      headers: [["x-api-key", window.key]],
      pollInterval,
    });
    await OpenFeature.setProviderAndWait(provider, context).catch(() => {});
    return { status: client.providerStatus };
  },
  async evaluate({ flag, type, default: fallback }) {
    return client[evaluations[type]](flag, fallback);
  },
  async setContext({ context }) {
    await OpenFeature.setContext(context);
    return { status: client.providerStatus };
  },
  async nextChange() {
    while (changes.length === 0) {
      await new Promise((come) => (waiting = come));
    }
    return { flagsChanged: changes.shift() };
  },
};

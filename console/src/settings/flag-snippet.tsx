/** Setup of an OpenFeature provider: code with its header, and a key created in place. */

import { useState } from "preact/hooks";
import { ApiError, api, unwrapResponse } from "../api/client";
import { useCan, useCurrentProject } from "../caller";
import { Code, ErrorMessage } from "../ui/states";

const SNIPPETS: { name: string; install: string; code: (base: string, key: string) => string }[] = [
  {
    name: "Browser",
    install: "npm install @openfeature/web-sdk @openfeature/ofrep-web-provider",
    code: (base, key) =>
      `import { OpenFeature } from "@openfeature/web-sdk";\nimport { OFREPWebProvider } from "@openfeature/ofrep-web-provider";\n\nawait OpenFeature.setProviderAndWait(\n  new OFREPWebProvider({\n    baseUrl: "${base}",\n    headers: [["x-api-key", "${key}"]],\n  }),\n  { targetingKey: "user-1" },\n);\nconst isOn = OpenFeature.getClient().getBooleanValue("new-checkout", false);`,
  },
  {
    name: "Node.js",
    install: "npm install @openfeature/server-sdk @openfeature/ofrep-provider",
    code: (base, key) =>
      `import { OpenFeature } from "@openfeature/server-sdk";\nimport { OFREPProvider } from "@openfeature/ofrep-provider";\n\nawait OpenFeature.setProviderAndWait(\n  new OFREPProvider({\n    baseUrl: "${base}",\n    headers: [["x-api-key", "${key}"]],\n  }),\n);\nconst client = OpenFeature.getClient();\nconst isOn = await client.getBooleanValue("new-checkout", false, { targetingKey: "user-1" });`,
  },
  {
    name: "curl",
    install: "",
    code: (base, key) =>
      `curl ${base}/ofrep/v1/evaluate/flags/new-checkout \\\n  -H "x-api-key: ${key}" -H "content-type: application/json" \\\n  -d '{"context": {"targetingKey": "user-1"}}'`,
  },
];

export function FlagSnippet() {
  const { project } = useCurrentProject();
  const canCreate = useCan()("keys:write");
  const [chosen, choose] = useState(0);
  const [key, setKey] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const snippet = SNIPPETS[chosen];
  const create = async () => {
    setError(null);
    setBusy(true);
    try {
      const created = await unwrapResponse(
        api.POST("/v0/api-keys", {
          body: {
            name: `Flags of ${project.slug}`,
            scopes: ["flags:evaluate"],
            projects: [project.slug],
          },
        }),
      );
      setKey(created.apiKey);
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError(0, "", String(failure)));
    } finally {
      setBusy(false);
    }
  };
  const base = `${location.origin}/v0/project/${project.slug}`;
  return (
    <div class="snippets">
      <fieldset class="segments">
        <legend class="hidden">Language of the flag snippet</legend>
        {SNIPPETS.map((it, index) => (
          <button
            type="button"
            key={it.name}
            aria-pressed={index === chosen}
            onClick={() => choose(index)}
          >
            {it.name}
          </button>
        ))}
      </fieldset>
      {snippet?.install && <Code text={snippet.install} copyLabel="Copy install command" />}
      {snippet && <Code text={snippet.code(base, key ?? "YOUR_KEY")} copyLabel="Copy flag code" />}
      {error && <ErrorMessage small error={error} />}
      {key ? (
        <p class="small" role="status">
          The snippet has a new key that can only evaluate flags of {project.name}. It is shown
          once. Copy it now.
        </p>
      ) : canCreate ? (
        <div>
          <button type="button" disabled={busy} onClick={() => void create()}>
            Create a key for this snippet
          </button>
        </div>
      ) : (
        <p class="quiet small">
          Replace YOUR_KEY with a key that has the scope <code>flags:evaluate</code>.
        </p>
      )}
    </div>
  );
}

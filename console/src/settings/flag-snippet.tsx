/** Setup of an OpenFeature provider: code with its header, and a key created in place. */

import { useState } from "preact/hooks";
import { api } from "../api/client";
import { useCan, useCurrentProject } from "../caller";
import { Button } from "../ui/button";
import { useForm } from "../ui/form";
import { ErrorMessage } from "../ui/states";
import { SnippetChoice, type SnippetChoices } from "./snippets";

const SNIPPETS: SnippetChoices = [
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
  const [key, setKey] = useState<string | null>(null);
  const form = useForm(async () => {
    const body = {
      name: `Flags of ${project.slug}`,
      scopes: ["flags:evaluate" as const],
      projects: [project.slug],
    };
    setKey((await api.POST("/v0/api-keys", { body })).apiKey);
  });
  const base = `${location.origin}/v0/project/${project.slug}`;
  return (
    <div class="snippets">
      <SnippetChoice
        name="Language of the flag snippet"
        snippets={SNIPPETS}
        values={[base, key ?? "YOUR_KEY"]}
      />
      {form.error && <ErrorMessage small error={form.error} />}
      {key ? (
        <p class="small" role="status">
          The snippet has a new key that can only evaluate flags of {project.name}. It is shown
          once. Copy it now.
        </p>
      ) : canCreate ? (
        <div>
          <Button disabled={form.busy} onClick={() => void form.submit()}>
            Create a key for this snippet
          </Button>
        </div>
      ) : (
        <p class="quiet small">
          Replace YOUR_KEY with a key that has the scope <code>flags:evaluate</code>.
        </p>
      )}
    </div>
  );
}

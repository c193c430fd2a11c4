/** Setup of an SDK: the DSN of the project, and code that uses it. */

import { useState } from "preact/hooks";
import { useCurrentProject } from "../caller";
import { Code, ErrorMessage } from "../ui/states";
import { useDsn } from "./dsn";

const initOf = (dsn: string) =>
  `Sentry.init({\n  dsn: "${dsn}",\n  environment: "production",\n});`;

const SNIPPETS: { name: string; code: (dsn: string) => string }[] = [
  {
    name: "Browser",
    code: (dsn) => `import * as Sentry from "@sentry/browser";\n\n${initOf(dsn)}`,
  },
  {
    name: "Node.js",
    code: (dsn) => `const Sentry = require("@sentry/node");\n\n${initOf(dsn)}`,
  },
  {
    name: "Python",
    code: (dsn) =>
      `import sentry_sdk\n\nsentry_sdk.init(\n  dsn="${dsn}",\n  environment="production",\n)`,
  },
  {
    name: "Rust",
    code: (dsn) =>
      `let _guard = sentry::init((\n  "${dsn}",\n  sentry::ClientOptions::default(),\n));`,
  },
  {
    name: "Java",
    code: (dsn) => `Sentry.init(options -> {\n  options.setDsn("${dsn}");\n});`,
  },
];

export function Snippets() {
  const { project } = useCurrentProject();
  const [chosen, choose] = useState(0);
  const { data: dsn, error, reload } = useDsn();
  const snippet = SNIPPETS[chosen];
  if (error) return <ErrorMessage small error={error} retry={reload} />;
  if (dsn === null) return <p class="quiet nothing">This project has been deleted.</p>;
  if (!dsn) return <div class="skeleton snippets-skeleton" aria-busy="true" />;
  return (
    <div class="snippets">
      <div class="field">
        <h3>{project.name} DSN</h3>
        <Code text={dsn} copyLabel="Copy DSN" />
        <p class="quiet small">Safe to ship in client code: it can only send errors.</p>
      </div>
      <fieldset class="segments">
        <legend class="hidden">Language</legend>
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
      {snippet && <Code text={snippet.code(dsn)} copyLabel={`Copy ${snippet.name} code`} />}
    </div>
  );
}

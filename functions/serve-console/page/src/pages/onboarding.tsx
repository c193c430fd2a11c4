/** What stands where there are no errors yet: the one step to get them. */

import { useState } from "preact/hooks";
import { useHere } from "../caller";
import { Code } from "../ui/states";

const DSN = "https://KEY@HOST/INGEST_ID";

const SNIPPETS: { name: string; code: (dsn: string) => string }[] = [
  {
    name: "Browser",
    code: (dsn) =>
      `import * as Sentry from "@sentry/browser";\n\nSentry.init({ dsn: "${dsn}", environment: "production" });`,
  },
  {
    name: "Node.js",
    code: (dsn) =>
      `const Sentry = require("@sentry/node");\n\nSentry.init({ dsn: "${dsn}", environment: "production" });`,
  },
  {
    name: "Python",
    code: (dsn) => `import sentry_sdk\n\nsentry_sdk.init(dsn="${dsn}", environment="production")`,
  },
  {
    name: "Rust",
    code: (dsn) => `let _guard = sentry::init(("${dsn}", sentry::ClientOptions::default()));`,
  },
  {
    name: "Java",
    code: (dsn) => `Sentry.init(options -> {\n  options.setDsn("${dsn}");\n});`,
  },
];

/** How an application reports errors. The DSN is no part of the API: who makes projects has it. */
export function Snippets() {
  const { project } = useHere();
  const [chosen, choose] = useState(0);
  const [dsn, setDsn] = useState("");
  const snippet = SNIPPETS[chosen];
  return (
    <div class="snippets">
      <label>
        DSN of {project.name}
        <input
          value={dsn}
          placeholder={DSN}
          spellcheck={false}
          onInput={(event) => setDsn(event.currentTarget.value.trim())}
        />
      </label>
      <p class="quiet small">
        <code>waymark project list</code> shows it, and so did the command that made the project.
        Put in here, it goes into the lines below and nowhere else.
      </p>
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
      {snippet && <Code text={snippet.code(dsn || DSN)} />}
    </div>
  );
}

export function Onboarding() {
  const { project } = useHere();
  return (
    <div class="onboarding">
      <h2>No errors of {project.name} yet</h2>
      <p>
        Here the errors of your application stand over time, with releases and changes of flags
        beside them. Any official Sentry SDK reports them, once it knows the project’s DSN:
      </p>
      <Snippets />
    </div>
  );
}

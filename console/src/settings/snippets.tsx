/** Setup of an SDK: the DSN of the project, and code that uses it. */

import { useState } from "preact/hooks";
import { useCurrentProject } from "../caller";
import { Segments } from "../ui/button";
import { Code, ErrorMessage } from "../ui/states";
import { useDsn } from "./dsn";

interface Snippet {
  name: string;
  /** Empty if nothing needs to be installed. */
  install: string;
  /** Returns the code with values of the project. */
  code: (...values: string[]) => string;
}

export type SnippetChoices = [Snippet, ...Snippet[]];

const initOf = (dsn: string) =>
  `Sentry.init({\n  dsn: "${dsn}",\n  release: "shop@1.0.0",\n  environment: "production",\n});`;

const SNIPPETS: SnippetChoices = [
  {
    name: "Browser",
    install: "npm install @sentry/browser",
    code: (dsn) => `import * as Sentry from "@sentry/browser";\n\n${initOf(dsn)}`,
  },
  {
    name: "Node.js",
    install: "npm install @sentry/node",
    code: (dsn) => `const Sentry = require("@sentry/node");\n\n${initOf(dsn)}`,
  },
  {
    name: "Python",
    install: "pip install sentry-sdk",
    code: (dsn) =>
      `import sentry_sdk\n\nsentry_sdk.init(\n  dsn="${dsn}",\n  release="shop@1.0.0",\n  environment="production",\n)`,
  },
  {
    name: "Rust",
    install: "cargo add sentry",
    code: (dsn) =>
      `let _guard = sentry::init((\n  "${dsn}",\n  sentry::ClientOptions {\n    release: sentry::release_name!(),\n    environment: Some("production".into()),\n    ..Default::default()\n  },\n));`,
  },
  {
    name: "Java",
    install: 'implementation("io.sentry:sentry:8.+")  // build.gradle.kts',
    code: (dsn) =>
      `Sentry.init(options -> {\n  options.setDsn("${dsn}");\n  options.setRelease("shop@1.0.0");\n  options.setEnvironment("production");\n});`,
  },
];

export function Snippets() {
  const { project } = useCurrentProject();
  const { data: dsn, error, reload } = useDsn();
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
      <SnippetChoice name="Language" snippets={SNIPPETS} values={[dsn]} />
    </div>
  );
}

interface SnippetChoiceProps {
  name: string;
  snippets: SnippetChoices;
  values: string[];
}

/** Code for one of several languages, with the command that installs its library. */
export function SnippetChoice({ name, snippets, values }: SnippetChoiceProps) {
  const [snippet, choose] = useState(snippets[0]);
  return (
    <>
      <Segments
        name={name}
        values={snippets}
        chosen={snippet}
        text={(it) => it.name}
        onChoose={choose}
      />
      {snippet.install && <Code text={snippet.install} copyLabel="Copy install command" />}
      <Code text={snippet.code(...values)} copyLabel={`Copy ${snippet.name} code`} />
    </>
  );
}

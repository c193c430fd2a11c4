/** Code for one of several languages, with the command that installs its library. */

import { useState } from "preact/hooks";
import { Segments } from "../ui/segments";
import { Code } from "../ui/states";

interface Snippet {
  name: string;
  /** Empty if nothing needs to be installed. */
  install: string;
  /** Returns the code with values of the project. */
  code: (...values: string[]) => string;
}

export type SnippetChoices = [Snippet, ...Snippet[]];

interface SnippetChoiceProps {
  name: string;
  snippets: SnippetChoices;
  values: string[];
}

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

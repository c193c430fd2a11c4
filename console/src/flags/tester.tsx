/** Who gets what: a context in, a variant and its reason out, by the protocol that applications speak. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, api, type Schemas, unwrapResponse } from "../api/client";
import { useCurrentProject } from "../caller";
import { Icon } from "../ui/icons";
import { Refused } from "../ui/states";
import type { Flag } from "./flag";

type Evaluation = Schemas["FlagEvaluation"];

interface Attribute {
  name: string;
  value: string;
}

/** Text as the value that it looks like: `true` and `42` are not texts to applications either. */
export function readValue(text: string): unknown {
  if (!/^(true|false|-?\d+(\.\d+)?|[[{].*)$/s.test(text.trim())) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface TesterProps {
  /** As it is saved: that is what is asked. */
  flag: Flag;
  /** Whether something of it was changed and is not saved. */
  isEdited: boolean;
}

export function Tester({ flag, isEdited }: TesterProps) {
  const { project } = useCurrentProject();
  const [who, setWho] = useState("user-1");
  const [attributes, setAttributes] = useState<Attribute[]>(() => attributesOf(flag));
  const [outcome, setOutcome] = useState<Evaluation | ApiError | null>(null);
  const set = (index: number, change: Partial<Attribute>) =>
    setAttributes(attributes.map((it, at) => (at === index ? { ...it, ...change } : it)));
  // An answer of another version is none of this one.
  const version = useRef(flag.version);
  useLayoutEffect(() => {
    version.current = flag.version;
    setOutcome(null);
  }, [flag.version]);
  const ask = async () => {
    const asked = flag.version;
    const show = (told: Evaluation | ApiError) => version.current === asked && setOutcome(told);
    const told = attributes
      .filter((it) => it.name && it.value)
      .map((it) => [it.name, readValue(it.value)]);
    try {
      const evaluation = await unwrapResponse(
        api.POST("/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}", {
          params: { path: { idOrSlug: project.slug, key: flag.key } },
          // A change that was just made is to be seen.
          headers: { "cache-control": "no-cache" },
          body: { context: { targetingKey: who, ...Object.fromEntries(told) } },
        }),
      );
      show(evaluation);
    } catch (error) {
      show(error instanceof ApiError ? error : new ApiError(0, "fault", String(error)));
    }
  };
  return (
    <section class="block" aria-label="Who gets what">
      <header>
        <h2>Who gets what</h2>
      </header>
      {isEdited && (
        <p class="quiet small">
          It answers for the flag as it is saved, version {flag.version}, without what you changed
          since.
        </p>
      )}
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <label class="field">
          Targeting key
          <input value={who} onInput={(event) => setWho(event.currentTarget.value)} />
        </label>
        {attributes.map((it, index) => (
          <div class="form-row" key={index}>
            <input
              class="grow"
              aria-label={`Attribute ${index + 1}`}
              placeholder="attribute"
              list="attributes"
              value={it.name}
              onInput={(event) => set(index, { name: event.currentTarget.value })}
            />
            <input
              class="grow"
              aria-label={`Value ${index + 1}`}
              placeholder="value"
              value={it.value}
              onInput={(event) => set(index, { value: event.currentTarget.value })}
            />
            <button
              type="button"
              class="bare"
              aria-label={`Remove attribute ${index + 1}`}
              onClick={() => setAttributes(attributes.filter((_, at) => at !== index))}
            >
              <Icon name="close" />
            </button>
          </div>
        ))}
        <div class="form-row">
          <button type="submit">Ask</button>
          <button
            type="button"
            class="link small"
            onClick={() => setAttributes([...attributes, { name: "", value: "" }])}
          >
            Add an attribute
          </button>
        </div>
      </form>
      {outcome instanceof ApiError ? (
        <Refused refusal={outcome} />
      ) : (
        outcome && (
          <div class="outcome" role="status">
            <p>
              <b>{outcome.variant || "The application’s own default"}</b>{" "}
              {outcome.value !== undefined && <code>{JSON.stringify(outcome.value)}</code>}
            </p>
            <p class="quiet small">{reasonInWords(outcome, flag)}</p>
          </div>
        )
      )}
    </section>
  );
}

/** The attributes that the rules ask about. */
function attributesOf(flag: Flag): Attribute[] {
  const names = flag.rules.flatMap((rule) => rule.conditions.map((it) => it.attribute));
  const asked = [...new Set(names)].filter((it) => it && it !== "$now" && it !== "targetingKey");
  return asked.slice(0, 6).map((name) => ({ name: name ?? "", value: "" }));
}

export function reasonInWords(outcome: Evaluation, flag: Flag): string {
  const { reason, metadata } = outcome;
  if (metadata.prerequisite)
    return `${reason}: the flag ${metadata.prerequisite} is not as this one needs it.`;
  if (reason === "DISABLED") return `${reason}: the flag is off.`;
  if (metadata.targeted) return `${reason}: this individual has an answer of their own.`;
  const index = flag.rules.findIndex((it) => it.id === metadata.ruleId);
  const bucketed = metadata.bucketed ? ", by share" : "";
  if (index >= 0)
    return `${reason}: rule ${index + 1}${flag.rules[index]?.name ? ` (${flag.rules[index]?.name})` : ""} matched${bucketed}.`;
  if (reason === "SPLIT") return `${reason}: no rule matched; a variant by share.`;
  return reason === "STATIC"
    ? `${reason}: the flag serves everybody the same.`
    : `${reason}: no rule matched.`;
}

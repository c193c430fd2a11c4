/** Tests targeting: evaluates the flag for a context with OFREP, as applications do. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, api, type Schemas, unwrapResponse } from "../api/client";
import { useCurrentProject } from "../caller";
import { Icon } from "../ui/icons";
import { ErrorMessage } from "../ui/states";
import { type Flag, quoteVariant } from "./flag";

type Evaluation = Schemas["FlagEvaluation"];

interface Attribute {
  name: string;
  value: string;
}

/** Parses text that looks like JSON: applications send `true` and `42` as values, not as text. */
export function readValue(text: string): unknown {
  if (!/^(true|false|-?\d+(\.\d+)?|[[{].*)$/s.test(text.trim())) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface TesterProps {
  /** The saved flag, which the API evaluates. */
  flag: Flag;
  /** `true` if there are unsaved changes. */
  isEdited: boolean;
}

export function Tester({ flag, isEdited }: TesterProps) {
  const { project } = useCurrentProject();
  const [targetingKey, setTargetingKey] = useState("user-1");
  const [attributes, setAttributes] = useState<Attribute[]>(() => attributesOf(flag));
  const [outcome, setOutcome] = useState<Evaluation | ApiError | null>(null);
  const set = (index: number, change: Partial<Attribute>) =>
    setAttributes(attributes.map((it, at) => (at === index ? { ...it, ...change } : it)));
  // Results of another version do not apply.
  const version = useRef(flag.version);
  useLayoutEffect(() => {
    version.current = flag.version;
    setOutcome(null);
  }, [flag.version]);
  const evaluate = async () => {
    const requested = flag.version;
    const show = (result: Evaluation | ApiError) =>
      version.current === requested && setOutcome(result);
    const entries = attributes
      .filter((it) => it.name && it.value)
      .map((it) => [it.name, readValue(it.value)]);
    try {
      const evaluation = await unwrapResponse(
        api.POST("/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}", {
          params: { path: { idOrSlug: project.slug, key: flag.key } },
          // Includes a change that was just saved.
          headers: { "cache-control": "no-cache" },
          body: { context: { targetingKey, ...Object.fromEntries(entries) } },
        }),
      );
      show(evaluation);
    } catch (error) {
      show(error instanceof ApiError ? error : new ApiError(0, "unexpected", String(error)));
    }
  };
  return (
    <section class="block" aria-label="Test targeting">
      <header>
        <h2>Test targeting</h2>
      </header>
      {isEdited && (
        <p class="quiet small">
          Tests saved version {flag.version}; unsaved changes aren’t included.
        </p>
      )}
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void evaluate();
        }}
      >
        <label class="field">
          Targeting key
          <input
            value={targetingKey}
            onInput={(event) => setTargetingKey(event.currentTarget.value)}
          />
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
          <button type="submit">Evaluate</button>
          <button
            type="button"
            class="link small"
            onClick={() => setAttributes([...attributes, { name: "", value: "" }])}
          >
            Add attribute
          </button>
        </div>
      </form>
      {outcome instanceof ApiError ? (
        <ErrorMessage error={outcome} />
      ) : (
        outcome && (
          <div class="outcome" role="status">
            <p>
              <b>{outcome.variant || "The default in code"}</b>{" "}
              {outcome.value !== undefined && <code>{JSON.stringify(outcome.value)}</code>}
            </p>
            <p class="quiet small">{describeReason(outcome, flag)}</p>
          </div>
        )
      )}
    </section>
  );
}

/** Returns the first six attributes in the rules. */
function attributesOf(flag: Flag): Attribute[] {
  const names = flag.rules.flatMap((rule) => rule.conditions.map((it) => it.attribute));
  const used = [...new Set(names)].filter((it) => it && it !== "$now" && it !== "targetingKey");
  return used.slice(0, 6).map((name) => ({ name: name ?? "", value: "" }));
}

export function describeReason(outcome: Evaluation, flag: Flag): string {
  const { reason, metadata } = outcome;
  const variant = quoteVariant(outcome.variant);
  if (metadata.prerequisite) return `Prerequisite ${metadata.prerequisite} isn’t met.`;
  if (reason === "DISABLED") return `Flag is off: everyone gets ${variant}.`;
  if (metadata.targeted) return "Targeted as an individual user.";
  const rollout = metadata.bucketed ? ` Rollout picked ${variant}.` : "";
  const index = flag.rules.findIndex((it) => it.id === metadata.ruleId);
  if (index >= 0) {
    const name = flag.rules[index]?.name;
    return `Matched rule ${index + 1}${name ? ` (${name})` : ""}.${rollout}`;
  }
  if (reason === "STATIC") return `No targeting: everyone gets ${variant}.`;
  return `No rule matched.${reason === "SPLIT" ? ` Rollout picked ${variant}.` : rollout}`;
}

/**
 * Tests targeting: evaluates the flag for a context as if it were on, with the edits that are not
 * saved.
 */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, api, type Schemas } from "../api/client";
import { useCurrentProject } from "../caller";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { Block } from "../ui/layout";
import { ErrorMessage } from "../ui/states";
import { type Draft, type Flag, type FlagPatch, quoteVariant, toRequest } from "./flag";

type Test = Schemas["FlagTest"];
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
  flag: Flag;
  /** The flag with the edits that are not saved. */
  draft: Draft;
  /** The edits; `{}` without any. */
  changes: FlagPatch;
}

export function Tester({ flag, draft, changes }: TesterProps) {
  const { project } = useCurrentProject();
  const [targetingKey, setTargetingKey] = useState("user-1");
  const [attributes, setAttributes] = useState<Attribute[]>(() => attributesOf(flag));
  const [outcome, setOutcome] = useState<Test | ApiError | null>(null);
  const set = (index: number, change: Partial<Attribute>) =>
    setAttributes(attributes.map((it, at) => (at === index ? { ...it, ...change } : it)));
  // Results of other edits do not apply.
  const tested = `${flag.version} ${JSON.stringify(changes)}`;
  const current = useRef(tested);
  useLayoutEffect(() => {
    current.current = tested;
    setOutcome(null);
  }, [tested]);
  const evaluate = async () => {
    const show = (result: Test | ApiError) => current.current === tested && setOutcome(result);
    const entries = attributes
      .filter((it) => it.name && it.value)
      .map((it) => [it.name, readValue(it.value)]);
    const rules = changes.rules && { rules: toRequest(changes.rules) };
    try {
      const test = await api.POST("/v0/project/{idOrSlug}/feature-flags/{key}/test", {
        params: { path: { idOrSlug: project.slug, key: flag.key } },
        body: {
          context: { targetingKey, ...Object.fromEntries(entries) },
          // The generated types cannot express all rules for conditions.
          changes: { ...changes, ...rules } as never,
        },
      });
      show(test);
    } catch (error) {
      show(error instanceof ApiError ? error : new ApiError(0, "unexpected", String(error)));
    }
  };
  return (
    <Block title="Test targeting" label="Test targeting">
      {Object.keys(changes).length > 0 && <p class="quiet small">Includes your unsaved changes.</p>}
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
            <Button
              class="bare"
              aria-label={`Remove attribute ${index + 1}`}
              onClick={() => setAttributes(attributes.filter((_, at) => at !== index))}
            >
              <Icon name="close" />
            </Button>
          </div>
        ))}
        <div class="form-row">
          <button type="submit">Evaluate</button>
          <Button
            class="link small"
            onClick={() => setAttributes([...attributes, { name: "", value: "" }])}
          >
            Add attribute
          </Button>
        </div>
      </form>
      {outcome instanceof ApiError ? (
        <ErrorMessage error={outcome} />
      ) : (
        outcome && <Outcome test={outcome} flag={draft} />
      )}
    </Block>
  );
}

function Outcome({ test, flag }: { test: Test; flag: Draft }) {
  const { evaluation, enabled } = test;
  if ("errorCode" in evaluation) {
    return (
      <p class="error-box brief" role="alert">
        {evaluation.errorDetails || evaluation.errorCode}
      </p>
    );
  }
  return (
    <div class="outcome" role="status">
      <p>
        {enabled ? "" : "Would serve "}
        <b>{evaluation.variant || "the default in code"}</b>{" "}
        {evaluation.value !== undefined && <code>{JSON.stringify(evaluation.value)}</code>}
      </p>
      <p class="quiet small">
        {describeReason(evaluation, flag)}
        {!enabled && ` The flag is off: everyone gets ${quoteVariant(flag.offVariant)} now.`}
      </p>
    </div>
  );
}

/** Returns the first six attributes in the rules. */
function attributesOf(flag: Flag): Attribute[] {
  const names = flag.rules.flatMap((rule) => rule.conditions.map((it) => it.attribute));
  const used = [...new Set(names)].filter((it) => it && it !== "$now" && it !== "targetingKey");
  return used.slice(0, 6).map((name) => ({ name: name ?? "", value: "" }));
}

export function describeReason(outcome: Evaluation, flag: Pick<Draft, "rules">): string {
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

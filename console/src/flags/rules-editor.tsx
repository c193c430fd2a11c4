/** Rules, tried in order: the first whose conditions all hold serves. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { ApiError } from "../api/client";
import type { Segment } from "../segments/segment";
import { Icon } from "../ui/icons";
import { errorProps, FieldFault } from "../ui/states";
import { Conditions, NEW_CONDITION } from "./conditions-editor";
import { type Draft, keyOf, newRuleId, type Rule } from "./flag";
import { ServeEditor } from "./serve-editor";

interface RulesEditorProps {
  draft: Draft;
  /** Those of the project, that rules can ask for. */
  segments: Segment[];
  refusal: ApiError | null;
  disabled: boolean;
  onChange: (rules: Rule[]) => void;
}

export function RulesEditor({ draft, segments, refusal, disabled, onChange }: RulesEditorProps) {
  const { rules, variants } = draft;
  const section = useRef<HTMLElement>(null);
  const toFocus = useRef<{ key: string; by: number } | null>(null);
  const set = (index: number, change: Partial<Rule>) =>
    onChange(rules.map((it, at) => (at === index ? { ...it, ...change } : it)));
  const move = (index: number, by: number) => {
    const next = [...rules];
    const [moved] = next.splice(index, 1);
    if (moved) next.splice(index + by, 0, moved);
    if (moved) toFocus.current = { key: keyOf(moved), by };
    onChange(next);
  };
  // Whoever moves a rule moves it on by the same key, wherever it is by then.
  useLayoutEffect(() => {
    if (!toFocus.current) return;
    const { key, by } = toFocus.current;
    toFocus.current = null;
    const rule = section.current?.querySelector(`[data-rule="${key}"]`);
    const button = (way: number) =>
      rule?.querySelector<HTMLElement>(`[data-move="${way}"]:not(:disabled)`);
    (button(by) ?? button(-by))?.focus();
  }, [rules]);
  const add = () => {
    const serve = { variant: variants[0]?.key ?? null, rollout: [] };
    onChange([...rules, { id: newRuleId(), name: "", conditions: [NEW_CONDITION], serve }]);
  };
  return (
    <section class="part" ref={section}>
      <header>
        <h2>Rules</h2>
        {!disabled && (
          <button type="button" onClick={add}>
            Add a rule
          </button>
        )}
      </header>
      {rules.length === 0 && <p class="quiet">No rules: everybody gets what stands below.</p>}
      <FieldFault refusal={refusal} at="/rules" />
      <div class="lines">
        {rules.map((rule, index) => (
          <fieldset class="rule" key={keyOf(rule)} data-rule={keyOf(rule)}>
            <legend class="hidden">
              Rule {index + 1}
              {rule.name && `: ${rule.name}`}
            </legend>
            <header>
              <span class="quiet number">{index + 1}</span>
              <input
                aria-label={`Name of rule ${index + 1}`}
                placeholder="What this rule is for"
                value={rule.name}
                disabled={disabled}
                {...errorProps(refusal, `/rules/${index}/name`)}
                onInput={(event) => set(index, { name: event.currentTarget.value })}
              />
              {!disabled && (
                <>
                  <button
                    type="button"
                    class="bare"
                    data-move={-1}
                    aria-label={`Move rule ${index + 1} up`}
                    disabled={index === 0}
                    onClick={() => move(index, -1)}
                  >
                    <Icon name="up" />
                  </button>
                  <button
                    type="button"
                    class="bare"
                    data-move={1}
                    aria-label={`Move rule ${index + 1} down`}
                    disabled={index === rules.length - 1}
                    onClick={() => move(index, 1)}
                  >
                    <Icon name="down" />
                  </button>
                  <button
                    type="button"
                    class="bare"
                    aria-label={`Remove rule ${index + 1}`}
                    onClick={() => onChange(rules.filter((_, at) => at !== index))}
                  >
                    <Icon name="close" />
                  </button>
                </>
              )}
            </header>
            <FieldFault refusal={refusal} at={`/rules/${index}`} />
            <FieldFault refusal={refusal} at={`/rules/${index}/name`} />
            <FieldFault refusal={refusal} at={`/rules/${index}/conditions`} />
            <Conditions
              conditions={rule.conditions}
              segments={segments}
              pointer={`/rules/${index}/conditions`}
              refusal={refusal}
              disabled={disabled}
              onChange={(conditions) => set(index, { conditions })}
            />
            <ServeEditor
              serve={rule.serve}
              variants={variants}
              pointer={`/rules/${index}/serve`}
              refusal={refusal}
              label={`Rule ${index + 1} serves`}
              disabled={disabled}
              onChange={(serve) => set(index, { serve })}
            />
          </fieldset>
        ))}
      </div>
    </section>
  );
}

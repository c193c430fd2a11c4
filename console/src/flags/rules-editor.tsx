/** Rules, evaluated in order: the first rule whose conditions all match determines the variant. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { ApiError } from "../api/client";
import type { Segment } from "../segments/segment";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { errorProps, FieldError } from "../ui/states";
import { Conditions, NEW_CONDITION } from "./conditions-editor";
import { type Draft, keyOf, newRuleId, type Rule } from "./flag";
import { ServeEditor } from "./serve-editor";

interface RulesEditorProps {
  draft: Draft;
  /** Segments of the project, for segment conditions. */
  segments: Segment[];
  error: ApiError | null;
  onChange: (rules: Rule[]) => void;
}

export function RulesEditor({ draft, segments, error, onChange }: RulesEditorProps) {
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
  // The focus follows a moved rule, so that the next key press moves it again.
  useLayoutEffect(() => {
    if (!toFocus.current) return;
    const { key, by } = toFocus.current;
    toFocus.current = null;
    const rule = section.current?.querySelector(`[data-rule="${key}"]`);
    const button = (direction: number) =>
      rule?.querySelector<HTMLElement>(`[data-move="${direction}"]:not(:disabled)`);
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
        <Button onClick={add}>Add rule</Button>
      </header>
      {rules.length === 0 && <p class="quiet">No rules. Everyone gets the default below.</p>}
      <FieldError error={error} at="/rules" />
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
                placeholder="Rule name"
                value={rule.name}
                {...errorProps(error, `/rules/${index}/name`)}
                onInput={(event) => set(index, { name: event.currentTarget.value })}
              />

              <Button
                class="bare"
                data-move={-1}
                aria-label={`Move rule ${index + 1} up`}
                disabled={index === 0}
                onClick={() => move(index, -1)}
              >
                <Icon name="up" />
              </Button>
              <Button
                class="bare"
                data-move={1}
                aria-label={`Move rule ${index + 1} down`}
                disabled={index === rules.length - 1}
                onClick={() => move(index, 1)}
              >
                <Icon name="down" />
              </Button>
              <Button
                class="bare"
                aria-label={`Remove rule ${index + 1}`}
                onClick={() => onChange(rules.filter((_, at) => at !== index))}
              >
                <Icon name="close" />
              </Button>
            </header>
            <FieldError error={error} at={`/rules/${index}`} />
            <FieldError error={error} at={`/rules/${index}/name`} />
            <FieldError error={error} at={`/rules/${index}/conditions`} />
            <Conditions
              conditions={rule.conditions}
              segments={segments}
              pointer={`/rules/${index}/conditions`}
              error={error}
              onChange={(conditions) => set(index, { conditions })}
            />
            <ServeEditor
              serve={rule.serve}
              variants={variants}
              pointer={`/rules/${index}/serve`}
              error={error}
              label={`Rule ${index + 1} serves`}
              onChange={(serve) => set(index, { serve })}
            />
          </fieldset>
        ))}
      </div>
    </section>
  );
}

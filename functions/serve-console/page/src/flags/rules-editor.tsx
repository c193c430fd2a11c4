/** Rules, tried in order: the first whose conditions all hold serves. */

import type { Refusal } from "../api/client";
import type { Segment } from "../segments/segment";
import { Icon } from "../ui/icons";
import { FieldFault } from "../ui/states";
import { Conditions, NEW_CONDITION } from "./conditions-editor";
import { type Draft, newRuleId, type Rule } from "./flag";
import { ServeEditor } from "./serve-editor";

interface RulesEditorProps {
  draft: Draft;
  /** Those of the project, that rules can ask for. */
  segments: Segment[];
  refusal: Refusal | null;
  disabled: boolean;
  onChange: (rules: Rule[]) => void;
}

export function RulesEditor({ draft, segments, refusal, disabled, onChange }: RulesEditorProps) {
  const { rules, variants } = draft;
  const set = (index: number, change: Partial<Rule>) =>
    onChange(rules.map((it, at) => (at === index ? { ...it, ...change } : it)));
  const move = (index: number, by: number) => {
    const next = [...rules];
    const [moved] = next.splice(index, 1);
    if (moved) next.splice(index + by, 0, moved);
    onChange(next);
  };
  const add = () => {
    const serve = { variant: variants[0]?.key ?? null, rollout: [] };
    onChange([...rules, { id: newRuleId(), name: "", conditions: [NEW_CONDITION], serve }]);
  };
  return (
    <section class="part">
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
          <div class="rule" key={index}>
            <header>
              <span class="quiet number">{index + 1}</span>
              <input
                aria-label={`Name of rule ${index + 1}`}
                placeholder="What this rule is for"
                value={rule.name}
                disabled={disabled}
                onInput={(event) => set(index, { name: event.currentTarget.value })}
              />
              {!disabled && (
                <>
                  <button
                    type="button"
                    class="bare"
                    aria-label="Move up"
                    disabled={index === 0}
                    onClick={() => move(index, -1)}
                  >
                    <Icon name="up" />
                  </button>
                  <button
                    type="button"
                    class="bare"
                    aria-label="Move down"
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
          </div>
        ))}
      </div>
    </section>
  );
}

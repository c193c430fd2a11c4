/** Rules, tried in order: the first whose conditions all hold serves. */

import type { Refusal } from "../api/client";
import { Icon } from "../ui/icons";
import { FieldFault } from "../ui/states";
import {
  asksAttribute,
  type Condition,
  type Draft,
  OPERATORS,
  type Operator,
  type Rule,
} from "./flag";
import { ServeEditor } from "./serve-editor";

interface RulesEditorProps {
  draft: Draft;
  refusal: Refusal | null;
  disabled: boolean;
  onChange: (rules: Rule[]) => void;
}

const NEW_CONDITION: Condition = { attribute: "", operator: "equals", values: [] };

export function RulesEditor({ draft, refusal, disabled, onChange }: RulesEditorProps) {
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
    onChange([...rules, { id: "", name: "", conditions: [NEW_CONDITION], serve }]);
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

interface ConditionsProps {
  conditions: Condition[];
  pointer: string;
  refusal: Refusal | null;
  disabled: boolean;
  onChange: (conditions: Condition[]) => void;
}

export function Conditions({ conditions, pointer, refusal, disabled, onChange }: ConditionsProps) {
  const set = (index: number, change: Partial<Condition>) =>
    onChange(conditions.map((it, at) => (at === index ? ({ ...it, ...change } as Condition) : it)));
  return (
    <div class="lines">
      {conditions.length === 0 && (
        <p class="quiet small">Without conditions it matches everyone.</p>
      )}
      {conditions.map((it, index) => {
        const { values, example } = OPERATORS[it.operator];
        const at = `${pointer}/${index}`;
        return (
          <div key={index}>
            <div class="condition">
              <input
                aria-label={`Attribute of condition ${index + 1}`}
                list="attributes"
                placeholder={asksAttribute(it.operator) ? "attribute" : ""}
                value={it.attribute ?? ""}
                disabled={disabled || !asksAttribute(it.operator)}
                onInput={(event) => set(index, { attribute: event.currentTarget.value })}
              />
              <select
                aria-label={`Operator of condition ${index + 1}`}
                value={it.operator}
                disabled={disabled}
                onChange={(event) => {
                  const operator = event.currentTarget.value as Operator;
                  const kept = OPERATORS[operator].values;
                  const attribute = asksAttribute(operator) ? (it.attribute ?? "") : null;
                  const taken =
                    kept === "none" ? [] : kept === "one" ? it.values.slice(0, 1) : it.values;
                  set(index, { attribute, operator, values: taken });
                }}
              >
                {Object.entries(OPERATORS).map(([id, { words }]) => (
                  <option key={id} value={id}>
                    {words}
                  </option>
                ))}
              </select>
              {values === "none" ? (
                <span />
              ) : (
                <textarea
                  rows={1}
                  class="values"
                  aria-label={`Values of condition ${index + 1}`}
                  placeholder={values === "many" ? `${example}  (one a line)` : example}
                  defaultValue={it.values.join("\n")}
                  disabled={disabled}
                  onInput={(event) =>
                    set(index, { values: read(event.currentTarget.value, values) })
                  }
                />
              )}
              {!disabled && (
                <button
                  type="button"
                  class="bare"
                  aria-label={`Remove condition ${index + 1}`}
                  onClick={() => onChange(conditions.filter((_, place) => place !== index))}
                >
                  <Icon name="close" />
                </button>
              )}
            </div>
            <FieldFault refusal={refusal} at={`${at}/attribute`} />
            <FieldFault refusal={refusal} at={`${at}/operator`} />
            <FieldFault refusal={refusal} at={`${at}/values`} />
            {it.values.map((value, place) => (
              <FieldFault
                key={`${place} ${value}`}
                refusal={refusal}
                at={`${at}/values/${place}`}
              />
            ))}
          </div>
        );
      })}
      {!disabled && (
        <div>
          <button
            type="button"
            class="link small"
            onClick={() => onChange([...conditions, NEW_CONDITION])}
          >
            Add a condition
          </button>
        </div>
      )}
    </div>
  );
}

/** Values as they are typed, one a line: a pattern may have commas. */
export function read(text: string, values: "one" | "many"): string[] {
  const parts = values === "one" ? [text] : text.split("\n");
  return parts.map((it) => it.trim()).filter(Boolean);
}

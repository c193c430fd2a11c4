/** The conditions of a rule or of a segment, all of which must hold. */

import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import type { Segment } from "../segments/segment";
import { Icon } from "../ui/icons";
import { errorProps, FieldFault } from "../ui/states";
import { asksAttribute, type Condition, OPERATORS, type Operator } from "./flag";

export const NEW_CONDITION: Condition = { attribute: "", operator: "equals", values: [] };

interface ConditionsProps {
  conditions: Condition[];
  /** Segments that may be asked for; `null` where none may be, as in segments themselves. */
  segments: Segment[] | null;
  pointer: string;
  refusal: ApiError | null;
  disabled: boolean;
  onChange: (conditions: Condition[]) => void;
}

export function Conditions(props: ConditionsProps) {
  const { conditions, segments, pointer, refusal, disabled, onChange } = props;
  const set = (index: number, change: Partial<Condition>) =>
    onChange(conditions.map((it, at) => (at === index ? { ...it, ...change } : it)));
  const offered = (Object.keys(OPERATORS) as Operator[]).filter(
    (it) => segments !== null || asksAttribute(it),
  );
  return (
    <div class="lines">
      {conditions.length === 0 && (
        <p class="quiet small">Without conditions it matches everyone.</p>
      )}
      {conditions.map((it, index) => {
        const { values, example } = OPERATORS[it.operator];
        const at = `${pointer}/${index}`;
        const ofSegments = !asksAttribute(it.operator);
        const faultOfValues = errorProps(
          refusal,
          `${at}/values`,
          ...it.values.map((_, place) => `${at}/values/${place}`),
        );
        return (
          <div key={index}>
            <div class={ofSegments ? "condition of-segments" : "condition"}>
              {!ofSegments && (
                <input
                  aria-label={`Attribute of condition ${index + 1}`}
                  list="attributes"
                  placeholder="attribute"
                  value={it.attribute ?? ""}
                  disabled={disabled}
                  {...errorProps(refusal, `${at}/attribute`)}
                  onInput={(event) => set(index, { attribute: event.currentTarget.value })}
                />
              )}
              <select
                aria-label={`Operator of condition ${index + 1}`}
                value={it.operator}
                disabled={disabled}
                {...errorProps(refusal, `${at}/operator`)}
                onChange={(event) =>
                  set(index, withOperator(it, event.currentTarget.value as Operator))
                }
              >
                {offered.map((id) => (
                  <option key={id} value={id}>
                    {OPERATORS[id].words}
                  </option>
                ))}
              </select>
              {ofSegments ? (
                <SegmentsOf
                  label={`condition ${index + 1}`}
                  keys={it.values}
                  segments={segments ?? []}
                  disabled={disabled}
                  fault={faultOfValues}
                  onChange={(keys) => set(index, { values: keys })}
                />
              ) : values === "none" ? (
                <span />
              ) : (
                <ValuesField
                  label={`Values of condition ${index + 1}`}
                  placeholder={values === "many" ? `${example}  (one a line)` : example}
                  takes={values}
                  values={it.values}
                  disabled={disabled}
                  fault={faultOfValues}
                  onChange={(taken) => set(index, { values: taken })}
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
            <FieldFault refusal={refusal} at={at} />
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

type Fault = ReturnType<typeof errorProps>;

interface ValuesFieldProps {
  label: string;
  placeholder: string;
  takes: "one" | "many";
  values: string[];
  disabled: boolean;
  fault: Fault;
  onChange: (values: string[]) => void;
}

/** Values as text. What was typed stays as it was, spaces and empty lines too, while it means the same. */
function ValuesField(props: ValuesFieldProps) {
  const { label, placeholder, takes, values, disabled, fault, onChange } = props;
  const [text, setText] = useState("");
  const isSame = JSON.stringify(readValues(text, takes)) === JSON.stringify(values);
  return (
    <textarea
      rows={1}
      class="values"
      aria-label={label}
      placeholder={placeholder}
      value={isSame ? text : values.join("\n")}
      disabled={disabled}
      {...fault}
      onInput={(event) => {
        setText(event.currentTarget.value);
        onChange(readValues(event.currentTarget.value, takes));
      }}
    />
  );
}

/** The condition with another operator, and with what of its values that one can take. */
export function withOperator(was: Condition, operator: Operator): Condition {
  const takes = OPERATORS[operator].values;
  // A key of a segment is no value of an attribute, nor the other way round.
  const isOther = asksAttribute(operator) !== asksAttribute(was.operator);
  const kept = takes === "none" || isOther ? [] : was.values;
  return {
    attribute: asksAttribute(operator) ? (was.attribute ?? "") : null,
    operator,
    values: takes === "one" ? kept.slice(0, 1) : kept,
  };
}

interface SegmentsOfProps {
  /** Which condition they are of. */
  label: string;
  keys: string[];
  segments: Segment[];
  disabled: boolean;
  fault: Fault;
  onChange: (keys: string[]) => void;
}

/** The segments of a condition: any of them will do. */
function SegmentsOf({ label, keys, segments, disabled, fault, onChange }: SegmentsOfProps) {
  const left = segments.filter((it) => !keys.includes(it.key));
  return (
    <div class="chosen">
      {keys.map((key) => (
        <span class="chip" key={key}>
          <span class="chip-part value" title={segments.find((it) => it.key === key)?.name}>
            {key}
          </span>
          {!disabled && (
            <button
              type="button"
              class="bare"
              aria-label={`Remove ${key} of ${label}`}
              onClick={() => onChange(keys.filter((it) => it !== key))}
            >
              <Icon name="close" />
            </button>
          )}
        </span>
      ))}
      {!disabled && left.length > 0 && (
        <select
          aria-label={`Segment of ${label}`}
          value=""
          {...fault}
          onChange={(event) => {
            const key = event.currentTarget.value;
            event.currentTarget.value = "";
            if (key) onChange([...keys, key]);
          }}
        >
          <option value="">{keys.length ? "or …" : "Choose a segment"}</option>
          {left.map((it) => (
            <option key={it.key} value={it.key}>
              {it.name} ({it.key})
            </option>
          ))}
        </select>
      )}
      {segments.length === 0 && keys.length === 0 && (
        <span class="quiet small">There are no segments yet.</span>
      )}
    </div>
  );
}

/** Values as they are typed, one a line: a pattern may have commas. */
export function readValues(text: string, values: "one" | "many"): string[] {
  const parts = values === "one" ? [text] : text.split("\n");
  return parts.map((it) => it.trim()).filter(Boolean);
}

export function conditionInWords({ attribute, operator, values }: Condition): string {
  const listed = values.slice(0, 3).join(" or ");
  const more = values.length > 3 ? ` or ${values.length - 3} more` : "";
  return [attribute, OPERATORS[operator].words, listed + more].filter(Boolean).join(" ");
}

/** All of the conditions in a line. */
export function conditionsInWords(conditions: Condition[]): string {
  return conditions.map(conditionInWords).join(" and ") || "everyone";
}

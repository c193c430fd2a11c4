/** Editor of the conditions of a rule or segment. All conditions must match. */

import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import type { Segment } from "../segments/segment";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { errorProps, FieldError } from "../ui/states";
import { type Condition, OPERATORS, type Operator, usesAttribute } from "./flag";

export const NEW_CONDITION: Condition = { attribute: "", operator: "equals", values: [] };

interface ConditionsProps {
  conditions: Condition[];
  /**
   * Segments that conditions can use; `null` in the conditions of a segment, which can use none.
   */
  segments: Segment[] | null;
  pointer: string;
  error: ApiError | null;
  onChange: (conditions: Condition[]) => void;
}

export function Conditions(props: ConditionsProps) {
  const { conditions, segments, pointer, error, onChange } = props;
  const set = (index: number, change: Partial<Condition>) =>
    onChange(conditions.map((it, at) => (at === index ? { ...it, ...change } : it)));
  const offered = (Object.keys(OPERATORS) as Operator[]).filter(
    (it) => segments !== null || usesAttribute(it),
  );
  return (
    <div class="lines">
      {conditions.length === 0 && (
        <p class="quiet small">
          {segments ? "No conditions. The rule matches everyone." : "No conditions."}
        </p>
      )}
      {conditions.map((it, index) => {
        const { values, example } = OPERATORS[it.operator];
        const at = `${pointer}/${index}`;
        const isSegmentCondition = !usesAttribute(it.operator);
        const invalidValues = errorProps(
          error,
          `${at}/values`,
          ...it.values.map((_, position) => `${at}/values/${position}`),
        );
        return (
          <div key={index}>
            <div class={isSegmentCondition ? "condition of-segments" : "condition"}>
              {!isSegmentCondition && (
                <input
                  aria-label={`Attribute of condition ${index + 1}`}
                  list="attributes"
                  placeholder="attribute"
                  value={it.attribute ?? ""}
                  {...errorProps(error, `${at}/attribute`)}
                  onInput={(event) => set(index, { attribute: event.currentTarget.value })}
                />
              )}
              <select
                aria-label={`Operator of condition ${index + 1}`}
                value={it.operator}
                {...errorProps(error, `${at}/operator`)}
                onChange={(event) =>
                  set(index, withOperator(it, event.currentTarget.value as Operator))
                }
              >
                {offered.map((id) => (
                  <option key={id} value={id}>
                    {OPERATORS[id].label}
                  </option>
                ))}
              </select>
              {isSegmentCondition ? (
                <SegmentPicker
                  label={`condition ${index + 1}`}
                  keys={it.values}
                  segments={segments ?? []}
                  invalid={invalidValues}
                  onChange={(keys) => set(index, { values: keys })}
                />
              ) : values === "none" ? (
                <span />
              ) : (
                <ValuesField
                  label={`Values of condition ${index + 1}`}
                  placeholder={values === "many" ? "One value per line" : example}
                  title={`Example: ${example}`}
                  count={values}
                  values={it.values}
                  invalid={invalidValues}
                  onChange={(changed) => set(index, { values: changed })}
                />
              )}
              <Button
                class="bare"
                aria-label={`Remove condition ${index + 1}`}
                onClick={() => onChange(conditions.filter((_, position) => position !== index))}
              >
                <Icon name="close" />
              </Button>
            </div>
            {["", "/attribute", "/operator"].map((field) => (
              <FieldError key={field} error={error} at={at + field} />
            ))}
            <FieldError
              error={error}
              at={`${at}/values`}
              message={isSegmentCondition && !it.values.length ? "Choose a segment." : undefined}
            />
            {it.values.map((value, index) => (
              <FieldError key={`${index} ${value}`} error={error} at={`${at}/values/${index}`} />
            ))}
          </div>
        );
      })}
      <div>
        <Button class="link small" onClick={() => onChange([...conditions, NEW_CONDITION])}>
          Add condition
        </Button>
      </div>
    </div>
  );
}

type InvalidProps = ReturnType<typeof errorProps>;

interface ValuesFieldProps {
  label: string;
  placeholder: string;
  title: string;
  count: "one" | "many";
  values: string[];
  invalid: InvalidProps;
  onChange: (values: string[]) => void;
}

/**
 * A field for values. Keeps the typed text, with spaces and empty lines, while its values are the
 * same.
 */
function ValuesField(props: ValuesFieldProps) {
  const { label, placeholder, title, count, values, invalid, onChange } = props;
  const [text, setText] = useState("");
  const isSame = JSON.stringify(readValues(text, count)) === JSON.stringify(values);
  return (
    <textarea
      rows={1}
      class="values"
      aria-label={label}
      placeholder={placeholder}
      title={title}
      value={isSame ? text : values.join("\n")}
      {...invalid}
      onInput={(event) => {
        setText(event.currentTarget.value);
        onChange(readValues(event.currentTarget.value, count));
      }}
    />
  );
}

/** Changes the operator of a condition and keeps the values that the new operator accepts. */
export function withOperator(was: Condition, operator: Operator): Condition {
  const count = OPERATORS[operator].values;
  // Segment keys are not attribute values.
  const isOther = usesAttribute(operator) !== usesAttribute(was.operator);
  const kept = count === "none" || isOther ? [] : was.values;
  return {
    attribute: usesAttribute(operator) ? (was.attribute ?? "") : null,
    operator,
    values: count === "one" ? kept.slice(0, 1) : kept,
  };
}

interface SegmentPickerProps {
  /** Name of the condition. */
  label: string;
  keys: string[];
  segments: Segment[];
  invalid: InvalidProps;
  onChange: (keys: string[]) => void;
}

/** Selects the segments of a condition, of which one must match. */
function SegmentPicker({ label, keys, segments, invalid, onChange }: SegmentPickerProps) {
  const left = segments.filter((it) => !keys.includes(it.key));
  return (
    <div class="chosen">
      {keys.map((key) => (
        <span class="chip" key={key}>
          <span class="chip-part value" title={segments.find((it) => it.key === key)?.name}>
            {key}
          </span>
          <Button
            class="bare"
            aria-label={`Remove ${key} of ${label}`}
            onClick={() => onChange(keys.filter((it) => it !== key))}
          >
            <Icon name="close" />
          </Button>
        </span>
      ))}
      {left.length > 0 && (
        <select
          aria-label={`Segment of ${label}`}
          value=""
          {...invalid}
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
        <span class="quiet small">No segments yet.</span>
      )}
    </div>
  );
}

/** Parses values, one per line: patterns can contain commas. */
export function readValues(text: string, values: "one" | "many"): string[] {
  const parts = values === "one" ? [text] : text.split("\n");
  return parts.map((it) => it.trim()).filter(Boolean);
}

export function describeCondition({ attribute, operator, values }: Condition): string {
  const listed = values.slice(0, 3).join(" or ");
  const more = values.length > 3 ? ` or ${values.length - 3} more` : "";
  return [attribute, OPERATORS[operator].label, listed + more].filter(Boolean).join(" ");
}

/** `true` if a condition has the attribute and the values that its operator needs. */
export function isComplete({ attribute, operator, values }: Condition): boolean {
  const hasAttribute = Boolean(attribute) || !usesAttribute(operator);
  return hasAttribute && (values.length > 0 || OPERATORS[operator].values === "none");
}

/** Describes all conditions in one line. */
export function describeConditions(conditions: Condition[]): string {
  return conditions.map(describeCondition).join(" and ") || "everyone";
}

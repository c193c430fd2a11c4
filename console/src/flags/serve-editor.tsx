/** What is served: one variant, variants by share, or nothing. */

import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { Icon } from "../ui/icons";
import { errorProps, FieldFault } from "../ui/states";
import { type Draft, isWeight, type Serve, sumOf } from "./flag";

type Mode = "variant" | "rollout" | "default";

interface ServeEditorProps {
  serve: Serve;
  variants: Draft["variants"];
  /** Where it stands in the body, for what the API refuses. */
  pointer: string;
  refusal: ApiError | null;
  label: string;
  disabled: boolean;
  onChange: (serve: Serve) => void;
}

export function ServeEditor(props: ServeEditorProps) {
  const { serve, variants, pointer, refusal, label, disabled, onChange } = props;
  const mode: Mode = serve.rollout.length ? "rollout" : serve.variant ? "variant" : "default";
  const first = variants[0]?.key ?? "";
  const choose = (next: Mode) => {
    if (next === "variant") onChange({ variant: first, rollout: [] });
    else if (next === "default") onChange({ variant: null, rollout: [] });
    else onChange({ variant: null, rollout: evenly(variants.map((it) => it.key)) });
  };
  const setEntry = (index: number, change: Partial<Serve["rollout"][number]>) =>
    onChange({
      variant: null,
      rollout: serve.rollout.map((it, at) => (at === index ? { ...it, ...change } : it)),
    });
  const sum = sumOf(serve);
  const isHundred = Math.abs(sum - 100) < 1e-9;
  return (
    <div class="lines">
      <div class="form-row">
        <select
          aria-label={label}
          value={mode}
          disabled={disabled}
          {...errorProps(refusal, pointer, `${pointer}/rollout`)}
          onChange={(event) => choose(event.currentTarget.value as Mode)}
        >
          <option value="variant">Serve a variant</option>
          <option value="rollout">Serve variants by share</option>
          <option value="default">Serve nothing: the application’s own default</option>
        </select>
        {mode === "variant" && (
          <VariantSelect
            label={`${label}: variant`}
            value={serve.variant ?? ""}
            variants={variants}
            disabled={disabled}
            fault={errorProps(refusal, `${pointer}/variant`)}
            onChange={(variant) => onChange({ variant, rollout: [] })}
          />
        )}
      </div>
      <FieldFault refusal={refusal} at={pointer} />
      <FieldFault refusal={refusal} at={`${pointer}/variant`} />
      {mode === "rollout" && (
        <>
          {serve.rollout.map((it, index) => (
            <div key={index}>
              <div class="weight">
                <VariantSelect
                  label={`${label}: variant ${index + 1}`}
                  value={it.variant}
                  variants={variants}
                  disabled={disabled}
                  fault={errorProps(refusal, `${pointer}/rollout/${index}/variant`)}
                  onChange={(variant) => setEntry(index, { variant })}
                />
                <WeightField
                  label={`${label}: weight of ${it.variant}`}
                  weight={it.weight}
                  faultId={`weight${pointer}/${index}`}
                  fault={errorProps(refusal, `${pointer}/rollout/${index}/weight`)}
                  disabled={disabled}
                  onChange={(weight) => setEntry(index, { weight })}
                />
                <span class="share" aria-hidden="true">
                  <i style={{ width: `${sum && it.weight ? (it.weight / sum) * 100 : 0}%` }} />
                </span>
                {!disabled && (
                  <button
                    type="button"
                    class="bare"
                    aria-label={`Remove ${it.variant}`}
                    onClick={() =>
                      onChange({
                        variant: null,
                        rollout: serve.rollout.filter((_, at) => at !== index),
                      })
                    }
                  >
                    <Icon name="close" />
                  </button>
                )}
              </div>
              {!isWeight(it) && (
                <p class="fault" id={`weight${pointer}/${index}`}>
                  {NO_WEIGHT}
                </p>
              )}
              <FieldFault refusal={refusal} at={`${pointer}/rollout/${index}/variant`} />
              {isWeight(it) && (
                <FieldFault refusal={refusal} at={`${pointer}/rollout/${index}/weight`} />
              )}
            </div>
          ))}
          <FieldFault refusal={refusal} at={`${pointer}/rollout`} />
          <div class="form-row small">
            <span class={isHundred ? "quiet" : "fault"}>
              {isHundred
                ? "The shares add up to 100."
                : `The shares add up to ${round(sum)}, not 100.`}
            </span>
            {!disabled && sum > 0 && !isHundred && (
              <button
                type="button"
                class="link small"
                onClick={() => onChange({ variant: null, rollout: toHundred(serve.rollout) })}
              >
                Make it 100
              </button>
            )}
            {!disabled && (
              <button
                type="button"
                class="link small"
                onClick={() =>
                  onChange({
                    variant: null,
                    rollout: [...serve.rollout, { variant: first, weight: 0 }],
                  })
                }
              >
                Add a share
              </button>
            )}
          </div>
        </>
      )}
    </div>
  );
}

/** What is wrong with a weight that is no number. */
export const NO_WEIGHT = "Write a number of at most three decimals, such as 12.5.";

/** A weight as it is typed: `NaN` where that is none yet. What has too many decimals is none either, since
 *  the API would refuse it. */
export function readWeight(text: string): number {
  const number = text.trim().replace(",", ".");
  return /^(\d+\.?\d{0,3}|\.\d{1,3})$/.test(number) ? Number(number) : Number.NaN;
}

interface WeightFieldProps {
  label: string;
  weight: number;
  faultId: string;
  fault: ReturnType<typeof errorProps>;
  disabled: boolean;
  onChange: (weight: number) => void;
}

/** A weight as text. What was typed stays as it was while it means the same: `0.` is on its way to `0.5`. */
function WeightField(props: WeightFieldProps) {
  const { label, weight, faultId, fault, disabled, onChange } = props;
  const [text, setText] = useState("");
  const isSame = Object.is(readWeight(text), weight);
  const isNumber = Number.isFinite(weight);
  return (
    <input
      inputMode="decimal"
      autocomplete="off"
      class="number"
      aria-label={label}
      value={isSame ? text : isNumber ? weight : ""}
      disabled={disabled}
      {...(isNumber ? fault : { "aria-invalid": true, "aria-describedby": faultId })}
      onInput={(event) => {
        setText(event.currentTarget.value);
        onChange(readWeight(event.currentTarget.value));
      }}
    />
  );
}

const round = (value: number) => Math.round(value * 1000) / 1000;

/** Shares of 100 for all of these, the rest of the division for the first. */
function evenly(keys: string[]): Serve["rollout"] {
  const each = Math.floor(100 / Math.max(1, keys.length));
  return keys.map((variant, index) => ({
    variant,
    weight: index === 0 ? 100 - each * (keys.length - 1) : each,
  }));
}

/** The same shares with a sum of 100, to three decimals, what is left over with the largest. */
export function toHundred(rollout: Serve["rollout"]): Serve["rollout"] {
  const sum = sumOf({ rollout });
  const scaled = rollout.map((it) => ({ ...it, weight: round(((it.weight || 0) / sum) * 100) }));
  const largest = scaled.reduce(
    (best, it, index) => (it.weight > (scaled[best]?.weight ?? 0) ? index : best),
    0,
  );
  const others = scaled.reduce(
    (total, it, index) => (index === largest ? total : total + it.weight),
    0,
  );
  return scaled.map((it, index) =>
    index === largest ? { ...it, weight: round(100 - others) } : it,
  );
}

interface VariantSelectProps {
  label: string;
  value: string;
  variants: Draft["variants"];
  disabled: boolean;
  none?: string;
  fault?: ReturnType<typeof errorProps>;
  onChange: (key: string) => void;
}

export function VariantSelect({
  label,
  value,
  variants,
  disabled,
  none,
  fault,
  onChange,
}: VariantSelectProps) {
  return (
    <select
      aria-label={label}
      value={value}
      disabled={disabled}
      {...fault}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {none !== undefined && <option value="">{none}</option>}
      {!variants.some((it) => it.key === value) && value && (
        <option value={value}>{value} (no such variant)</option>
      )}
      {variants.map((it, index) => (
        <option key={index} value={it.key}>
          {it.key || "…"}
        </option>
      ))}
    </select>
  );
}

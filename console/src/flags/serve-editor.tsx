/** Editor of a served value: a variant, a percentage rollout, or the default in code. */

import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { errorProps, FieldError } from "../ui/states";
import { type Draft, describeServe, isWeight, type Serve, sumOf } from "./flag";

type Mode = "variant" | "rollout" | "default";

interface ServeEditorProps {
  serve: Serve;
  variants: Draft["variants"];
  /** JSON pointer of the value, for its errors. */
  pointer: string;
  error: ApiError | null;
  label: string;
  onChange: (serve: Serve) => void;
}

export function ServeEditor(props: ServeEditorProps) {
  const { serve, variants, pointer, error, label, onChange } = props;
  const mode: Mode = serve.rollout.length ? "rollout" : serve.variant ? "variant" : "default";
  const first = variants[0]?.key ?? "";
  const choose = (next: Mode) => {
    if (next === "variant") onChange({ variant: first, rollout: [] });
    else if (next === "default") onChange({ variant: null, rollout: [] });
    else onChange({ variant: null, rollout: evenly(variants.map((it) => it.key)) });
  };
  /** The weight that the user changed last, which balancing keeps. */
  const [kept, setKept] = useState(0);
  const setRollout = (rollout: Serve["rollout"]) => onChange({ variant: null, rollout });
  const setVariant = (index: number, variant: string) =>
    setRollout(serve.rollout.map((it, at) => (at === index ? { ...it, variant } : it)));
  const setWeight = (index: number, weight: number) => {
    setKept(index);
    const changed = serve.rollout.map((it, at) => (at === index ? { ...it, weight } : it));
    // One of two percentages determines the other.
    setRollout(changed.length === 2 ? (balance(changed, index) ?? changed) : changed);
  };
  const unused = variants.find((it) => !serve.rollout.some((one) => one.variant === it.key));
  const sum = sumOf(serve);
  const isHundred = Math.abs(sum - 100) < 1e-9;
  const balanced = isHundred ? null : balance(serve.rollout, kept);
  return (
    <div class="lines">
      <div class="form-row">
        <select
          aria-label={label}
          value={mode}
          {...errorProps(error, pointer, `${pointer}/rollout`)}
          onChange={(event) => choose(event.currentTarget.value as Mode)}
        >
          <option value="variant">Serve a variant</option>
          <option value="rollout">Percentage rollout</option>
          <option value="default">Use the default in code</option>
        </select>
        {mode === "variant" && (
          <VariantSelect
            label={`${label}: variant`}
            value={serve.variant ?? ""}
            variants={variants}
            invalid={errorProps(error, `${pointer}/variant`)}
            onChange={(variant) => onChange({ variant, rollout: [] })}
          />
        )}
      </div>
      <FieldError error={error} at={pointer} />
      <FieldError error={error} at={`${pointer}/variant`} />
      {mode === "rollout" && (
        <>
          {serve.rollout.map((it, index) => (
            <div key={index}>
              <div class="weight">
                <VariantSelect
                  label={`${label}: variant ${index + 1}`}
                  value={it.variant}
                  variants={variants}
                  invalid={errorProps(error, `${pointer}/rollout/${index}/variant`)}
                  onChange={(variant) => setVariant(index, variant)}
                />
                <WeightField
                  label={`${label}: weight of ${it.variant}`}
                  weight={it.weight}
                  emptyErrorId={`weight${pointer}/${index}`}
                  invalid={errorProps(error, `${pointer}/rollout/${index}/weight`)}
                  onChange={(weight) => setWeight(index, weight)}
                />
                <span class="share" aria-hidden="true">
                  <i style={{ width: `${sum && it.weight ? (it.weight / sum) * 100 : 0}%` }} />
                </span>
                <Button
                  class="bare"
                  aria-label={`Remove ${it.variant}`}
                  onClick={() => setRollout(serve.rollout.filter((_, at) => at !== index))}
                >
                  <Icon name="close" />
                </Button>
              </div>
              {!isWeight(it) && (
                <p class="field-error" id={`weight${pointer}/${index}`}>
                  {NO_WEIGHT}
                </p>
              )}
              <FieldError error={error} at={`${pointer}/rollout/${index}/variant`} />
              {isWeight(it) && (
                <FieldError error={error} at={`${pointer}/rollout/${index}/weight`} />
              )}
            </div>
          ))}
          <FieldError error={error} at={`${pointer}/rollout`} />
          <div class="form-row small">
            <span class={isHundred ? "quiet" : "field-error"}>Adds up to {round(sum)}%.</span>
            {balanced && (
              <Button
                class="link small"
                title={describeServe({ variant: null, rollout: balanced })}
                onClick={() => setRollout(balanced)}
              >
                Balance: {describeServe({ variant: null, rollout: balanced })}
              </Button>
            )}
            <Button
              class="link small"
              onClick={() =>
                setRollout([...serve.rollout, { variant: unused?.key ?? first, weight: 0 }])
              }
            >
              Add variant
            </Button>
          </div>
        </>
      )}
    </div>
  );
}

export const NO_WEIGHT = "Enter a number with up to three decimals, such as 12.5.";

/**
 * Parses a weight. Returns `NaN` for an empty or invalid one, such as one with more than three
 * decimals.
 */
export function readWeight(text: string): number {
  const number = text.trim().replace(",", ".");
  return /^(\d+\.?\d{0,3}|\.\d{1,3})$/.test(number) ? Number(number) : Number.NaN;
}

interface WeightFieldProps {
  label: string;
  weight: number;
  emptyErrorId: string;
  invalid: ReturnType<typeof errorProps>;
  onChange: (weight: number) => void;
}

/** A weight field. Keeps the typed text while its value is the same: `0.` becomes `0.5`. */
function WeightField(props: WeightFieldProps) {
  const { label, weight, emptyErrorId, invalid, onChange } = props;
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
      {...(isNumber ? invalid : { "aria-invalid": true, "aria-describedby": emptyErrorId })}
      onInput={(event) => {
        setText(event.currentTarget.value);
        onChange(readWeight(event.currentTarget.value));
      }}
    />
  );
}

const round = (value: number) => Math.round(value * 1000) / 1000;

/** Divides 100 evenly. The first variant gets the remainder. */
function evenly(keys: string[]): Serve["rollout"] {
  const each = Math.floor(100 / Math.max(1, keys.length));
  return keys.map((variant, index) => ({
    variant,
    weight: index === 0 ? 100 - each * (keys.length - 1) : each,
  }));
}

/**
 * Changes the other weights so that the sum is 100. They keep their proportions, and the number of
 * decimals. Returns `null` if that is impossible.
 */
export function balance(rollout: Serve["rollout"], kept: number): Serve["rollout"] | null {
  const left = 100 - (rollout[kept]?.weight ?? Number.NaN);
  const others = rollout.flatMap((_, index) => (index === kept ? [] : [index]));
  const largest = others.reduce<number | undefined>((best, index) => {
    const weightOf = (at: number) => rollout[at]?.weight || 0;
    return best === undefined || weightOf(index) > weightOf(best) ? index : best;
  }, undefined);
  if (largest === undefined || !(left >= 0)) return null;
  const sum = sumOf({ rollout: others.flatMap((it) => rollout[it] ?? []) });
  const decimals = Math.max(...rollout.map(({ weight }) => decimalsOf(weight)));
  const unit = 10 ** -decimals;
  const shares = rollout.map(({ weight }, index) => {
    if (index === kept) return weight;
    const share = sum > 0 ? ((weight || 0) / sum) * left : left / others.length;
    return Math.floor(round(share / unit)) * unit;
  });
  // The largest of the others gets what rounding leaves.
  const rest =
    100 - shares.reduce((total, it, index) => (index === largest ? total : total + it), 0);
  return rollout.map((it, index) => ({
    ...it,
    weight: round(index === largest ? rest : (shares[index] ?? 0)),
  }));
}

const decimalsOf = (weight: number) => (String(round(weight || 0)).split(".")[1] ?? "").length;

interface VariantSelectProps {
  label: string;
  value: string;
  variants: Draft["variants"];
  none?: string;
  invalid?: ReturnType<typeof errorProps>;
  onChange: (key: string) => void;
}

export function VariantSelect({
  label,
  value,
  variants,
  none,
  invalid,
  onChange,
}: VariantSelectProps) {
  return (
    <select
      aria-label={label}
      value={value}
      {...invalid}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {none !== undefined && <option value="">{none}</option>}
      {!variants.some((it) => it.key === value) && value && (
        <option value={value}>{value} (unknown variant)</option>
      )}
      {variants.map((it, index) => (
        <option key={index} value={it.key}>
          {it.key || "…"}
        </option>
      ))}
    </select>
  );
}

/** The lists of a flag besides its rules: variants, individuals, prerequisites. */

import type { ApiError } from "../api/client";
import { Icon } from "../ui/icons";
import { errorProps, FieldFault } from "../ui/states";
import type { Draft, Flag } from "./flag";
import { VariantSelect } from "./serve-editor";

interface PartProps {
  draft: Draft;
  refusal: ApiError | null;
  disabled: boolean;
  onChange: (change: Partial<Draft>) => void;
}

interface LinesProps<T> {
  title: string;
  add: string;
  empty: string;
  items: T[];
  fresh: () => T;
  disabled: boolean;
  refusal: ApiError | null;
  pointer: string;
  members: string[];
  /** What stands above the fields of all lines; each field has a name of its own besides. */
  heads?: string[];
  onChange: (items: T[]) => void;
  line: (item: T, set: (change: Partial<T>) => void, index: number) => preact.ComponentChildren;
}

/** A list that lines are added to and removed from, with what the API says below each. */
function Lines<T>(props: LinesProps<T>) {
  const { title, add, empty, items, fresh, disabled, refusal, pointer, members, heads } = props;
  const { onChange, line } = props;
  return (
    <section class="part">
      <header>
        <h2>{title}</h2>
        {!disabled && (
          <button type="button" onClick={() => onChange([...items, fresh()])}>
            {add}
          </button>
        )}
      </header>
      {items.length === 0 && <p class="quiet">{empty}</p>}
      <FieldFault refusal={refusal} at={pointer} />
      <div class={heads ? "lines in-columns" : "lines"}>
        {heads && items.length > 0 && (
          <div class="form-row heads" aria-hidden="true">
            {heads.map((it) => (
              <small key={it}>{it}</small>
            ))}
          </div>
        )}
        {items.map((item, index) => (
          <div key={index}>
            <div class="form-row">
              {line(
                item,
                (change) =>
                  onChange(items.map((it, at) => (at === index ? { ...it, ...change } : it))),
                index,
              )}
              {!disabled && (
                <button
                  type="button"
                  class="bare"
                  aria-label={`Remove ${title.toLowerCase()} ${index + 1}`}
                  onClick={() => onChange(items.filter((_, at) => at !== index))}
                >
                  <Icon name="close" />
                </button>
              )}
            </div>
            {["", ...members.map((it) => `/${it}`)].map((member) => (
              <FieldFault key={member} refusal={refusal} at={`${pointer}/${index}${member}`} />
            ))}
          </div>
        ))}
      </div>
    </section>
  );
}

export function VariantsEditor({ draft, refusal, disabled, onChange }: PartProps) {
  return (
    <Lines
      title="Variants"
      add="Add a variant"
      empty="Without variants the application’s own default is served."
      items={draft.variants}
      fresh={() => ({ key: "", name: "", value: draft.type === "boolean" ? "true" : "" })}
      disabled={disabled}
      refusal={refusal}
      pointer="/variants"
      members={["key", "name", "value"]}
      heads={["Key", "Name", "Value"]}
      onChange={(variants) => onChange({ variants })}
      line={(it, set, index) => (
        <>
          <input
            aria-label={`Key of variant ${index + 1}`}
            {...errorProps(refusal, `/variants/${index}/key`)}
            placeholder="key"
            value={it.key}
            disabled={disabled}
            onInput={(event) => set({ key: event.currentTarget.value })}
          />
          <input
            aria-label={`Name of variant ${index + 1}`}
            {...errorProps(refusal, `/variants/${index}/name`)}
            placeholder="name"
            value={it.name}
            disabled={disabled}
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
          {draft.type === "boolean" ? (
            <select
              aria-label={`Value of variant ${index + 1}`}
              {...errorProps(refusal, `/variants/${index}/value`)}
              value={it.value}
              disabled={disabled}
              onChange={(event) => set({ value: event.currentTarget.value })}
            >
              <option>true</option>
              <option>false</option>
            </select>
          ) : (
            <textarea
              rows={1}
              class="values"
              aria-label={`Value of variant ${index + 1}`}
              {...errorProps(refusal, `/variants/${index}/value`)}
              placeholder="value"
              value={it.value}
              disabled={disabled}
              onInput={(event) => set({ value: event.currentTarget.value })}
            />
          )}
        </>
      )}
    />
  );
}

export function TargetsEditor({ draft, refusal, disabled, onChange }: PartProps) {
  return (
    <Lines
      title="Individuals"
      add="Add an individual"
      empty="Nobody has an answer of their own."
      items={draft.targets}
      fresh={() => ({
        kind: "identifier" as const,
        value: "",
        variant: draft.variants[0]?.key ?? "",
      })}
      disabled={disabled}
      refusal={refusal}
      pointer="/targets"
      members={["value", "variant"]}
      onChange={(targets) => onChange({ targets })}
      line={(it, set, index) => (
        <>
          <input
            class="grow"
            aria-label={`Targeting key ${index + 1}`}
            {...errorProps(refusal, `/targets/${index}/value`)}
            placeholder="targeting key"
            value={it.value}
            disabled={disabled}
            onInput={(event) => set({ value: event.currentTarget.value })}
          />
          <VariantSelect
            label={`Variant of individual ${index + 1}`}
            fault={errorProps(refusal, `/targets/${index}/variant`)}
            value={it.variant}
            variants={draft.variants}
            disabled={disabled}
            onChange={(variant) => set({ variant })}
          />
        </>
      )}
    />
  );
}

export function PrerequisitesEditor({
  draft,
  refusal,
  disabled,
  onChange,
  flags,
}: PartProps & { flags: Flag[] }) {
  const others = flags.filter((it) => it.key !== draft.key);
  return (
    <Lines
      title="Prerequisites"
      add="Add a prerequisite"
      empty="It needs no other flag."
      items={draft.prerequisites}
      fresh={() => ({ flagKey: others[0]?.key ?? "", variant: others[0]?.variants[0]?.key ?? "" })}
      disabled={disabled}
      refusal={refusal}
      pointer="/prerequisites"
      members={["flagKey", "variant"]}
      onChange={(prerequisites) => onChange({ prerequisites })}
      line={(it, set, index) => (
        <>
          <select
            class="grow"
            aria-label={`Flag of prerequisite ${index + 1}`}
            {...errorProps(refusal, `/prerequisites/${index}/flagKey`)}
            value={it.flagKey}
            disabled={disabled}
            onChange={(event) => {
              const flagKey = event.currentTarget.value;
              set({
                flagKey,
                variant: flags.find((flag) => flag.key === flagKey)?.variants[0]?.key ?? "",
              });
            }}
          >
            {!others.some((flag) => flag.key === it.flagKey) && (
              <option value={it.flagKey}>{it.flagKey || "…"}</option>
            )}
            {others.map((flag) => (
              <option key={flag.key}>{flag.key}</option>
            ))}
          </select>
          <span class="quiet">is</span>
          <VariantSelect
            label={`Variant of prerequisite ${index + 1}`}
            fault={errorProps(refusal, `/prerequisites/${index}/variant`)}
            value={it.variant}
            variants={flags.find((flag) => flag.key === it.flagKey)?.variants ?? []}
            disabled={disabled}
            onChange={(variant) => set({ variant })}
          />
        </>
      )}
    />
  );
}

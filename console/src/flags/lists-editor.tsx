/** Editors for the lists of a flag: variants, individual users and prerequisites. */

import type { ApiError } from "../api/client";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { Part } from "../ui/layout";
import { errorProps, FieldError } from "../ui/states";
import type { Draft, Flag } from "./flag";
import { VariantSelect } from "./serve-editor";

interface PartProps {
  draft: Draft;
  error: ApiError | null;
  onChange: (change: Partial<Draft>) => void;
}

interface LinesProps<T> {
  title: string;
  add: string;
  empty: string;
  items: T[];
  fresh: () => T;
  error: ApiError | null;
  pointer: string;
  fields: string[];
  /** Column headings. Each field also has its own label. */
  headings?: string[];
  onChange: (items: T[]) => void;
  line: (item: T, set: (change: Partial<T>) => void, index: number) => preact.ComponentChildren;
}

/** A list with buttons to add and remove lines, and errors below each line. */
function Lines<T>(props: LinesProps<T>) {
  const { title, add, empty, items, fresh, error, pointer, fields, headings } = props;
  const { onChange, line } = props;
  return (
    <Part
      title={title}
      actions=<Button onClick={() => onChange([...items, fresh()])}>{add}</Button>
    >
      {items.length === 0 && <p class="quiet">{empty}</p>}
      <FieldError error={error} at={pointer} />
      <div class={headings ? "lines in-columns" : "lines"}>
        {headings && items.length > 0 && (
          <div class="form-row quiet" aria-hidden="true">
            {headings.map((it) => (
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
              <Button
                class="bare"
                aria-label={`${add.replace("Add", "Remove")} ${index + 1}`}
                onClick={() => onChange(items.filter((_, at) => at !== index))}
              >
                <Icon name="close" />
              </Button>
            </div>
            {["", ...fields.map((it) => `/${it}`)].map((field) => (
              <FieldError key={field} error={error} at={`${pointer}/${index}${field}`} />
            ))}
          </div>
        ))}
      </div>
    </Part>
  );
}

export function VariantsEditor({ draft, error, onChange }: PartProps) {
  return (
    <Lines
      title="Variants"
      add="Add variant"
      empty="No variants. Everyone gets the default in code."
      items={draft.variants}
      fresh={() => ({ key: "", name: "", value: draft.type === "boolean" ? "true" : "" })}
      error={error}
      pointer="/variants"
      fields={["key", "name", "value"]}
      headings={["Key", "Name", "Value"]}
      onChange={(variants) => onChange({ variants })}
      line={(it, set, index) => (
        <>
          <input
            aria-label={`Key of variant ${index + 1}`}
            {...errorProps(error, `/variants/${index}/key`)}
            placeholder="key"
            value={it.key}
            onInput={(event) => set({ key: event.currentTarget.value })}
          />
          <input
            aria-label={`Name of variant ${index + 1}`}
            {...errorProps(error, `/variants/${index}/name`)}
            placeholder="name"
            value={it.name}
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
          {draft.type === "boolean" ? (
            <select
              aria-label={`Value of variant ${index + 1}`}
              {...errorProps(error, `/variants/${index}/value`)}
              value={it.value}
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
              {...errorProps(error, `/variants/${index}/value`)}
              placeholder="value"
              value={it.value}
              onInput={(event) => set({ value: event.currentTarget.value })}
            />
          )}
        </>
      )}
    />
  );
}

export function TargetsEditor({ draft, error, onChange }: PartProps) {
  return (
    <Lines
      title="Individual users"
      add="Add user"
      empty="None targeted."
      items={draft.targets}
      fresh={() => ({
        kind: "identifier" as const,
        value: "",
        variant: draft.variants[0]?.key ?? "",
      })}
      error={error}
      pointer="/targets"
      fields={["value", "variant"]}
      onChange={(targets) => onChange({ targets })}
      line={(it, set, index) => (
        <>
          <input
            class="grow"
            aria-label={`Targeting key ${index + 1}`}
            {...errorProps(error, `/targets/${index}/value`)}
            placeholder="targeting key"
            value={it.value}
            onInput={(event) => set({ value: event.currentTarget.value })}
          />
          <VariantSelect
            label={`Variant of user ${index + 1}`}
            invalid={errorProps(error, `/targets/${index}/variant`)}
            value={it.variant}
            variants={draft.variants}
            onChange={(variant) => set({ variant })}
          />
        </>
      )}
    />
  );
}

export function PrerequisitesEditor({
  draft,
  error,
  onChange,
  flags,
}: PartProps & { flags: Flag[] }) {
  const others = flags.filter((it) => it.key !== draft.key);
  return (
    <Lines
      title="Prerequisites"
      add="Add prerequisite"
      empty="No prerequisites."
      items={draft.prerequisites}
      fresh={() => ({ flagKey: others[0]?.key ?? "", variant: others[0]?.variants[0]?.key ?? "" })}
      error={error}
      pointer="/prerequisites"
      fields={["flagKey", "variant"]}
      onChange={(prerequisites) => onChange({ prerequisites })}
      line={(it, set, index) => (
        <>
          <select
            class="grow"
            aria-label={`Flag of prerequisite ${index + 1}`}
            {...errorProps(error, `/prerequisites/${index}/flagKey`)}
            value={it.flagKey}
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
            invalid={errorProps(error, `/prerequisites/${index}/variant`)}
            value={it.variant}
            variants={flags.find((flag) => flag.key === it.flagKey)?.variants ?? []}
            onChange={(variant) => set({ variant })}
          />
        </>
      )}
    />
  );
}

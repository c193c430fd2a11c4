/** The sentence box: what one types becomes filters, and filters are chips. */

import { useRef, useState } from "preact/hooks";
import { changed, go, useAddress, useStay } from "../address";
import { api, type Schemas, unwrapResponse } from "../api/client";
import { useCurrentProject } from "../caller";
import { useKeys } from "../keys";
import { Icon } from "../ui/icons";
import { showErrorToast, showToast } from "../ui/toast";
import {
  type Category,
  type Filter,
  filterParams,
  MOST_FILTERS,
  OPERATORS,
  takesValue,
  type View,
  withFilter,
} from "./filters";
import { loadCategories } from "./load";

type Interpretation = Schemas["InterpretedQuery"];

interface Understood {
  query: string;
  interpretation: Interpretation;
}

interface SentenceProps {
  view: View;
  categories: Category[] | undefined;
}

export function Sentence({ view, categories }: SentenceProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [text, setText] = useState("");
  const [told, setTold] = useState<Understood | null>(null);
  const stay = useStay();
  const [asking, setAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => input.current?.focus() });

  const put = (filters: Filter[]) => go(changed(address, filterParams(filters)));
  const search = (words: string) => go(changed(address, { q: words, cursor: null }));

  const ask = async () => {
    const query = text.trim();
    if (!query || asking) return;
    setAsking(true);
    const isHere = stay();
    try {
      // Whoever is faster than the page need not press Enter again.
      const known = categories ?? (await loadCategories(project));
      const read = await unwrapResponse(
        api.POST("/v0/errors/filters/interpret", {
          params: { query: { explain: true } },
          body: {
            projectId: project.slug,
            query,
            categories: known,
            currentFilters: view.filters,
          },
        }),
      );
      const filters = read.filters.filter(isOurs).slice(0, MOST_FILTERS);
      const interpretation = read.interpretation ?? { understood: [], ignored: [] };
      setTold({ query, interpretation });
      if (interpretation.understood.length) {
        // What was typed on since then is another sentence.
        setText((now) => (now.trim() === query ? "" : now));
        if (isHere()) put(filters);
        else {
          const href = changed(address, filterParams(filters));
          showToast(`“${query}” was understood.`, undefined, { href, text: "Show it" });
        }
      }
    } catch (error) {
      showErrorToast(error);
    } finally {
      setAsking(false);
    }
  };

  return (
    <div class="sentence">
      <form
        class="sentence-box"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <Icon name="search" />
        <input
          ref={input}
          value={text}
          maxLength={500}
          aria-label="Filter errors in words"
          placeholder={exampleOf(categories)}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <span class="key-hint" aria-hidden="true">
          {text ? "↵" : "/"}
        </span>
      </form>
      {told && (
        <Told told={told} onSearch={() => search(told.query)} onClose={() => setTold(null)} />
      )}
      <Chips view={view} categories={categories ?? []} onFilters={put} onSearch={search} />
    </div>
  );
}

/** Filters that queries of errors take; the interpreter knows operators for numbers besides. */
function isOurs(filter: Schemas["InterpretedErrorFilter"]): filter is Filter {
  return Object.hasOwn(OPERATORS, filter.operator);
}

/** A sentence of the project's own values. */
function exampleOf(categories: Category[] | undefined): string {
  const first = (id: string) => categories?.find((it) => it.id === id)?.values[0];
  const [environment, browser] = [first("environment"), first("browser")];
  const words = ["unhandled errors"];
  if (environment) words.push(`in ${environment}`);
  if (browser) words.push(`but not ${browser}`);
  return categories ? `Filter in words: ${words.join(" ")}` : "Filter in words";
}

interface ToldProps {
  told: Understood;
  onSearch: () => void;
  onClose: () => void;
}

/** The sentence as it was read: what was not understood is underlined. */
function Told({ told, onSearch, onClose }: ToldProps) {
  const { understood, ignored } = told.interpretation;
  if (understood.length && !ignored.length) return null;
  const letters = [...told.query];
  const parts: { text: string; lost: boolean }[] = [];
  let at = 0;
  for (const { from, to } of [...ignored].sort((one, other) => one.from - other.from)) {
    parts.push({ text: letters.slice(at, from).join(""), lost: false });
    parts.push({ text: letters.slice(from, to).join(""), lost: true });
    at = to;
  }
  parts.push({ text: letters.slice(at).join(""), lost: false });
  return (
    <p class="told" role="status">
      <span>
        “
        {parts.map((part, index) =>
          part.lost ? (
            <span class="lost" title="Not understood: nothing here is called so" key={index}>
              {part.text}
            </span>
          ) : (
            part.text
          ),
        )}
        ”
      </span>
      <span class="quiet">
        {understood.length
          ? "The underlined words were not understood."
          : "Nothing of this was understood."}
      </span>
      <button type="button" class="link" onClick={onSearch}>
        Search titles for it
      </button>
      <button type="button" class="bare" aria-label="Close" onClick={onClose}>
        <Icon name="close" />
      </button>
    </p>
  );
}

interface ChipsProps {
  view: View;
  categories: Category[];
  onFilters: (filters: Filter[]) => void;
  onSearch: (words: string) => void;
}

function Chips({ view, categories, onFilters, onSearch }: ChipsProps) {
  const { filters, search } = view;
  const replace = (index: number, filter: Filter) =>
    onFilters(filters.map((it, at) => (at === index ? filter : it)));
  const remove = (index: number) => onFilters(filters.filter((_, at) => at !== index));
  return (
    <div class="chips">
      {filters.map((filter, index) => (
        <Chip
          key={`${index} ${filter.categoryId}`}
          filter={filter}
          categories={categories}
          onChange={(it) => replace(index, it)}
          onRemove={() => remove(index)}
        />
      ))}
      {search && (
        <span class="chip">
          <span class="chip-part">title</span>
          <span class="chip-part quiet">has</span>
          <span class="chip-part">{search}</span>
          <button
            type="button"
            class="bare"
            aria-label="Remove the search"
            onClick={() => onSearch("")}
          >
            <Icon name="close" />
          </button>
        </span>
      )}
      {filters.length < MOST_FILTERS && (
        <label class="add-chip">
          <span class="hidden">Add a filter</span>
          <select
            value=""
            onChange={(event) => {
              const category = categories.find((it) => it.id === event.currentTarget.value);
              event.currentTarget.value = "";
              if (!category) return;
              const value = category.isBoolean ? "true" : (category.values[0] ?? "");
              const operator = value ? "is" : "is_set";
              onFilters(
                withFilter(filters, {
                  categoryId: category.id as Filter["categoryId"],
                  operator,
                  value,
                }),
              );
            }}
          >
            <option value="">+ Filter</option>
            {categories.map((it) => (
              <option key={it.id} value={it.id}>
                {it.label}
              </option>
            ))}
          </select>
        </label>
      )}
      {(filters.length > 1 || (filters.length > 0 && search)) && (
        <button
          type="button"
          class="link small"
          onClick={() => {
            onFilters([]);
          }}
        >
          Clear filters
        </button>
      )}
    </div>
  );
}

interface ChipProps {
  filter: Filter;
  categories: Category[];
  onChange: (filter: Filter) => void;
  onRemove: () => void;
}

/** One filter, each part of it to be changed where it stands; Delete removes it. */
function Chip({ filter, categories, onChange, onRemove }: ChipProps) {
  const category = categories.find((it) => it.id === filter.categoryId);
  const label = category?.label ?? filter.categoryId;
  const values = category?.isBoolean ? ["true", "false"] : (category?.values ?? []);
  const known = values.includes(filter.value) || !filter.value ? values : [filter.value, ...values];
  const isOpen = !category?.isBoolean && (values.length === 0 || /contains/.test(filter.operator));
  const operators = Object.entries(OPERATORS).filter(
    ([id]) => filter.categoryId !== "user" || !/contains/.test(id),
  );
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the key works in each of its parts.
    <span
      class="chip"
      onKeyDown={(event) => {
        const removes = event.key === "Delete" || event.key === "Backspace";
        if (removes && !(event.target instanceof HTMLInputElement)) {
          event.preventDefault();
          onRemove();
        }
      }}
    >
      <select
        class="chip-part"
        aria-label="Category"
        value={filter.categoryId}
        onChange={(event) => {
          const next = categories.find((it) => it.id === event.currentTarget.value);
          if (!next) return;
          const value = next.isBoolean ? "true" : (next.values[0] ?? "");
          const categoryId = next.id as Filter["categoryId"];
          onChange({ categoryId, operator: value ? "is" : "is_set", value });
        }}
      >
        {!category && <option value={filter.categoryId}>{label}</option>}
        {categories.map((it) => (
          <option key={it.id} value={it.id}>
            {it.label}
          </option>
        ))}
      </select>
      <select
        class="chip-part quiet"
        aria-label={`Operator of ${label}`}
        value={filter.operator}
        onChange={(event) => {
          const operator = event.currentTarget.value as Filter["operator"];
          const value = takesValue(operator) ? filter.value || (values[0] ?? "") : "";
          onChange({ ...filter, operator, value });
        }}
      >
        {operators.map(([id, words]) => (
          <option key={id} value={id}>
            {words}
          </option>
        ))}
      </select>
      {takesValue(filter.operator) &&
        (isOpen ? (
          <input
            class="chip-part"
            aria-label={`Value of ${label}`}
            value={filter.value}
            size={Math.min(40, Math.max(8, filter.value.length))}
            onChange={(event) => onChange({ ...filter, value: event.currentTarget.value })}
          />
        ) : (
          <select
            class="chip-part value"
            aria-label={`Value of ${label}`}
            value={filter.value}
            onChange={(event) => onChange({ ...filter, value: event.currentTarget.value })}
          >
            {known.map((value) => (
              <option key={value} value={value}>
                {value}
              </option>
            ))}
          </select>
        ))}
      <button
        type="button"
        class="bare"
        aria-label={`Remove the filter ${label}`}
        onClick={onRemove}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}

/** Natural-language filters: a sentence becomes filters, which are shown as chips. */

import { useRef, useState } from "preact/hooks";
import { changed, go, useAddress, usePageGuard } from "../address";
import { api, type Schemas, unwrapResponse } from "../api/client";
import { useCurrentProject } from "../caller";
import { useKeys } from "../keys";
import { own } from "../own";
import { Icon } from "../ui/icons";
import { showErrorToast, showToast } from "../ui/toast";
import {
  type Category,
  type Filter,
  filterParams,
  MAX_FILTERS,
  OPERATORS,
  takesValue,
  type View,
  withFilter,
} from "./filters";
import { loadCategories } from "./load";

type Interpretation = Schemas["InterpretedQuery"];

interface Result {
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
  const [result, setResult] = useState<Result | null>(null);
  const guardPage = usePageGuard();
  const [loading, setLoading] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => input.current?.focus() });

  const setFilters = (filters: Filter[]) => go(changed(address, filterParams(filters)));
  const search = (words: string) => go(changed(address, { q: words, cursor: null }));

  const interpret = async () => {
    const query = text.trim();
    if (!query || loading) return;
    setLoading(true);
    const isHere = guardPage();
    try {
      // The user can press Enter before the categories have loaded.
      const known = categories ?? (await loadCategories(project));
      const response = await unwrapResponse(
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
      const filters = response.filters.filter(isSupported).slice(0, MAX_FILTERS);
      const interpretation = response.interpretation ?? { understood: [], ignored: [] };
      setResult({ query, interpretation });
      if (interpretation.understood.length) {
        // Keeps text that was typed since the request.
        setText((current) => (current.trim() === query ? "" : current));
        if (isHere()) setFilters(filters);
        else {
          const href = changed(address, filterParams(filters));
          showToast(`Filters for “${query}” are ready.`, undefined, { href, text: "Apply" });
        }
      }
    } catch (error) {
      showErrorToast(error);
    } finally {
      setLoading(false);
    }
  };

  return (
    <div class="sentence">
      <form
        class="sentence-box"
        onSubmit={(event) => {
          event.preventDefault();
          void interpret();
        }}
      >
        <Icon name="search" />
        <input
          ref={input}
          value={text}
          maxLength={500}
          aria-label="Filter errors"
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
      {result && (
        <IgnoredWords
          result={result}
          onSearch={() => search(result.query)}
          onClose={() => setResult(null)}
        />
      )}
      <Chips view={view} categories={categories ?? []} onFilters={setFilters} onSearch={search} />
    </div>
  );
}

/** `true` for operators of error queries; the interpreter also returns operators for numbers. */
function isSupported(filter: Schemas["InterpretedErrorFilter"]): filter is Filter {
  return Object.hasOwn(OPERATORS, filter.operator);
}

/** Returns an example with values of the project. */
function exampleOf(categories: Category[] | undefined): string {
  const first = (id: string) => categories?.find((it) => it.id === id)?.values[0];
  const [environment, browser] = [first("environment"), first("browser")];
  const words = ["unhandled errors"];
  if (environment) words.push(`in ${environment}`);
  if (browser) words.push(`but not ${browser}`);
  return categories ? `Filter: ${words.join(" ")}` : "Filter";
}

interface IgnoredWordsProps {
  result: Result;
  onSearch: () => void;
  onClose: () => void;
}

/** The sentence, with ignored words underlined. */
function IgnoredWords({ result, onSearch, onClose }: IgnoredWordsProps) {
  const { understood, ignored } = result.interpretation;
  if (understood.length && !ignored.length) return null;
  const characters = [...result.query];
  const parts: { text: string; isIgnored: boolean }[] = [];
  let at = 0;
  for (const { from, to } of [...ignored].sort((one, other) => one.from - other.from)) {
    parts.push({ text: characters.slice(at, from).join(""), isIgnored: false });
    parts.push({ text: characters.slice(from, to).join(""), isIgnored: true });
    at = to;
  }
  parts.push({ text: characters.slice(at).join(""), isIgnored: false });
  return (
    <p class="interpretation" role="status">
      <span>
        “
        {parts.map((part, index) =>
          part.isIgnored ? (
            <span class="ignored-word" title="No matching value in this project" key={index}>
              {part.text}
            </span>
          ) : (
            part.text
          ),
        )}
        ”
      </span>
      <span class="quiet">
        {understood.length ? "Ignored the underlined words." : "Couldn’t turn that into a filter."}
      </span>
      <button type="button" class="link" onClick={onSearch}>
        Search titles for “{result.query}”
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
          <span class="chip-part">Title</span>
          <span class="chip-part quiet">contains</span>
          <span class="chip-part">{search}</span>
          <button
            type="button"
            class="bare"
            aria-label="Remove search"
            onClick={() => onSearch("")}
          >
            <Icon name="close" />
          </button>
        </span>
      )}
      {filters.length < MAX_FILTERS && (
        <label class="add-chip">
          <span class="hidden">Add filter</span>
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

const HANDLED: Record<string, string> = { true: "Handled", false: "Unhandled" };

/** A filter whose parts can be edited. The Delete key removes it. */
function Chip({ filter, categories, onChange, onRemove }: ChipProps) {
  const category = categories.find((it) => it.id === filter.categoryId);
  const label = category?.label ?? filter.categoryId;
  const values = category?.isBoolean ? ["true", "false"] : (category?.values ?? []);
  const known = values.includes(filter.value) || !filter.value ? values : [filter.value, ...values];
  const isOpen = !category?.isBoolean && (values.length === 0 || /contains/.test(filter.operator));
  const operators = Object.entries(OPERATORS).filter(
    ([id]) => filter.categoryId !== "user" || !/contains/.test(id),
  );
  // “Unhandled” says the same as “Handled is false” in one word.
  const isHandled = filter.categoryId === "handled" && filter.operator === "is";
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the key works in all parts of the chip.
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
      {!isHandled && (
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
      )}
      {!isHandled && (
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
      )}
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
                {(isHandled && own(HANDLED, value)) || value}
              </option>
            ))}
          </select>
        ))}
      <button type="button" class="bare" aria-label={`Remove filter ${label}`} onClick={onRemove}>
        <Icon name="close" />
      </button>
    </span>
  );
}

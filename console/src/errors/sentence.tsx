/**
 * The sentence box: words become filters, the range and the status. It shows what will change
 * before it happens, and which words lead to nothing.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { changed, go, type Params, useAddress, usePageGuard } from "../address";
import { api, type Schemas } from "../api/client";
import { type Project, useCurrentProject } from "../caller";
import { useKeys } from "../keys";
import { own } from "../own";
import { formatRange } from "../time/format";
import { rangeParams } from "../time/range";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { Picker } from "../ui/picker";
import { STATUS_NAMES } from "../ui/status";
import { showToast, useAction } from "../ui/toast";
import { FilterPicker } from "./filter-picker";
import {
  type Category,
  describeFilter,
  type Filter,
  filterParams,
  MAX_FILTERS,
  OPERATORS,
  sameFilter,
  takesValue,
  type View,
  withFilter,
} from "./filters";
import { loadCategories } from "./load";
import { leftOver, readControls, type Span, textOf, withoutSpans } from "./words";

/** The meaning of a sentence. */
interface Reading {
  query: string;
  /** Parameters of the address that change. */
  params: Params;
  /** The changes, in words. */
  changes: string[];
  /** Words that lead to nothing. */
  left: Span[];
}

interface SentenceProps {
  view: View;
  categories: Category[] | undefined;
}

/** Pause in typing before the sentence is read. */
const PAUSE_MS = 400;
const MIN_CHARACTERS = 3;

export function Sentence({ view, categories }: SentenceProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [text, setText] = useState("");
  /** The reading of the text while the user types; afterwards the one that was applied. */
  const [reading, setReading] = useState<Reading | null>(null);
  const [isFocused, setFocused] = useState(false);
  const guardPage = usePageGuard();
  const [busy, run] = useAction();
  const input = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => input.current?.focus() });
  const query = text.trim();
  const preview = query !== "" && reading?.query === query ? reading : null;

  // Reads the sentence while the user pauses.
  useEffect(() => {
    if (query.length < MIN_CHARACTERS || reading?.query === query) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      read(project, query, view, categories, stop.signal).then(setReading, () => {});
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [query, view, categories, project]);

  const setFilters = (filters: Filter[]) => go(changed(address, filterParams(filters)));
  const search = (words: string) => go(changed(address, { q: words, cursor: null }));

  const apply = async () => {
    const isHere = guardPage();
    const result = preview ?? (await read(project, query, view, categories));
    setReading(result);
    if (!result.changes.length) return;
    // Keeps text that was typed since the request.
    setText((current) => (current.trim() === query ? "" : current));
    const href = changed(address, result.params);
    if (isHere()) go(href);
    else showToast(`Filters for “${query}” are ready.`, undefined, { href, text: "Apply" });
  };
  const searchLeft = (words: string) => {
    setReading(null);
    setText("");
    search(words);
  };

  return (
    <div class="sentence">
      <form
        class="sentence-box"
        onSubmit={(event) => {
          event.preventDefault();
          if (query && !busy) void run(apply);
        }}
        onFocusIn={() => setFocused(true)}
        onFocusOut={(event) => {
          const to = event.relatedTarget;
          if (!(to instanceof Node) || !event.currentTarget.contains(to)) setFocused(false);
        }}
      >
        <Icon name="search" />
        <input
          ref={input}
          value={text}
          maxLength={500}
          aria-label="Filter errors"
          aria-describedby={preview ? "sentence-preview" : undefined}
          placeholder={exampleOf(categories)}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <span class="key-hint" aria-hidden="true">
          {text ? "↵" : "/"}
        </span>
        {preview && isFocused && (
          <div class="preview" id="sentence-preview" role="status">
            {preview.changes.map((it) => (
              <p key={it}>
                <bdi>{it}</bdi>
              </p>
            ))}
            {preview.changes.length > 0 && <p class="quiet small">Press Enter to apply.</p>}
            {preview.left.length > 0 && <LeftWords reading={preview} onSearch={searchLeft} />}
            {preview.changes.length + preview.left.length === 0 && (
              <p class="quiet">This changes nothing.</p>
            )}
          </div>
        )}
      </form>
      {reading &&
        !preview &&
        query === "" &&
        (reading.left.length > 0 || !reading.changes.length) && (
          <div class="interpretation" role="status">
            <LeftWords reading={reading} onSearch={searchLeft} />
            <Button class="bare" aria-label="Close" onClick={() => setReading(null)}>
              <Icon name="close" />
            </Button>
          </div>
        )}
      <Chips view={view} categories={categories ?? []} onFilters={setFilters} onSearch={search} />
    </div>
  );
}

/** Reads a sentence: times and statuses here, filters by the API. */
async function read(
  project: Project,
  query: string,
  view: View,
  categories: Category[] | undefined,
  signal?: AbortSignal,
): Promise<Reading> {
  // The user can press Enter before the categories have loaded.
  const known = categories ?? (await loadCategories(project, signal));
  const values = new Set(known.flatMap((it) => it.values.map((value) => value.toLowerCase())));
  const controls = readControls(query, Date.now(), values);
  const rest = withoutSpans(query, controls.spans);
  const response = rest.trim()
    ? await api.POST("/v0/errors/filters/interpret", {
        params: { query: { explain: true } },
        body: {
          projectId: project.slug,
          query: rest,
          categories: known,
          currentFilters: view.filters,
        },
        signal,
      })
    : { filters: view.filters, interpretation: { understood: [], ignored: [] } };
  const { understood, ignored } = response.interpretation ?? { understood: [], ignored: [] };
  const filters = response.filters.filter(isSupported).slice(0, MAX_FILTERS);
  const added = filters.filter((it) => !view.filters.some((one) => sameFilter(one, it)));
  const removed = view.filters.filter((it) => !filters.some((one) => sameFilter(one, it)));
  const { range, status } = controls;
  const changes = [
    ...added.map((it) => describeFilter(it, known)),
    ...removed.map((it) => `No longer: ${describeFilter(it, known)}`),
  ];
  if (range) changes.push(typeof range === "string" ? `Last ${range}` : formatRange(range));
  if (status) changes.push(`Status: ${status === "any" ? "all" : STATUS_NAMES[status]}`);
  // A model relates its filters to no words: then only the API knows which words it ignored.
  const isByModel = understood.length === 0 && added.length + removed.length > 0;
  return {
    query,
    params: {
      ...(added.length + removed.length > 0 && filterParams(filters)),
      ...(range && rangeParams(range)),
      ...(status && { status }),
      cursor: null,
    },
    changes,
    left: isByModel ? ignored : leftOver(query, [...understood, ...controls.spans], ignored),
  };
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
  return categories ? `Filter: ${words.join(" ")} since yesterday` : "Filter";
}

/** The sentence with the words that lead to nothing underlined, and a search for exactly them. */
function LeftWords(props: { reading: Reading; onSearch: (words: string) => void }) {
  const { query, left, changes } = props.reading;
  const characters = [...query];
  const parts: { text: string; isLeft: boolean }[] = [];
  let at = 0;
  for (const { from, to } of [...left].sort((one, other) => one.from - other.from)) {
    parts.push({ text: characters.slice(at, from).join(""), isLeft: false });
    parts.push({ text: characters.slice(from, to).join(""), isLeft: true });
    at = to;
  }
  parts.push({ text: characters.slice(at).join(""), isLeft: false });
  const words = textOf(query, left);
  return (
    <p class="left-words">
      <span>
        “
        {parts.map((part, index) =>
          part.isLeft ? (
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
        {!changes.length
          ? "Couldn’t turn that into a filter."
          : `Ignored: ${left.map((it) => textOf(query, [it])).join(", ")}.`}
      </span>
      {words && (
        <Button class="link" onClick={() => props.onSearch(words)}>
          Search titles for “{words}”
        </Button>
      )}
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
  const add = useRef<HTMLButtonElement>(null);
  const replace = (index: number, filter: Filter) =>
    onFilters(filters.map((it, at) => (at === index ? filter : it)));
  const remove = (index: number) => {
    onFilters(filters.filter((_, at) => at !== index));
    add.current?.focus();
  };
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
          <Button class="bare" aria-label="Remove search" onClick={() => onSearch("")}>
            <Icon name="close" />
          </Button>
        </span>
      )}
      {filters.length < MAX_FILTERS && (
        <Picker text="+ Filter" button={add}>
          {(close) => (
            <FilterPicker
              categories={categories}
              onClose={close}
              onChoose={(it) => onFilters(withFilter(filters, it))}
            />
          )}
        </Picker>
      )}
      {(filters.length > 1 || (filters.length > 0 && search)) && (
        <Button class="link small" onClick={() => onFilters([])}>
          Clear filters
        </Button>
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
        <>
          <Picker text={label} class="chip-part" title="Change the filter">
            {(close) => (
              <FilterPicker categories={categories} onClose={close} onChoose={onChange} />
            )}
          </Picker>
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
        </>
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
      <Button class="bare" aria-label={`Remove filter ${label}`} onClick={onRemove}>
        <Icon name="close" />
      </Button>
    </span>
  );
}

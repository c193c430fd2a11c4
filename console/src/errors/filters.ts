/** The view of error pages: filters, search and status, stored in the address. */

import type { Params } from "../address";
import type { Schemas } from "../api/client";
import type { Range } from "../time/range";

export type Filter = Schemas["ErrorFilter"];
export type Category = Schemas["ListedErrorCategory"];
export type Status = Schemas["ErrorStatus"];
type Operator = Filter["operator"];
type CategoryId = Filter["categoryId"];

/** The API's limit. */
export const MAX_FILTERS = 20;
export const STATUSES: Status[] = ["open", "resolved", "ignored"];

export const OPERATORS: Record<Operator, string> = {
  is: "is",
  is_not: "is not",
  contains: "contains",
  not_contains: "does not contain",
  is_set: "is set",
  is_not_set: "is not set",
};

export function takesValue(operator: Operator): boolean {
  return operator !== "is_set" && operator !== "is_not_set";
}

/** Describes a filter: `Browser is Chrome`. */
export function describeFilter(filter: Filter, categories: readonly Category[] = []): string {
  const label = categories.find((it) => it.id === filter.categoryId)?.label ?? filter.categoryId;
  if (filter.categoryId === "handled" && filter.operator === "is") {
    return filter.value === "true" ? "Handled" : "Unhandled";
  }
  return `${label} ${OPERATORS[filter.operator]} ${filter.value}`.trim();
}

export interface View {
  filters: Filter[];
  /** Text that titles or messages contain. */
  search: string;
  /** `null` for any status. */
  status: Status | null;
}

/** Formats a filter: `browser.is.Chrome`, `tags.tenant.is.acme`. */
export function writeFilter(filter: Filter): string {
  return `${filter.categoryId}.${filter.operator}.${filter.value}`;
}

const FILTER = new RegExp(
  `^(tags\\.[\\w.-]+?|[^.]+)\\.(${Object.keys(OPERATORS).join("|")})\\.(.*)$`,
  "s",
);

export function readFilter(text: string): Filter | null {
  // Only the keys of tags have dots.
  const parts = FILTER.exec(text);
  const [, category, operator, value = ""] = parts ?? [];
  if (!category || !operator) return null;
  return { categoryId: category as CategoryId, operator: operator as Operator, value };
}

export function readView(query: URLSearchParams, defaultStatus: Status | null): View {
  const filters = query.getAll("f").map(readFilter);
  const status = query.get("status");
  return {
    filters: filters.filter((it) => it !== null).slice(0, MAX_FILTERS),
    search: query.get("q") ?? "",
    status: status === "any" ? null : (STATUSES.find((it) => it === status) ?? defaultStatus),
  };
}

export function filterParams(filters: Filter[]): Params {
  return { f: filters.map(writeFilter), cursor: null };
}

export function sameFilter(one: Filter, other: Filter): boolean {
  return writeFilter(one) === writeFilter(other);
}

/** Adds a filter. It replaces filters with the same category and operator. */
export function withFilter(filters: Filter[], added: Filter): Filter[] {
  if (filters.some((it) => sameFilter(it, added))) return filters;
  const others = filters.filter(
    (it) => it.categoryId !== added.categoryId || it.operator !== added.operator,
  );
  return [...others, added];
}

/** Returns the fields that all error queries share. */
export function queryOf(view: View, range: Pick<Range, "from" | "to">) {
  return {
    from: range.from,
    to: range.to,
    filters: view.filters,
    searchQuery: view.search,
    status: view.status,
  };
}

/** Returns the cache key of a view. */
export function viewKey(view: View, range: Pick<Range, "from" | "to">): string {
  return JSON.stringify(queryOf(view, range));
}

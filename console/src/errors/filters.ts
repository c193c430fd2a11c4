/** What errors are looked at: filters, words and a status, all of it in the address. */

import type { Params } from "../address";
import type { Schemas } from "../api/client";
import type { Range } from "../time/range";

export type Filter = Schemas["ErrorFilter"];
export type Category = Schemas["ListedErrorCategory"];
export type Status = Schemas["ErrorStatus"];
type Operator = Filter["operator"];
type CategoryId = Filter["categoryId"];

/** The most that the API takes. */
export const MOST_FILTERS = 20;
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

export interface View {
  filters: Filter[];
  /** What titles and messages must have in them. */
  search: string;
  /** `null` for errors of any status. */
  status: Status | null;
}

/** A filter as text: `browser.is.Chrome`. No category and no operator has a dot. */
export function writeFilter(filter: Filter): string {
  return `${filter.categoryId}.${filter.operator}.${filter.value}`;
}

export function readFilter(text: string): Filter | null {
  const [category, operator, ...value] = text.split(".");
  if (!category || !operator || !Object.hasOwn(OPERATORS, operator)) return null;
  return {
    categoryId: category as CategoryId,
    operator: operator as Operator,
    value: value.join("."),
  };
}

export function readView(query: URLSearchParams, usual: Status | null): View {
  const filters = query.getAll("f").map(readFilter);
  const status = query.get("status");
  return {
    filters: filters.filter((it) => it !== null).slice(0, MOST_FILTERS),
    search: query.get("q") ?? "",
    status: status === "any" ? null : (STATUSES.find((it) => it === status) ?? usual),
  };
}

export function filterParams(filters: Filter[]): Params {
  return { f: filters.map(writeFilter), cursor: null };
}

export function sameFilter(one: Filter, other: Filter): boolean {
  return writeFilter(one) === writeFilter(other);
}

/** The filters with one more, which takes the place of what it would contradict. */
export function withFilter(filters: Filter[], added: Filter): Filter[] {
  if (filters.some((it) => sameFilter(it, added))) return filters;
  const others = filters.filter(
    (it) => it.categoryId !== added.categoryId || it.operator !== added.operator,
  );
  return [...others, added];
}

/** The members that all queries of errors share. */
export function queryOf(view: View, range: Pick<Range, "from" | "to">) {
  return {
    from: range.from,
    to: range.to,
    filters: view.filters,
    searchQuery: view.search,
    status: view.status,
  };
}

/** What is loaded for a view, as a key. */
export function viewKey(view: View, range: Pick<Range, "from" | "to">): string {
  return JSON.stringify(queryOf(view, range));
}

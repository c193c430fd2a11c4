/** A flag as it is edited, and what it does in words. */

import type { KeyHeader } from "../api/attempt";
import { ApiError, api, type Schemas, unwrapResponse } from "../api/client";
import type { Project } from "../caller";
import { differing } from "../drafts";

type Told = Schemas["FeatureFlag"];
export type FlagType = Schemas["FlagType"];
export type Serve = Told["fallthrough"];
export type Operator = Schemas["Operator"] | "in_segment" | "not_in_segment";

/** A condition while it is edited: any operator may stand beside any attribute. */
export interface Condition {
  /** `null` beside the operators of segments, which ask about no attribute. */
  attribute: string | null;
  operator: Operator;
  values: string[];
}

export interface Rule {
  /** Of one that is not saved yet, what `newRuleId` made. */
  id: string;
  name: string;
  conditions: Condition[];
  serve: Serve;
}

export type Flag = Omit<Told, "rules"> & { rules: Rule[] };

export interface Draft {
  key: string;
  name: string;
  type: FlagType;
  description: string;
  enabled: boolean;
  variants: { key: string; name: string; value: string }[];
  offVariant: string | null;
  fallthrough: Serve;
  rules: Rule[];
  targets: Flag["targets"];
  prerequisites: Flag["prerequisites"];
}

export const TYPES: FlagType[] = ["boolean", "string", "number", "json"];

/** Every operator, in words, and how its values are written. */
export const OPERATORS: Record<
  Operator,
  { words: string; values: "none" | "one" | "many"; example: string }
> = {
  equals: { words: "equals", values: "many", example: "DE" },
  not_equals: { words: "does not equal", values: "many", example: "DE" },
  in: { words: "is one of", values: "many", example: "DE" },
  not_in: { words: "is none of", values: "many", example: "DE" },
  contains: { words: "contains", values: "many", example: "beta" },
  not_contains: { words: "does not contain", values: "many", example: "beta" },
  starts_with: { words: "starts with", values: "many", example: "/admin" },
  not_starts_with: { words: "does not start with", values: "many", example: "/admin" },
  ends_with: { words: "ends with", values: "many", example: "@example.com" },
  not_ends_with: { words: "does not end with", values: "many", example: "@example.com" },
  matches: { words: "matches the pattern", values: "many", example: "^user-[0-9]+$" },
  not_matches: { words: "does not match the pattern", values: "many", example: "^user-[0-9]+$" },
  exists: { words: "is there", values: "none", example: "" },
  not_exists: { words: "is missing", values: "none", example: "" },
  greater_than: { words: ">", values: "one", example: "100" },
  greater_than_or_equal: { words: "≥", values: "one", example: "100" },
  less_than: { words: "<", values: "one", example: "100" },
  less_than_or_equal: { words: "≤", values: "one", example: "100" },
  before: { words: "is before", values: "one", example: "2027-01-01T00:00:00Z" },
  after: { words: "is after", values: "one", example: "2027-01-01T00:00:00Z" },
  semver_equals: { words: "is version", values: "one", example: "2.4.1" },
  semver_greater_than: { words: "is a version after", values: "one", example: "2.4.1" },
  semver_greater_than_or_equal: { words: "is version or after", values: "one", example: "2.4.1" },
  semver_less_than: { words: "is a version before", values: "one", example: "2.4.1" },
  semver_less_than_or_equal: { words: "is version or before", values: "one", example: "2.4.1" },
  in_segment: { words: "is in the segment", values: "many", example: "staff" },
  not_in_segment: { words: "is not in the segment", values: "many", example: "staff" },
  in_cidr: { words: "is an address in", values: "many", example: "10.0.0.0/8" },
};

export const NEW_FLAG: Draft = {
  key: "",
  name: "",
  type: "boolean",
  description: "",
  enabled: false,
  variants: [
    { key: "on", name: "On", value: "true" },
    { key: "off", name: "Off", value: "false" },
  ],
  offVariant: "off",
  fallthrough: { variant: "on", rollout: [] },
  rules: [],
  targets: [],
  prerequisites: [],
};

export function draftOf(flag: Flag): Draft {
  const { key, name, type, description, enabled, variants, offVariant } = flag;
  const { fallthrough, rules, targets, prerequisites } = flag;
  return structuredClone({
    key,
    name,
    type,
    description,
    enabled,
    variants,
    offVariant,
    fallthrough,
    rules,
    targets,
    prerequisites,
  });
}

export type FlagPatch = Partial<Omit<Draft, "key" | "type">> & { archived?: boolean };

/** The members that differ, as a merge patch. */
export function patchOf(was: Draft, is: Draft): FlagPatch {
  return differing(was, is);
}

/** What rules that are not saved are told apart by. */
const NEW_ID = "new ";

export function newRuleId(): string {
  return NEW_ID + crypto.randomUUID();
}

/** What rules were told apart by before they were saved. */
const firstIds = new Map<string, string>();

/** What a rule is told apart by for as long as it is shown, saved meanwhile or not. */
export function keyOf({ id }: Rule): string {
  return firstIds.get(id) ?? id;
}

/** Rules with the ids that those of them got which were sent without one. */
export function withIds(rules: Rule[], sent: Rule[], saved: Rule[]): Rule[] {
  const ids = new Map(sent.map((it, index) => [it.id, saved[index]?.id ?? it.id]));
  for (const [before, id] of ids) if (before !== id) firstIds.set(id, before);
  return rules.map((it) => ({ ...it, id: ids.get(it.id) ?? it.id }));
}

/** The version of a flag or segment, told apart from those of others that had its key. */
export function versionOf(known: Pick<Flag, "version" | "id"> | null): string {
  return known ? `${known.id} ${known.version}` : "new";
}

/** Rules as they are sent: a new one has no id yet, and segments ask about no attribute. */
function sent(rules: Rule[]): unknown[] {
  return rules.map(({ id, conditions, ...rest }) => ({
    ...rest,
    ...(id && !id.startsWith(NEW_ID) && { id }),
    conditions: conditions.map(({ attribute, ...condition }) =>
      asksAttribute(condition.operator) ? { ...condition, attribute } : condition,
    ),
  }));
}

export function asksAttribute(operator: Operator): boolean {
  return operator !== "in_segment" && operator !== "not_in_segment";
}

/** A flag as the API tells it; the types made of its description leave members out that are `null`. */
export function told(flag: Promise<unknown>): Promise<Flag> {
  return flag as Promise<Flag>;
}

export function createFlag(project: Project, draft: Draft, header: KeyHeader): Promise<Flag> {
  return told(
    unwrapResponse(
      api.POST("/v0/project/{idOrSlug}/feature-flags", {
        params: { path: { idOrSlug: project.slug }, header },
        // What the description says of conditions is more than the types made of it can say.
        body: { ...draft, rules: sent(draft.rules) } as never,
      }),
    ),
  );
}

/** What a change that is meant for a flag or segment as it is known asks for. The tag of one that has the
 *  key of a deleted one names its id too; only one of these can be its own. */
export function ifMatchOf({ version, id }: Pick<Flag, "version" | "id">): string {
  return `"${version}", "${version}-${id}"`;
}

/** Changes a flag, if it still is what is known of it. */
export function patchFlag(
  project: Project,
  key: string,
  patch: FlagPatch,
  known: Flag,
): Promise<Flag> {
  const rules = patch.rules && { rules: sent(patch.rules) };
  return told(
    unwrapResponse(
      api.PATCH("/v0/project/{idOrSlug}/feature-flags/{key}", {
        params: {
          path: { idOrSlug: project.slug, key },
          header: { "If-Match": ifMatchOf(known) },
        },
        body: { ...patch, ...rules } as never,
      }),
    ),
  );
}

export function loadFlag(project: Project, key: string, signal?: AbortSignal): Promise<Flag> {
  const params = { path: { idOrSlug: project.slug, key } };
  return told(
    unwrapResponse(
      api.GET("/v0/project/{idOrSlug}/feature-flags/{key}", {
        params,
        ...(signal && { signal }),
      }),
    ),
  );
}

/** Whether somebody else changed it since it was read. */
export function isMismatch(error: unknown): boolean {
  return error instanceof ApiError && error.code === "version_mismatch";
}

/** Changes a flag if it still is what was shown; if not, tells what it became meanwhile. */
export async function patchAsKnown(
  project: Project,
  known: Flag,
  patch: FlagPatch,
): Promise<{ flag: Flag; isDone: boolean }> {
  try {
    return { flag: await patchFlag(project, known.key, patch, known), isDone: true };
  } catch (error) {
    if (!isMismatch(error)) throw error;
    return { flag: await loadFlag(project, known.key), isDone: false };
  }
}

/** At most 2,000 flags are not archived: so many pages of 100. */
const ALL_PAGES = 20;

export interface FlagList {
  flags: Flag[];
  /** How many requests it took. */
  pages: number;
  /** Whether nothing is missing, as may be of more archived ones. */
  isAll: boolean;
}

export async function loadFlags(
  project: Project,
  archived: boolean,
  signal?: AbortSignal,
): Promise<Flag[]> {
  return (await listFlags(project, archived, signal)).flags;
}

export async function listFlags(
  project: Project,
  archived: boolean,
  signal?: AbortSignal,
): Promise<FlagList> {
  const flags: Flag[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const query: { limit: number; archived?: boolean; cursor?: string } = { limit: 100, archived };
    if (cursor) query.cursor = cursor;
    const page: { items: unknown[]; nextCursor: string | null } = await unwrapResponse(
      api.GET("/v0/project/{idOrSlug}/feature-flags", {
        params: { path: { idOrSlug: project.slug }, query },
        ...(signal && { signal }),
      }),
    );
    flags.push(...(page.items as Flag[]));
    cursor = page.nextCursor;
    pages++;
  } while (cursor && pages < ALL_PAGES);
  return { flags, pages, isAll: cursor === null };
}

export const plural = (count: number, one: string) => `${count} ${one}${count === 1 ? "" : "s"}`;

/** What weights add up to. One that is not typed yet is `NaN`, and weighs nothing. */
export function sumOf({ rollout }: Pick<Serve, "rollout">): number {
  return rollout.reduce((total, it) => total + (it.weight || 0), 0);
}

export function serveInWords(serve: Serve): string {
  if (serve.variant) return serve.variant;
  const sum = sumOf(serve);
  if (!sum) return "the application’s own default";
  return serve.rollout
    .filter((it) => it.weight > 0)
    .map((it) => `${it.variant} for ${shareInWords((it.weight / sum) * 100)}`)
    .join(", ");
}

/** Small shares are the ones whose decimals count. */
function shareInWords(share: number): string {
  const parts = share < 1 || share > 99 ? 1000 : 10;
  const rounded = Math.round(share * parts) / parts;
  if (rounded === 0) return "less than 0.001 %";
  return rounded === 100 && share < 100 ? "more than 99.999 %" : `${rounded} %`;
}

/** What shares that do not add up to 100 mean, a sentence for each place that has such. */
export function sharesInWords({ rules, fallthrough }: Pick<Draft, "rules" | "fallthrough">) {
  return [
    ...rules.map((it, index) => ({ who: `Rule ${index + 1} serves`, serve: it.serve })),
    { who: "Everyone else gets", serve: fallthrough },
  ]
    .filter(({ serve }) => serve.rollout.length && Math.abs(sumOf(serve) - 100) >= 1e-9)
    .map(({ who, serve }) => `The shares do not add up to 100. ${who} ${serveInWords(serve)}.`);
}

/** Whether it was typed: what is not is `NaN`, and `null` once it was kept as JSON. */
export function isWeight({ weight }: { weight: number }): boolean {
  return Number.isFinite(weight);
}

/** Where weights stand that are none: pointers into the body. */
export function missingWeights({ rules, fallthrough }: Pick<Draft, "rules" | "fallthrough">) {
  return [
    ...rules.map((it, index) => ({ at: `/rules/${index}/serve`, serve: it.serve })),
    { at: "/fallthrough", serve: fallthrough },
  ].flatMap(({ at, serve }) =>
    serve.rollout.flatMap((it, index) => (isWeight(it) ? [] : [`${at}/rollout/${index}/weight`])),
  );
}

/** What a flag does once it is on. */
export function doesInWords(
  flag: Pick<Draft, "fallthrough" | "rules" | "targets" | "prerequisites">,
): string {
  const before: string[] = [];
  if (flag.targets.length) before.push(plural(flag.targets.length, "individual"));
  if (flag.rules.length) before.push(plural(flag.rules.length, "rule"));
  const rest = `${serveInWords(flag.fallthrough)}${before.length ? " for everyone else" : ""}`;
  const text = before.length ? `its own answer for ${before.join(" and ")}; ${rest}` : rest;
  const needed = flag.prerequisites.map((it) => `${it.flagKey} is ${it.variant}`).join(" and ");
  return needed ? `${text}; only where ${needed}` : text;
}

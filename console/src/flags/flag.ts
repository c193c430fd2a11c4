/** Flags: API requests, drafts and descriptions. */

import type { KeyHeader } from "../api/attempt";
import { ApiError, api, type Schemas } from "../api/client";
import { loadPages } from "../api/pages";
import type { Project } from "../caller";
import { changedFields } from "../drafts";
import { pluralize } from "../time/format";

type ApiFlag = Schemas["FeatureFlag"];
export type FlagType = Schemas["FlagType"];
export type Serve = ApiFlag["fallthrough"];
export type Operator = Schemas["Operator"] | "in_segment" | "not_in_segment";

/** A condition in an editor, with any combination of attribute and operator. */
export interface Condition {
  /** `null` with a segment operator, which uses no attribute. */
  attribute: string | null;
  operator: Operator;
  values: string[];
}

export interface Rule {
  /** From `newRuleId` until the rule is saved. */
  id: string;
  name: string;
  conditions: Condition[];
  serve: Serve;
}

export type Flag = Omit<ApiFlag, "rules"> & { rules: Rule[] };

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

/** Each operator's name, number of values and example. */
export const OPERATORS: Record<
  Operator,
  { label: string; values: "none" | "one" | "many"; example: string }
> = {
  equals: { label: "equals", values: "many", example: "DE" },
  not_equals: { label: "does not equal", values: "many", example: "DE" },
  in: { label: "is one of", values: "many", example: "DE" },
  not_in: { label: "is none of", values: "many", example: "DE" },
  contains: { label: "contains", values: "many", example: "beta" },
  not_contains: { label: "does not contain", values: "many", example: "beta" },
  starts_with: { label: "starts with", values: "many", example: "/admin" },
  not_starts_with: { label: "does not start with", values: "many", example: "/admin" },
  ends_with: { label: "ends with", values: "many", example: "@example.com" },
  not_ends_with: { label: "does not end with", values: "many", example: "@example.com" },
  matches: { label: "matches the pattern", values: "many", example: "^user-[0-9]+$" },
  not_matches: { label: "does not match the pattern", values: "many", example: "^user-[0-9]+$" },
  exists: { label: "is set", values: "none", example: "" },
  not_exists: { label: "is not set", values: "none", example: "" },
  greater_than: { label: ">", values: "one", example: "100" },
  greater_than_or_equal: { label: "≥", values: "one", example: "100" },
  less_than: { label: "<", values: "one", example: "100" },
  less_than_or_equal: { label: "≤", values: "one", example: "100" },
  before: { label: "is before", values: "one", example: "2027-01-01T00:00:00Z" },
  after: { label: "is after", values: "one", example: "2027-01-01T00:00:00Z" },
  semver_equals: { label: "version =", values: "one", example: "2.4.1" },
  semver_greater_than: { label: "version >", values: "one", example: "2.4.1" },
  semver_greater_than_or_equal: { label: "version ≥", values: "one", example: "2.4.1" },
  semver_less_than: { label: "version <", values: "one", example: "2.4.1" },
  semver_less_than_or_equal: { label: "version ≤", values: "one", example: "2.4.1" },
  in_segment: { label: "is in segment", values: "many", example: "staff" },
  not_in_segment: { label: "is not in segment", values: "many", example: "staff" },
  in_cidr: { label: "IP is in range", values: "many", example: "10.0.0.0/8" },
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
  const fields = Object.keys(NEW_FLAG) as (keyof Draft)[];
  return structuredClone(
    Object.fromEntries(fields.map((it) => [it, flag[it]])) as unknown as Draft,
  );
}

export type FlagPatch = Partial<Omit<Draft, "key" | "type">> & { archived?: boolean };

/** Returns the changed fields as a merge patch. */
export function patchOf(was: Draft, is: Draft): FlagPatch {
  return changedFields(was, is);
}

/** Prefix of the ids of unsaved rules. */
const NEW_ID = "new ";

export function newRuleId(): string {
  return NEW_ID + crypto.randomUUID();
}

/** The temporary id of each rule that was saved in this tab. */
const firstIds = new Map<string, string>();

/** Returns the key of a rule's element. It stays the same after the rule is saved. */
export function keyOf({ id }: Rule): string {
  return firstIds.get(id) ?? id;
}

/**
 * Replaces the temporary ids of rules with the ids that they got when `sent` was saved as `saved`.
 */
export function withIds(rules: Rule[], sent: Rule[], saved: Rule[]): Rule[] {
  const ids = new Map(sent.map((it, index) => [it.id, saved[index]?.id ?? it.id]));
  for (const [temporary, id] of ids) if (temporary !== id) firstIds.set(id, temporary);
  return rules.map((it) => ({ ...it, id: ids.get(it.id) ?? it.id }));
}

/**
 * Returns the version of a flag or segment. It includes the id, since a deleted key can be reused.
 */
export function versionOf(known: Pick<Flag, "version" | "id"> | null): string {
  return known ? `${known.id} ${known.version}` : "new";
}

/**
 * Converts rules for a request: without temporary ids, and without attributes of segment
 * conditions.
 */
export function toRequest(rules: Rule[]): unknown[] {
  return rules.map(({ id, conditions, ...rest }) => ({
    ...rest,
    ...(id && !id.startsWith(NEW_ID) && { id }),
    conditions: conditions.map(({ attribute, ...condition }) =>
      usesAttribute(condition.operator) ? { ...condition, attribute } : condition,
    ),
  }));
}

export function usesAttribute(operator: Operator): boolean {
  return operator !== "in_segment" && operator !== "not_in_segment";
}

/** Casts a response: the generated types omit fields that are `null`. */
export function asFlag(flag: Promise<unknown>): Promise<Flag> {
  return flag as Promise<Flag>;
}

export function createFlag(project: Project, draft: Draft, header: KeyHeader): Promise<Flag> {
  return asFlag(
    api.POST("/v0/project/{idOrSlug}/feature-flags", {
      params: { path: { idOrSlug: project.slug }, header },
      // The generated types cannot express all rules for conditions.
      body: { ...draft, rules: toRequest(draft.rules) } as never,
    }),
  );
}

/**
 * Returns the `If-Match` header for a change of a known version. It lists two tags, of which one
 * can match: the tag includes the id if the key belonged to a deleted flag or segment.
 */
export function ifMatchOf({ version, id }: Pick<Flag, "version" | "id">): string {
  return `"${version}", "${version}-${id}"`;
}

/** Changes a flag if it is still at the known version. */
export function patchFlag(
  project: Project,
  key: string,
  patch: FlagPatch,
  known: Flag,
): Promise<Flag> {
  const rules = patch.rules && { rules: toRequest(patch.rules) };
  return asFlag(
    api.PATCH("/v0/project/{idOrSlug}/feature-flags/{key}", {
      params: { path: { idOrSlug: project.slug, key }, header: { "If-Match": ifMatchOf(known) } },
      body: { ...patch, ...rules } as never,
    }),
  );
}

export function loadFlag(project: Project, key: string, signal?: AbortSignal): Promise<Flag> {
  const params = { path: { idOrSlug: project.slug, key } };
  return asFlag(api.GET("/v0/project/{idOrSlug}/feature-flags/{key}", { params, signal }));
}

export function deleteFlag(project: Project, key: string): Promise<unknown> {
  const params = { path: { idOrSlug: project.slug, key } };
  return api.DELETE("/v0/project/{idOrSlug}/feature-flags/{key}", { params });
}

/** `true` if another change came first. */
export function isMismatch(error: unknown): boolean {
  return error instanceof ApiError && error.code === "version_mismatch";
}

/** Changes a flag if it is still at the known version. If not, returns its current version. */
export async function patchIfUnchanged(
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

/** Pages of 100: the limit is 2,000 flags, not counting archived ones. */
const MAX_PAGES = 20;

export async function loadFlags(
  project: Project,
  archived: boolean,
  signal?: AbortSignal,
): Promise<Flag[]> {
  const params = { path: { idOrSlug: project.slug } };
  const load = (query: { limit: number; cursor?: string | undefined }) =>
    api.GET("/v0/project/{idOrSlug}/feature-flags", {
      params: { ...params, query: { ...query, archived } },
      signal,
    });
  return (await loadPages<unknown>(load, MAX_PAGES)).items as Flag[];
}

/** Returns the sum of the weights. An empty weight, `NaN`, counts as 0. */
export function sumOf({ rollout }: Pick<Serve, "rollout">): number {
  return rollout.reduce((total, it) => total + (it.weight || 0), 0);
}

export const CODE_DEFAULT = "the default in code";

export function describeServe(serve: Serve): string {
  if (serve.variant) return serve.variant;
  const sum = sumOf(serve);
  if (!sum) return CODE_DEFAULT;
  return serve.rollout
    .filter((it) => it.weight > 0)
    .map((it) => `${it.variant} ${formatShare((it.weight / sum) * 100)}`)
    .join(", ");
}

/** Quotes the name of a single variant, for use in a sentence. */
export function quoteVariant(variant: string | null | undefined): string {
  return variant ? `“${variant}”` : CODE_DEFAULT;
}

/** Formats a share, with three decimals if it is below 1% or above 99%. */
function formatShare(share: number): string {
  const parts = share < 1 || share > 99 ? 1000 : 10;
  const rounded = Math.round(share * parts) / parts;
  if (rounded === 0) return "<0.001%";
  return rounded === 100 && share < 100 ? ">99.999%" : `${rounded}%`;
}

type Serves = Pick<Draft, "rules" | "fallthrough">;

/** Returns the values that a flag serves, each with its pointer and its subject in a sentence. */
function servesOf({ rules, fallthrough }: Serves) {
  return [
    ...rules.map(({ serve }, index) => ({
      at: `/rules/${index}/serve`,
      who: `rule ${index + 1} serves`,
      serve,
    })),
    { at: "/fallthrough", who: "everyone else gets", serve: fallthrough },
  ];
}

const isUneven = ({ serve }: { serve: Serve }) =>
  serve.rollout.length > 0 && Math.abs(sumOf(serve) - 100) >= 1e-9;

/** Describes the effect of rollouts that do not add up to 100%, one sentence for each. */
export function describeUnevenShares(flag: Serves) {
  return servesOf(flag)
    .filter(isUneven)
    .map(({ who, serve }) => `A rollout does not add up to 100%: ${who} ${describeServe(serve)}.`);
}

/**
 * `true` if a weight has been entered. An empty one is `NaN`, or `null` after a round trip through
 * JSON.
 */
export function isWeight({ weight }: { weight: number }): boolean {
  return Number.isFinite(weight);
}

/** Returns the pointers of empty weights. */
export function missingWeights(flag: Serves) {
  return servesOf(flag).flatMap(({ at, serve }) =>
    serve.rollout.flatMap((it, index) => (isWeight(it) ? [] : [`${at}/rollout/${index}/weight`])),
  );
}

/** Returns the pointers of changed rollouts that do not add up to 100%. */
export function unevenRollouts(draft: Draft, saved: Draft): string[] {
  const known = servesOf(saved).map(({ serve }) => JSON.stringify(serve));
  return servesOf(draft)
    .filter(isUneven)
    .filter(({ serve }) => !known.includes(JSON.stringify(serve)))
    .map(({ at }) => `${at}/rollout`);
}

/** Returns the state of a flag, as a word and as the class of its symbol. */
export function stateOf({ archivedAt, enabled }: Pick<Flag, "archivedAt" | "enabled">): string {
  if (archivedAt) return "archived";
  return enabled ? "on" : "off";
}

/** Describes what a flag serves when it is on: `1 rule; everyone else: on 10%, off 90%`. */
export function describeFlag(
  flag: Pick<Draft, "fallthrough" | "rules" | "targets" | "prerequisites">,
): string {
  const parts: string[] = [];
  if (flag.targets.length) parts.push(pluralize(flag.targets.length, "user"));
  if (flag.rules.length) parts.push(pluralize(flag.rules.length, "rule"));
  const { fallthrough } = flag;
  const text = parts.length
    ? `${parts.join(", ")}; everyone else: ${describeServe(fallthrough)}`
    : `everyone gets ${fallthrough.variant ? quoteVariant(fallthrough.variant) : describeServe(fallthrough)}`;
  const required = flag.prerequisites.map((it) => `${it.flagKey} = ${it.variant}`).join(" and ");
  return required ? `${text}; requires ${required}` : text;
}

/** The history of a flag: descriptions of its changes, and the effect of restoring a version. */

import { api, type Schemas } from "../api/client";
import type { Project } from "../caller";
import { pluralize } from "../time/format";
import { describeCondition, describeConditions } from "./conditions-editor";
import {
  asFlag,
  CODE_DEFAULT,
  type Condition,
  type Draft,
  describeServe,
  type Flag,
  ifMatchOf,
  type Rule,
  type Serve,
} from "./flag";

export type FlagChange = Schemas["FlagChange"];
type FlagChangePage = Schemas["FlagChangePage"];

/** A changed field. `from` can also be `undefined`: no value at all, unlike `null`. */
export type MemberChange = Omit<Schemas["MemberChange"], "member"> & { member: Member };
/** A field of a flag, or the conditions of a segment. */
type Member = Schemas["MemberChange"]["member"] | "conditions";

/** Loads a page of a flag's changes, newest first. */
export function loadChanges(
  project: Project,
  key: string,
  query: { limit: number; cursor?: string | undefined },
  signal?: AbortSignal,
): Promise<FlagChangePage> {
  const params = { path: { idOrSlug: project.slug, key }, query };
  return api.GET("/v0/project/{idOrSlug}/feature-flags/{key}/changes", { params, signal });
}

/** Restores a version of a flag if the flag is still at the known version. */
export function restoreVersion(project: Project, flag: Flag, version: number): Promise<Flag> {
  return asFlag(
    api.PATCH("/v0/project/{idOrSlug}/feature-flags/{key}", {
      params: {
        path: { idOrSlug: project.slug, key: flag.key },
        header: { "If-Match": ifMatchOf(flag) },
      },
      body: { restoreVersion: version },
    }),
  );
}

/** Field names as headings, and within a sentence. */
const NAMES: Record<Member, { title: string; noun: string }> = {
  key: { title: "Key", noun: "key" },
  type: { title: "Type", noun: "type" },
  name: { title: "Name", noun: "name" },
  description: { title: "Description", noun: "description" },
  enabled: { title: "State", noun: "state" },
  archivedAt: { title: "Archived", noun: "archived state" },
  variants: { title: "Variants", noun: "variants" },
  offVariant: { title: "When off, serve", noun: "off variant" },
  fallthrough: { title: "Everyone else", noun: "default rollout" },
  rules: { title: "Rules", noun: "rules" },
  targets: { title: "Individual users", noun: "individual users" },
  prerequisites: { title: "Prerequisites", noun: "prerequisites" },
  conditions: { title: "Conditions", noun: "conditions" },
};

export function nounOf(member: Member): string {
  return NAMES[member].noun;
}

/** Fields that are shown above the history. */
const OMITTED: Member[] = ["key", "type"];

export interface Difference {
  field: string;
  /** Lines that only the old or only the new value has. */
  removed: string[];
  added: string[];
}

/** Returns the details of a change, other than its description. */
export function detailsOf(change: FlagChange): Difference[] {
  // A created flag has no old values, and the description of a switch says everything.
  if (change.kind === "created") {
    return differences(change.changes.map((it) => ({ ...it, from: undefined })));
  }
  return isSwitch(change) ? [] : differences(change.changes);
}

/** Describes changes as removed and added lines. */
export function differences(changes: readonly MemberChange[]): Difference[] {
  return changes
    .filter((it) => !OMITTED.includes(it.member))
    .map(({ member, from, to }) => ({
      field: NAMES[member].title,
      ...compared(linesOf(member, from), linesOf(member, to)),
    }))
    .filter((it) => it.removed.length > 0 || it.added.length > 0);
}

/** The fields of a flag, in the order of evaluation. */
const FIELDS = [
  "description",
  "variants",
  "targets",
  "rules",
  "fallthrough",
  "offVariant",
  "prerequisites",
] as const;

/** Describes the fields of a flag, for users who cannot change them. */
export function describeFields(flag: Flag): Difference[] {
  return differences(FIELDS.map((it) => ({ member: it, from: undefined, to: flag[it] })));
}

/** Formats the value of a field as lines, one for each item. */
function linesOf(member: Member, value: unknown): string[] {
  if (value === undefined) return [];
  if (value === null) {
    return member === "offVariant" ? [CODE_DEFAULT] : [];
  }
  switch (member) {
    case "enabled":
      return [value ? "on" : "off"];
    case "variants":
      return (value as Draft["variants"]).map(
        (it) => `${it.key} = ${it.value}${it.name ? ` (${it.name})` : ""}`,
      );
    case "targets":
      return (value as Draft["targets"]).map((it) => `${it.value} gets ${it.variant}`);
    case "prerequisites":
      return (value as Draft["prerequisites"]).map((it) => `${it.flagKey} = ${it.variant}`);
    case "fallthrough":
      return [describeServe(value as Serve)];
    case "conditions":
      return (value as Condition[]).map(describeCondition);
    case "rules":
      return (value as Rule[]).map(describeRule);
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text ? text.split("\n") : [];
}

function describeRule({ name, conditions, serve }: Rule): string {
  const served = `${describeConditions(conditions)} gets ${describeServe(serve)}`;
  return name ? `${name}: ${served}` : served;
}

/** Returns the lines that only one side has. A line that moved is removed and added. */
function compared(from: string[], to: string[]): { removed: string[]; added: string[] } {
  const common = longestCommon(from, to);
  return { removed: without(from, common), added: without(to, common) };
}

/** Returns the longest common subsequence. */
function longestCommon(one: string[], other: string[]): string[] {
  let row: string[][] = Array.from({ length: other.length + 1 }, () => []);
  for (const line of one) {
    const next: string[][] = [[]];
    other.forEach((it, index) => {
      const diagonal = row[index] ?? [];
      const [above, left] = [row[index + 1] ?? [], next[index] ?? []];
      next.push(it === line ? [...diagonal, it] : above.length >= left.length ? above : left);
    });
    row = next;
  }
  return row.at(-1) ?? [];
}

function without(lines: string[], common: string[]): string[] {
  let next = 0;
  return lines.filter((line) => {
    if (line !== common[next]) return true;
    next++;
    return false;
  });
}

/**
 * Returns the effect of restoring `version`. `changes` has all changes since that version, as the
 * API returns them, without gaps.
 */
export function restored(changes: readonly FlagChange[], version: number): MemberChange[] {
  const members = new Map<Member, MemberChange>();
  for (const change of changes.filter((it) => it.version > version)) {
    for (const { member, from, to } of change.changes) {
      const newer = members.get(member);
      members.set(member, { member, from: newer ? newer.from : to, to: from });
    }
  }
  return [...members.values()].filter(
    (it) => JSON.stringify(it.from) !== JSON.stringify(it.to) && it.member !== "archivedAt",
  );
}

const KINDS: Record<FlagChange["kind"], string> = {
  created: "Created",
  updated: "Changed",
  archived: "Archived",
  unarchived: "Unarchived",
  restored: "Restored",
};

function isSwitch({ kind, changes }: Pick<FlagChange, "kind" | "changes">): boolean {
  const shown = changes.filter((it) => !OMITTED.includes(it.member));
  return kind === "updated" && shown.length === 1 && shown[0]?.member === "enabled";
}

/** Describes a change in a few words: `Turned on`, `Changed rules and name`. */
export function describeChange({ kind, changes }: Pick<FlagChange, "kind" | "changes">): string {
  const shown = changes.filter((it) => !OMITTED.includes(it.member));
  if (kind !== "updated") return KINDS[kind];
  if (isSwitch({ kind, changes })) return shown[0]?.to ? "Turned on" : "Turned off";
  const names = shown.map((it) => NAMES[it.member].noun);
  return names.length > 3 ? pluralize(names.length, "change") : `Changed ${names.join(" and ")}`;
}

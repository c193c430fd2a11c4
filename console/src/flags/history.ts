/** The history of a flag: what was changed, readable, and what restoring an older version would change. */

import { api, type Schemas, unwrapResponse } from "../api/client";
import type { Project } from "../caller";
import { conditionsInWords } from "./conditions-editor";
import {
  type Draft,
  type Flag,
  ifMatchOf,
  plural,
  type Rule,
  type Serve,
  serveInWords,
  told,
} from "./flag";

export type FlagChange = Schemas["FlagChange"];
export type FlagChangePage = Schemas["FlagChangePage"];

/** `from` may also be `undefined`: nothing at all, which is not the same as `null`. */
export type MemberChange = Schemas["MemberChange"];
type Member = MemberChange["member"];

/** A page of the changes of a flag, the newest first. */
export function loadChanges(
  project: Project,
  key: string,
  more: { limit: number; cursor?: string | null },
  signal?: AbortSignal,
): Promise<FlagChangePage> {
  const query = { limit: more.limit, ...(more.cursor && { cursor: more.cursor }) };
  const params = { path: { idOrSlug: project.slug, key }, query };
  return unwrapResponse(
    api.GET("/v0/project/{idOrSlug}/feature-flags/{key}/changes", {
      params,
      ...(signal && { signal }),
    }),
  );
}

/** Makes the flag as a version left it, if it still has the version that is known here. */
export function restoreVersion(project: Project, flag: Flag, version: number): Promise<Flag> {
  return told(
    unwrapResponse(
      api.PATCH("/v0/project/{idOrSlug}/feature-flags/{key}", {
        params: {
          path: { idOrSlug: project.slug, key: flag.key },
          header: { "If-Match": ifMatchOf(flag) },
        },
        body: { restoreVersion: version },
      }),
    ),
  );
}

/** What members are called in the editor, and in the middle of a sentence. */
const NAMES: Record<Member, { title: string; noun: string }> = {
  key: { title: "Key", noun: "its key" },
  type: { title: "Type", noun: "its type" },
  name: { title: "Name", noun: "its name" },
  description: { title: "What it is for", noun: "its description" },
  enabled: { title: "State", noun: "its state" },
  archivedAt: { title: "Archived", noun: "its archive" },
  variants: { title: "Variants", noun: "variants" },
  offVariant: { title: "While it is off", noun: "what it serves while off" },
  fallthrough: { title: "Everyone else", noun: "what everyone else gets" },
  rules: { title: "Rules", noun: "rules" },
  targets: { title: "Individuals", noun: "individuals" },
  prerequisites: { title: "Prerequisites", noun: "prerequisites" },
};

export function nounOf(member: Member): string {
  return NAMES[member].noun;
}

/** What stands above the history anyway. */
const SELF_EVIDENT: Member[] = ["key", "type"];

export interface Difference {
  /** What changed, in words. */
  what: string;
  /** Lines that were there and are no more, and the other way round. */
  removed: string[];
  added: string[];
}

/** What is told of a change beside its name. */
export function detailsOf(change: FlagChange): Difference[] {
  // A flag that was made had nothing before; of a switch the name of the change says it all.
  if (change.kind === "created") {
    return differences(change.changes.map((it) => ({ ...it, from: undefined })));
  }
  return isSwitch(change) ? [] : differences(change.changes);
}

/** What changes did, for people: a line for each thing that is gone or new. */
export function differences(changes: readonly MemberChange[]): Difference[] {
  return changes
    .filter((it) => !SELF_EVIDENT.includes(it.member))
    .map(({ member, from, to }) => ({
      what: NAMES[member].title,
      ...compared(linesOf(member, from), linesOf(member, to)),
    }))
    .filter((it) => it.removed.length > 0 || it.added.length > 0);
}

/** A member's value as lines, one for each thing in it. */
function linesOf(member: Member, value: unknown): string[] {
  if (value === undefined) return [];
  if (value === null) {
    return member === "offVariant" ? ["the application’s own default"] : [];
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
      return (value as Draft["prerequisites"]).map((it) => `${it.flagKey} is ${it.variant}`);
    case "fallthrough":
      return [serveInWords(value as Serve)];
    case "rules":
      return (value as Rule[]).map(ruleInWords);
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text ? text.split("\n") : [];
}

function ruleInWords({ name, conditions, serve }: Rule): string {
  const served = `${conditionsInWords(conditions)} gets ${serveInWords(serve)}`;
  return name ? `${name}: ${served}` : served;
}

/** Lines that only one side has, in their order; a line that moved is gone and new. */
export function compared(from: string[], to: string[]): { removed: string[]; added: string[] } {
  const common = longestCommon(from, to);
  return { removed: without(from, common), added: without(to, common) };
}

/** The longest list that both have in this order. */
function longestCommon(one: string[], other: string[]): string[] {
  let row: string[][] = Array.from({ length: other.length + 1 }, () => []);
  for (const line of one) {
    const next: string[][] = [[]];
    other.forEach((it, index) => {
      const before = row[index] ?? [];
      const [above, left] = [row[index + 1] ?? [], next[index] ?? []];
      next.push(it === line ? [...before, it] : above.length >= left.length ? above : left);
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
 * What a flag's members would become if it were made as `version` left it: `changes` are all of its changes
 * from the newest down to that version, as the API tells them. There are no gaps between them.
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
  unarchived: "Brought back",
  restored: "Restored",
};

function isSwitch({ kind, changes }: Pick<FlagChange, "kind" | "changes">): boolean {
  const told = changes.filter((it) => !SELF_EVIDENT.includes(it.member));
  return kind === "updated" && told.length === 1 && told[0]?.member === "enabled";
}

/** A change in a few words: `Switched on`, `Changed rules and its name`. */
export function changeInWords({ kind, changes }: Pick<FlagChange, "kind" | "changes">): string {
  const told = changes.filter((it) => !SELF_EVIDENT.includes(it.member));
  if (kind !== "updated") return KINDS[kind];
  if (isSwitch({ kind, changes })) return told[0]?.to ? "Switched on" : "Switched off";
  const names = told.map((it) => NAMES[it.member].noun);
  return names.length > 3 ? plural(names.length, "change") : `Changed ${names.join(" and ")}`;
}

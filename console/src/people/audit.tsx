/** The audit log: changes and sign-ins in the organization, newest first. */

import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCaller } from "../caller";
import { own } from "../own";
import { formatFull } from "../time/format";
import { useNextPage } from "../ui/next-page";
import { More } from "../ui/row-parts";
import { Empty, Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { browserOf } from "./browser";
import { SettingsTabs } from "./tabs";

type Entry = Schemas["AuditEntry"];

const PAGE_SIZE = 100;

/** Actions whose words differ from their names. */
const ACTIONS: Record<string, string> = {
  signed_in: "Signed in",
  api_key_created: "Created API key",
  api_key_revoked: "Revoked API key",
  member_updated: "Changed the role or projects of",
  invitation_created: "Invited",
  invitation_accepted: "Accepted the invitation of",
  invitation_revoked: "Revoked the invitation of",
};

/** Returns the words for an action before its target: `flag_updated` is “Updated flag”. */
export function actionText(action: string): string {
  const known = own(ACTIONS, action);
  if (known) return known;
  const words = action.split("_");
  const verb = words.pop() ?? "";
  return [verb.charAt(0).toUpperCase() + verb.slice(1), ...words].join(" ");
}

function loadPage(cursor: string | null, signal?: AbortSignal) {
  const query = { limit: PAGE_SIZE, ...(cursor && { cursor }) };
  return api.GET("/v0/audit", { params: { query }, signal });
}

export function AuditPage() {
  const { caller } = useCaller();
  const loaded = useLoaded(`audit ${caller.organization}`, (signal) => loadPage(null, signal));
  const { data } = loaded;
  const { busy, loadMore } = useNextPage(loaded, loadPage);
  return (
    <>
      <div class="page-head">
        <h1>Audit log</h1>
        <span class="quiet small">Covers the last 400 days</span>
      </div>
      <SettingsTabs page="audit" />
      <Pending of={loaded} rows={10} />
      {data?.items.length === 0 && (
        <Empty title="No entries yet">
          <p>Sign-ins and changes of members, keys, projects and flags are listed here.</p>
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <div class="table-scroll">
          <table class="table people-table">
            <colgroup>
              <col />
              <col class="wide" style={{ width: "26%" }} />
              <col class="wide" style={{ width: "24%" }} />
              <col class="of-time" />
            </colgroup>
            <thead>
              <tr>
                <th>Change</th>
                <th class="wide">By</th>
                <th class="wide">From</th>
                <th class="number">Time</th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((it) => (
                <Row key={it.id} entry={it} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data?.nextCursor && <More busy={busy} onClick={loadMore} />}
    </>
  );
}

function Row({ entry: { action, actor, at, source, target } }: { entry: Entry }) {
  const name = target.name || target.id;
  const isSelf = action === "signed_in";
  const by = actor.type === "command" ? "The waymark command" : actor.name || actor.id;
  const from = [browserOf(source.userAgent), source.address].filter(Boolean).join(" · ");
  return (
    <tr>
      <td>
        {actionText(action)} {!isSelf && <b class="target">{<bdi>{name}</bdi>}</b>}
        <small class="only-narrow">
          <bdi>{by}</bdi>
        </small>
      </td>
      <td class="wide quiet">
        <bdi>{by}</bdi>
        {actor.type === "key" && (
          <small>
            Key <code>{actor.id}</code>
          </small>
        )}
      </td>
      <td class="wide quiet" title={source.userAgent ?? ""}>
        <bdi>{from || "–"}</bdi>
      </td>
      <td class="number quiet" title={formatFull(Date.parse(at))}>
        <RelativeTime at={at} />
      </td>
    </tr>
  );
}

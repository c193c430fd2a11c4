/** The audit log: changes and sign-ins in the organization, newest first. */

import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCaller } from "../caller";
import { own } from "../own";
import { capitalize } from "../time/format";
import { More, useNextPage } from "../ui/row-parts";
import { Empty, Pending } from "../ui/states";
import { PlainTable } from "../ui/table";
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
  return [capitalize(verb), ...words].join(" ");
}

const loadPage = (cursor?: string, signal?: AbortSignal) =>
  api.GET("/v0/audit", { params: { query: { limit: PAGE_SIZE, cursor } }, signal });

export function AuditPage() {
  const { caller } = useCaller();
  const loaded = useLoaded(`audit ${caller.organization}`, (signal) => loadPage(undefined, signal));
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
      <PlainTable
        items={data?.items}
        idOf={(it) => it.id}
        columns={[
          [
            "Change",
            "",
            (it) => (
              <>
                {actionText(it.action)}{" "}
                {it.action !== "signed_in" && (
                  <b class="target">
                    <bdi>{it.target.name || it.target.id}</bdi>
                  </b>
                )}
                <small class="only-narrow">
                  <bdi>{actorName(it)}</bdi>
                </small>
              </>
            ),
          ],
          [
            "By",
            "wide quiet of-third",
            (it) => (
              <>
                <bdi>{actorName(it)}</bdi>
                {it.actor.type === "key" && (
                  <small>
                    Key <code>{it.actor.id}</code>
                  </small>
                )}
              </>
            ),
          ],
          [
            "From",
            "wide quiet of-quarter",
            ({ source }) => (
              <bdi title={source.userAgent ?? ""}>
                {[browserOf(source.userAgent), source.address].filter(Boolean).join(" · ") || "–"}
              </bdi>
            ),
          ],
          ["Time", "number quiet of-time", (it) => <RelativeTime at={it.at} />],
        ]}
      />
      {data?.nextCursor && <More busy={busy} onClick={loadMore} />}
    </>
  );
}

function actorName({ actor }: Entry): string {
  return actor.type === "command" ? "The waymark command" : actor.name || actor.id;
}

/** API keys of the organization. */

import { useState } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { ApiError, api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { loadPages } from "../api/pages";
import { useCaller } from "../caller";
import { pluralize } from "../time/format";
import { Button, Segments } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Empty, Pending } from "../ui/states";
import { ACTIONS, PlainTable } from "../ui/table";
import { RelativeTime, TimeOrNever } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { NewKey } from "./new-key";
import { useProjectNames } from "./project-choice";
import { SettingsTabs } from "./tabs";

type ApiKey = Schemas["ApiKeyInfo"];

const isActive = ({ revokedAt, expiresAt }: ApiKey) =>
  revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > Date.now());

/** Describes scopes in a table: up to two of them, or their number. */
function scopesText(scopes: string[]): string {
  return scopes.length > 2 ? pluralize(scopes.length, "scope") : scopes.join(", ");
}

export function KeysPage() {
  const address = useAddress();
  const { caller } = useCaller();
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const loaded = useLoaded(`keys ${caller.organization}`, (signal) =>
    loadPages((query) => api.GET("/v0/api-keys", { params: { query }, signal })),
  );
  const namesOf = useProjectNames();
  if (address.query.has("new")) return <NewKey onCreated={loaded.reload} />;
  const isPast = address.query.get("show") === "past";
  const keys = (loaded.data?.items ?? []).filter((it) => isActive(it) !== isPast);
  const revoke = async (key: ApiKey) => {
    setRevoking(null);
    try {
      const params = { path: { keyId: key.keyId } };
      await api.DELETE("/v0/api-keys/{keyId}", { params });
      showToast(`Revoked “${nameOf(key)}”.`);
    } catch (error) {
      // The caller's own key is rejected from now on.
      if (!(error instanceof ApiError && error.status === 401)) showErrorToast(error);
    }
    loaded.reload();
  };

  return (
    <>
      <div class="page-head">
        <h1>API keys</h1>
        <Button class="primary" onClick={() => go(changed(address, { new: 1 }))}>
          New key
        </Button>
      </div>
      <SettingsTabs page="keys" />
      <div class="page-head">
        <Segments
          name="State"
          values={[false, true]}
          chosen={isPast}
          text={(it) => (it ? "Revoked and expired" : "Active")}
          onChoose={(it) => go(changed(address, { show: it ? "past" : null }))}
        />
      </div>
      <Pending of={loaded} rows={5} />
      {loaded.data && keys.length === 0 && <NoKeys isPast={isPast} />}
      <PlainTable
        items={keys}
        idOf={(it) => it.keyId}
        columns={[
          [
            "Key",
            "",
            (it) => (
              <span title={`Key ID ${it.keyId}`}>
                <bdi>{nameOf(it)}</bdi>{" "}
                {it.keyId === caller.keyId && <span class="quiet">(in use here)</span>}
                <small>
                  {it.createdBy ? <bdi>{it.createdBy}</bdi> : "The waymark command"},{" "}
                  <RelativeTime at={it.createdAt} />
                </small>
              </span>
            ),
          ],
          [
            "Scopes",
            "wide quiet of-quarter",
            (it) => <span title={it.scopes.join("\n")}>{scopesText(it.scopes)}</span>,
          ],
          ["Projects", "wide quiet of-quarter", (it) => namesOf(it.projects)],
          ["Last used", "number quiet of-time", (it) => <TimeOrNever at={it.lastUsedAt} />],
          [
            isPast ? "Ended" : "Expires",
            "wide number quiet of-time",
            (it) => <TimeOrNever at={it.revokedAt ?? it.expiresAt} />,
          ],
          !isPast && [
            ACTIONS,
            "row-actions of-action",
            (it) => (
              <Button
                class="link danger"
                aria-label={`Revoke ${nameOf(it)}`}
                onClick={() => setRevoking(it)}
              >
                Revoke
              </Button>
            ),
          ],
        ]}
      />
      {loaded.data?.nextCursor && <p class="quiet nothing">Showing the 1,000 newest.</p>}
      {revoking && (
        <Confirm
          title={`Revoke “${nameOf(revoking)}”?`}
          action="Revoke"
          onClose={() => setRevoking(null)}
          onConfirm={() => void revoke(revoking)}
        >
          <p>
            Within 60 seconds, the API rejects requests with this key.{" "}
            {revoking.lastUsedAt ? (
              <>
                It was last used <RelativeTime at={revoking.lastUsedAt} />.
              </>
            ) : (
              "It was never used."
            )}
          </p>
          {revoking.keyId === caller.keyId && (
            <p>
              <b>This tab uses this key.</b> You are signed out.
            </p>
          )}
        </Confirm>
      )}
    </>
  );
}

const nameOf = ({ name, keyId }: ApiKey) => name || keyId;

function NoKeys({ isPast }: { isPast: boolean }) {
  if (isPast) return <Empty title="No revoked or expired keys" />;
  return (
    <Empty title="No API keys yet">
      <p>Servers, SDKs and build tools call the API with a key. Create one for each.</p>
    </Empty>
  );
}

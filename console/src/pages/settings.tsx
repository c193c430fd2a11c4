import { useState } from "preact/hooks";
import { useCan, useCurrentProject } from "../caller";
import { endSession, SignOutEverywhere } from "../people/account";
import { roleName, SCOPE_AREAS } from "../people/roles";
import { SettingsTabs } from "../people/tabs";
import { EmailAddress } from "../settings/email-address";
import { FlagSnippet } from "../settings/flag-snippet";
import { Preferences } from "../settings/preferences";
import { Snippets } from "../settings/snippets";
import { Button } from "../ui/button";
import { Block, Pairs } from "../ui/layout";
import { TimeOrNever } from "../ui/time";

export function SettingsPage() {
  const can = useCan();
  const canRead = can("notifications:read");
  const missing = (
    <p class="quiet nothing">
      Requires the scope <code>notifications:read</code>.
    </p>
  );
  return (
    <>
      <div class="page-head">
        <h1>Settings</h1>
      </div>
      <SettingsTabs page="settings" />
      <div class="settings">
        <div>
          <Block title="Email address">
            {canRead || can("notifications:write") ? <EmailAddress /> : missing}
          </Block>
          <Block title="Email notifications">
            {canRead ? <Preferences canWrite={can("notifications:write")} /> : missing}
          </Block>
        </div>
        <div>
          <Block title="Report errors">
            <Snippets />
          </Block>
          <Block title="Evaluate flags">
            <p class="quiet nothing">
              Use any OpenFeature SDK with the OFREP provider, this base URL and an{" "}
              <code>x-api-key</code> header:
            </p>
            <FlagSnippet />
          </Block>
          <CallerDetails />
        </div>
      </div>
    </>
  );
}

const SCOPES = SCOPE_AREAS.flatMap((it) => it.scopes);

/** The key or session in use. */
function CallerDetails() {
  const { caller } = useCurrentProject();
  const [isLeaving, setLeaving] = useState(false);
  return (
    <Block
      title={caller.keyId ? "Your key" : "Your account"}
      actions={
        <div class="row-actions">
          {caller.email && (
            <Button class="link" onClick={() => setLeaving(true)}>
              Sign out everywhere
            </Button>
          )}
          <Button class="link" onClick={() => void endSession()}>
            Sign out
          </Button>
        </div>
      }
    >
      {isLeaving && <SignOutEverywhere onClose={() => setLeaving(false)} />}
      <Pairs
        rows={[
          ["User", `${caller.user ?? "Unknown user"} of ${caller.organization}`],
          [caller.role && "Role", caller.role && roleName(caller.role)],
          [caller.keyId && "Key ID", <code>{caller.keyId}</code>],
          ["Expires", <TimeOrNever at={caller.expiresAt} />],
          ["Projects", caller.projects.map((it) => it.slug).join(", ")],
          [
            "Scopes",
            <ul class="scopes">
              {SCOPES.map((it) => (
                <li key={it} class={caller.scopes.includes(it) ? "" : "quiet"}>
                  {caller.scopes.includes(it) ? "✓" : "–"} <code>{it}</code>
                  {!caller.scopes.includes(it) && <span class="hidden"> (missing)</span>}
                </li>
              ))}
            </ul>,
          ],
        ]}
      />
    </Block>
  );
}

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
import { RelativeTime } from "../ui/time";

export function SettingsPage() {
  const can = useCan();
  return (
    <>
      <div class="page-head">
        <h1>Settings</h1>
      </div>
      <SettingsTabs page="settings" />
      <div class="settings">
        <div>
          <section class="block">
            <header>
              <h2>Email address</h2>
            </header>
            {can("notifications:read") || can("notifications:write") ? (
              <EmailAddress />
            ) : (
              <p class="quiet nothing">
                Requires the scope <code>notifications:read</code>.
              </p>
            )}
          </section>
          <section class="block">
            <header>
              <h2>Email notifications</h2>
            </header>
            {can("notifications:read") ? (
              <Preferences canWrite={can("notifications:write")} />
            ) : (
              <p class="quiet nothing">
                Requires the scope <code>notifications:read</code>.
              </p>
            )}
          </section>
        </div>
        <div>
          <section class="block">
            <header>
              <h2>Report errors</h2>
            </header>
            <Snippets />
          </section>
          <section class="block">
            <header>
              <h2>Evaluate flags</h2>
            </header>
            <p class="quiet nothing">
              Use any OpenFeature SDK with the OFREP provider, this base URL and an{" "}
              <code>x-api-key</code> header:
            </p>
            <FlagSnippet />
          </section>
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
    <section class="block">
      <header>
        <h2>{caller.keyId ? "Your key" : "Your account"}</h2>
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
        {isLeaving && <SignOutEverywhere onClose={() => setLeaving(false)} />}
      </header>
      <table class="pairs">
        <tbody>
          <tr>
            <th scope="row">User</th>
            <td>
              {caller.user ?? "Unknown user"} of {caller.organization}
            </td>
          </tr>
          {caller.role && (
            <tr>
              <th scope="row">Role</th>
              <td>{roleName(caller.role)}</td>
            </tr>
          )}
          {caller.keyId && (
            <tr>
              <th scope="row">Key ID</th>
              <td>
                <code>{caller.keyId}</code>
              </td>
            </tr>
          )}
          <tr>
            <th scope="row">Expires</th>
            <td>{caller.expiresAt ? <RelativeTime at={caller.expiresAt} /> : "Never"}</td>
          </tr>
          <tr>
            <th scope="row">Projects</th>
            <td>{caller.projects.map((it) => it.slug).join(", ")}</td>
          </tr>
          <tr>
            <th scope="row">Scopes</th>
            <td>
              <ul class="scopes">
                {SCOPES.map((it) => (
                  <li key={it} class={caller.scopes.includes(it) ? "" : "quiet"}>
                    {caller.scopes.includes(it) ? "✓" : "–"} <code>{it}</code>
                    {!caller.scopes.includes(it) && <span class="hidden"> (missing)</span>}
                  </li>
                ))}
              </ul>
            </td>
          </tr>
        </tbody>
      </table>
    </section>
  );
}

import { type Scope, useCan, useCurrentProject } from "../caller";
import { signOut } from "../session";
import { EmailAddress } from "../settings/email-address";
import { Preferences } from "../settings/preferences";
import { Snippets } from "../settings/snippets";
import { inFull } from "../time/format";
import { Code } from "../ui/states";
import { RelativeTime } from "../ui/time";

const SCOPES: Scope[] = [
  "errors:read",
  "errors:write",
  "flags:read",
  "flags:write",
  "flags:evaluate",
  "insights:read",
  "insights:write",
  "markers:read",
  "markers:write",
  "notifications:read",
  "notifications:write",
];

export function SettingsPage() {
  const { project } = useCurrentProject();
  const can = useCan();
  return (
    <>
      <div class="page-head">
        <h1>Settings</h1>
      </div>
      <div class="settings">
        <div>
          <section class="block">
            <header>
              <h2>E-mail address</h2>
            </header>
            {can("notifications:read") || can("notifications:write") ? (
              <EmailAddress />
            ) : (
              <p class="quiet nothing">
                To see it, a key needs the scope <code>notifications:read</code>.
              </p>
            )}
          </section>
          <section class="block">
            <header>
              <h2>What you get mail about</h2>
            </header>
            {can("notifications:read") ? (
              <Preferences mayWrite={can("notifications:write")} />
            ) : (
              <p class="quiet nothing">
                To see them, a key needs the scope <code>notifications:read</code>.
              </p>
            )}
          </section>
        </div>
        <div>
          <section class="block">
            <header>
              <h2>Report errors of {project.name}</h2>
            </header>
            <Snippets />
          </section>
          <section class="block">
            <header>
              <h2>Ask for flags</h2>
            </header>
            <p class="quiet nothing">
              Any OpenFeature SDK does, with its OFREP provider and this base address:
            </p>
            <Code text={`${location.origin}/v0/project/${project.slug}`} />
          </section>
          <WhoAmI />
        </div>
      </div>
    </>
  );
}

function WhoAmI() {
  const { caller } = useCurrentProject();
  return (
    <section class="block">
      <header>
        <h2>This key</h2>
        <button type="button" class="link" onClick={() => signOut()}>
          Forget it
        </button>
      </header>
      <table class="pairs">
        <tbody>
          <tr>
            <th scope="row">Acts for</th>
            <td>
              {caller.user ?? "A user"} of {caller.organization}
            </td>
          </tr>
          <tr>
            <th scope="row">Key id</th>
            <td>
              <code>{caller.keyId}</code>
            </td>
          </tr>
          <tr>
            <th scope="row">Ends</th>
            <td>
              {caller.expiresAt ? (
                <span title={inFull(Date.parse(caller.expiresAt))}>
                  <RelativeTime at={caller.expiresAt} />
                </span>
              ) : (
                "never"
              )}
            </td>
          </tr>
          <tr>
            <th scope="row">Projects</th>
            <td>{caller.projects.map((it) => it.slug).join(", ")}</td>
          </tr>
          <tr>
            <th scope="row">May</th>
            <td>
              <ul class="scopes">
                {SCOPES.map((it) => (
                  <li key={it} class={caller.scopes.includes(it) ? "" : "quiet"}>
                    {caller.scopes.includes(it) ? "✓" : "–"} <code>{it}</code>
                    {!caller.scopes.includes(it) && <span class="hidden"> not</span>}
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

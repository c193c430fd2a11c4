import { answered, api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { type Scope, useCan, useHere } from "../caller";
import { forgetKey } from "../session";
import { inFull } from "../time/format";
import { Code, Refused, SkeletonRows } from "../ui/states";
import { Ago } from "../ui/time";
import { tell, tellRefusal } from "../ui/toast";
import { Snippets } from "./onboarding";

type Preference = Schemas["EmailPreference"];

const TYPES: Record<string, string> = {
  organization_invite: "You are invited to an organization",
  project_invite: "You are invited to a project",
  error_new: "An error occurred for the first time",
  error_regression: "A resolved error occurred again",
  error_spike: "An error occurs far more often than before",
  insight_new: "A replay insight was found",
  insight_trending: "An insight affects more sessions than before",
  flag_changed: "Somebody changed a flag",
  weekly_digest: "What happened in the last week",
  api_key_created: "An API key was made for you",
  billing: "There is an invoice or a payment",
};

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
  const { project } = useHere();
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
              <h2>E-mail</h2>
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
          <WhoAmI />
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
        </div>
      </div>
    </>
  );
}

function Preferences({ mayWrite }: { mayWrite: boolean }) {
  const loaded = useLoaded("preferences", (signal) =>
    answered(api.GET("/v0/notifications/email-preferences", { signal })),
  );
  const put = async (type: Preference["type"], emailEnabled: boolean) => {
    const preferences = [{ type, emailEnabled }];
    const all = await answered(
      api.PUT("/v0/notifications/email-preferences", { body: { preferences } }),
    );
    loaded.set(() => all);
  };
  const toggle = async (it: Preference) => {
    try {
      await put(it.type, !it.emailEnabled);
      tell(it.emailEnabled ? "No e-mail of this any more." : "You get e-mail of this again.", () =>
        put(it.type, it.emailEnabled),
      );
    } catch (error) {
      tellRefusal(error);
    }
  };
  if (loaded.error) return <Refused refusal={loaded.error} retry={loaded.reload} />;
  if (!loaded.data) return <SkeletonRows rows={11} />;
  return (
    <ul class="toggles">
      {loaded.data.map((it) => (
        <li key={it.type}>
          <span id={`type-${it.type}`}>
            {TYPES[it.type] ?? it.type}
            <small>
              {" "}
              <code>{it.type}</code>
            </small>
          </span>
          {mayWrite ? (
            <button
              type="button"
              role="switch"
              class="switch"
              aria-checked={it.emailEnabled}
              aria-labelledby={`type-${it.type}`}
              onClick={() => void toggle(it)}
            />
          ) : (
            <span class={it.emailEnabled ? "status on" : "status"}>
              {it.emailEnabled ? "on" : "off"}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function WhoAmI() {
  const { caller } = useHere();
  return (
    <section class="block">
      <header>
        <h2>This key</h2>
        <button type="button" class="link" onClick={() => forgetKey()}>
          Forget it
        </button>
      </header>
      <table class="pairs">
        <tbody>
          <tr>
            <th scope="row">Acts for</th>
            <td>
              {caller.user} of {caller.organization}
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
                  <Ago at={caller.expiresAt} />
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
              <ul>
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

/** Which mails one gets: a switch for each type, and what the type means. */

import { api, type Schemas, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { own } from "../own";
import { Refused, SkeletonRows } from "../ui/states";
import { showErrorToast, showToast } from "../ui/toast";

type Preference = Schemas["EmailPreference"];

interface Meaning {
  name: string;
  /** When such a mail comes. `null` for types that nothing sends yet. */
  when: string | null;
}

const TYPES: Record<string, Meaning> = {
  error_new: {
    name: "New error",
    when: "An error occurred for the first time in one of your projects.",
  },
  error_regression: {
    name: "Error is back",
    when: "An error that was resolved occurred again, and is open once more.",
  },
  error_spike: {
    name: "Error spike",
    when: "An error occurs far more often than it did before.",
  },
  insight_new: { name: "New insight", when: "A replay insight was found." },
  insight_trending: {
    name: "Insight on the rise",
    when: "An insight affects more sessions than in the time before.",
  },
  flag_changed: {
    name: "Flag changed",
    when: "Somebody else switched, changed or archived a flag.",
  },
  weekly_digest: {
    name: "Weekly digest",
    when: "Once a week: what happened in your projects.",
  },
  api_key_created: {
    name: "API key made",
    when: "A key was made that acts for you. If it was not you, revoke it.",
  },
  organization_invite: { name: "Invitation to an organization", when: null },
  project_invite: { name: "Invitation to a project", when: null },
  billing: { name: "Invoices and payments", when: null },
};

function meaningOf(type: string): Meaning {
  return own(TYPES, type) ?? { name: type, when: "" };
}

export function Preferences({ mayWrite }: { mayWrite: boolean }) {
  const loaded = useLoaded("preferences", (signal) =>
    unwrapResponse(api.GET("/v0/notifications/email-preferences", { signal })),
  );
  const put = async (type: Preference["type"], emailEnabled: boolean) => {
    const preferences = [{ type, emailEnabled }];
    const all = await unwrapResponse(
      api.PUT("/v0/notifications/email-preferences", { body: { preferences } }),
    );
    loaded.set(() => all);
  };
  const toggle = async ({ type, emailEnabled }: Preference) => {
    try {
      await put(type, !emailEnabled);
      const name = meaningOf(type).name;
      showToast(
        emailEnabled ? `No mail about “${name}” any more.` : `Mail about “${name}” again.`,
        () => put(type, emailEnabled),
      );
    } catch (error) {
      showErrorToast(error);
    }
  };
  if (loaded.error) return <Refused refusal={loaded.error} retry={loaded.reload} />;
  if (!loaded.data) return <SkeletonRows rows={11} />;
  const isSent = (it: Preference) => meaningOf(it.type).when !== null;
  const order = Object.keys(TYPES);
  const sent = loaded.data
    .filter(isSent)
    .sort((one, other) => order.indexOf(one.type) - order.indexOf(other.type));
  const list = (preferences: Preference[]) => (
    <ul class="toggles">
      {preferences.map((it) => (
        <Toggle
          key={it.type}
          preference={it}
          onToggle={mayWrite ? () => void toggle(it) : undefined}
        />
      ))}
    </ul>
  );
  return (
    <>
      {list(sent)}
      <h3 class="later">Not sent yet; your choice is kept for when they are</h3>
      {list(loaded.data.filter((it) => !isSent(it)))}
    </>
  );
}

interface ToggleProps {
  preference: Preference;
  /** Missing for those who may only read. */
  onToggle: (() => void) | undefined;
}

function Toggle({ preference: { type, emailEnabled }, onToggle }: ToggleProps) {
  const { name, when } = meaningOf(type);
  return (
    <li>
      <span>
        <span id={`type-${type}`}>{name}</span>
        {when && <small>{when}</small>}
      </span>
      {onToggle ? (
        <button
          type="button"
          role="switch"
          class="switch"
          aria-checked={emailEnabled}
          aria-labelledby={`type-${type}`}
          onClick={onToggle}
        />
      ) : (
        <span class={emailEnabled ? "status on" : "status"}>{emailEnabled ? "on" : "off"}</span>
      )}
    </li>
  );
}

/** Email notifications: a switch for each type. */

import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { own } from "../own";
import { Button } from "../ui/button";
import { Pending } from "../ui/states";
import { showToast, useAction } from "../ui/toast";

type Preference = Schemas["EmailPreference"];

interface EmailType {
  name: string;
  description: string;
}

const TYPES: Record<string, EmailType> = {
  error_new: {
    name: "New error",
    description: "An error occurred for the first time in one of your projects.",
  },
  error_regression: {
    name: "Error reopened",
    description: "A resolved error occurred again and was reopened.",
  },
  error_spike: {
    name: "Error spike",
    description: "An error occurs far more often than before.",
  },
  insight_new: { name: "New insight", description: "A replay insight was created." },
  insight_trending: {
    name: "Trending insight",
    description: "An insight affects more sessions than in the previous period.",
  },
  flag_changed: {
    name: "Flag changed",
    description: "Another user turned a flag on or off, changed it or archived it.",
  },
  weekly_digest: {
    name: "Weekly digest",
    description: "A weekly summary of your projects.",
  },
  organization_invite: {
    name: "Invitation",
    description: "You are invited to an organization. Without the email, the console shows it.",
  },
  api_key_created: {
    name: "API key created",
    description: "A key that acts for you was created. If you didn’t create it, revoke it.",
  },
};

/** Types that are never sent yet. */
const UNSENT = ["project_invite", "billing"];

function typeOf(type: string): EmailType {
  return own(TYPES, type) ?? { name: type, description: "" };
}

export function Preferences({ canWrite }: { canWrite: boolean }) {
  const loaded = useLoaded("preferences", (signal) =>
    api.GET("/v0/notifications/email-preferences", { signal }),
  );
  const save = async (type: Preference["type"], emailEnabled: boolean) => {
    const preferences = [{ type, emailEnabled }];
    const all = await api.PUT("/v0/notifications/email-preferences", { body: { preferences } });
    loaded.set(() => all);
  };
  const [, run] = useAction();
  const toggle = async ({ type, emailEnabled }: Preference) => {
    await save(type, !emailEnabled);
    showToast(`${typeOf(type).name} ${emailEnabled ? "off" : "on"}.`, () =>
      save(type, emailEnabled),
    );
  };
  const order = Object.keys(TYPES);
  if (loaded.error || !loaded.data) return <Pending of={loaded} rows={order.length} />;
  const preferences = loaded.data
    .filter((it) => !UNSENT.includes(it.type))
    .sort((one, other) => order.indexOf(one.type) - order.indexOf(other.type));
  return (
    <ul class="toggles">
      {preferences.map((it) => (
        <Toggle
          key={it.type}
          preference={it}
          onToggle={canWrite ? () => void run(() => toggle(it)) : undefined}
        />
      ))}
    </ul>
  );
}

interface ToggleProps {
  preference: Preference;
  /** `undefined` for a key that can only read. */
  onToggle: (() => void) | undefined;
}

function Toggle({ preference: { type, emailEnabled }, onToggle }: ToggleProps) {
  const { name, description } = typeOf(type);
  return (
    <li>
      <span>
        <span id={`type-${type}`}>{name}</span>
        {description && <small>{description}</small>}
      </span>
      {onToggle ? (
        <Button
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

/** The form for a new API key, and its secret, which is shown once. */

import { useState } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { api, type Schemas } from "../api/client";
import { type Scope, useCaller } from "../caller";
import { Button, Segments } from "../ui/button";
import { Back } from "../ui/detail-page";
import { Field, FormError, useForm } from "../ui/form";
import { Pairs } from "../ui/layout";
import { Code, FieldError } from "../ui/states";
import { TimeOrNever } from "../ui/time";
import { ProjectChoice, type ProjectIds } from "./project-choice";
import { accessOf, SCOPE_AREAS } from "./roles";

type CreatedApiKey = Pick<Schemas["CreatedApiKey"], "name" | "scopes" | "expiresAt" | "apiKey">;

const DAY_MS = 86_400_000;
const LIFETIMES: [days: number, name: string][] = [
  [30, "30 days"],
  [90, "90 days"],
  [365, "1 year"],
  [0, "Never"],
];

/** Common choices of scopes. */
const PRESETS: { name: string; matches: (scope: Scope) => boolean }[] = [
  { name: "Read", matches: (it) => it.endsWith(":read") && !isAdministrative(it) },
  { name: "Read and write", matches: (it) => !isAdministrative(it) },
  { name: "Evaluate flags", matches: (it) => it === "flags:evaluate" },
  { name: "Upload source maps", matches: (it) => it === "source-maps:write" },
];

const isAdministrative = (scope: Scope) => /^(members|keys|projects|audit):/.test(scope);

/** Returns the expiry of a key that is created at `now`; `null` for 0 days. */
export function expiryOf(days: number, now: number): string | null {
  return days === 0 ? null : new Date(now + days * DAY_MS).toISOString();
}

export function NewKey({ onCreated }: { onCreated: () => void }) {
  const address = useAddress();
  const { caller } = useCaller();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>([]);
  const [days, setDays] = useState(90);
  const [projects, setProjects] = useState<ProjectIds>(null);
  const [created, setCreated] = useState<CreatedApiKey | null>(null);
  const form = useForm(async () => {
    const body = { name: name.trim(), scopes, projects, expiresAt: expiryOf(days, Date.now()) };
    setCreated(await api.POST("/v0/api-keys", { body }));
    onCreated();
  });
  const list = changed(address, { new: null });
  if (created) return <Secret created={created} onDone={() => go(list, "replace")} />;

  const isOffered = (scope: Scope) => caller.scopes.includes(scope);
  const toggle = (scope: Scope, isChosen: boolean) =>
    setScopes((was) => (isChosen ? [...was, scope] : was.filter((it) => it !== scope)));
  const areas = SCOPE_AREAS.map((it) => ({ ...it, scopes: it.scopes.filter(isOffered) }));
  const presets = PRESETS.map((it) => ({ ...it, scopes: caller.scopes.filter(it.matches) }));
  const isPressed = (preset: Scope[]) =>
    preset.length === scopes.length && preset.every((it) => scopes.includes(it));
  return (
    <>
      <Back list="API keys" href={list} />
      <div class="page-head">
        <h1>New API key</h1>
      </div>
      <form class="form narrow" {...form.props}>
        <Field
          label="Name"
          at="/name"
          form={form}
          autofocus
          placeholder="Checkout service"
          value={name}
          onInput={setName}
        />
        <fieldset class="choice">
          <legend>Scopes</legend>
          <Segments
            name="Common scopes"
            values={presets.filter((it) => it.scopes.length > 0)}
            chosen={presets.find((it) => isPressed(it.scopes))}
            text={(it) => it?.name ?? ""}
            onChoose={(it) => it && setScopes(it.scopes)}
          />
          <ul class="scope-areas">
            {areas
              .filter((it) => it.scopes.length > 0)
              .map((area) => (
                <li key={area.name}>
                  <span>{area.name}</span>
                  <span>
                    {area.scopes.map((scope) => (
                      <label class="check" key={scope} title={scope}>
                        <input
                          type="checkbox"
                          aria-label={`${area.name}: ${accessOf(scope)}`}
                          checked={scopes.includes(scope)}
                          onChange={(event) => toggle(scope, event.currentTarget.checked)}
                        />
                        {accessOf(scope)}
                      </label>
                    ))}
                  </span>
                </li>
              ))}
          </ul>
          <FieldError error={form.error} at="/scopes" message="Choose at least one scope." />
          {isPressed(["flags:evaluate"]) && (
            <p class="quiet small">
              You can ship this key in web pages and apps: every visitor can read it, and it can
              only evaluate flags.
            </p>
          )}
        </fieldset>
        <ProjectChoice chosen={projects} onChange={setProjects} error={form.error} />
        <fieldset class="choice">
          <legend>Expires after</legend>
          <Segments
            name="Lifetime"
            values={LIFETIMES.map(([lifetime]) => lifetime)}
            chosen={days}
            text={(it) => LIFETIMES.find(([lifetime]) => lifetime === it)?.[1] ?? ""}
            onChoose={setDays}
          />
          <FieldError error={form.error} at="/expiresAt" />
        </fieldset>
        <p class="quiet small">
          The key never allows more than your role, and stops working if you leave{" "}
          {caller.organization}.
        </p>
        <FormError form={form} />
        <div class="form-row">
          <button type="submit" class="primary" disabled={form.busy}>
            Create key
          </button>
          <Button onClick={() => go(list)}>Cancel</Button>
        </div>
      </form>
    </>
  );
}

function Secret({ created, onDone }: { created: CreatedApiKey; onDone: () => void }) {
  return (
    <>
      <div class="page-head">
        <h1>
          Created “<bdi>{created.name}</bdi>”
        </h1>
      </div>
      <div class="form narrow">
        <p class="warning" role="status">
          Copy the key now. It is not stored, and this page shows it only once.
        </p>
        <Code text={created.apiKey} copyLabel="Copy key" />
        <Pairs
          rows={[
            ["Scopes", created.scopes.join(", ")],
            ["Expires", <TimeOrNever at={created.expiresAt} />],
          ]}
        />
        <h2>Try it</h2>
        <Code
          text={`curl ${location.origin}/v0/me -H "x-api-key: $KEY"`}
          copyLabel="Copy command"
        />
        <div>
          <Button class="primary" onClick={onDone}>
            Done
          </Button>
        </div>
      </div>
    </>
  );
}

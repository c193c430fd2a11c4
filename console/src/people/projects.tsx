/** Projects of the organization: their names, limits, DSNs and deletion. */

import { useState } from "preact/hooks";
import { changed, go, hrefOf, useAddress } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError, api, type Schemas } from "../api/client";
import { useCaller } from "../caller";
import { dsnOf } from "../settings/dsn";
import { Button } from "../ui/button";
import { Field, FormDialog, useForm } from "../ui/form";
import { CopyButton, Empty, Pending } from "../ui/states";
import { ACTIONS, PlainTable } from "../ui/table";
import { showToast } from "../ui/toast";
import { useProjects } from "./project-choice";
import { SettingsTabs } from "./tabs";

type Project = Schemas["ListedProject"];
type Shown = { type: "edit" | "delete"; project: Project };

/** Proposes a slug for a name: `My Shop!` is `my-shop`. */
export function slugOf(name: string): string {
  const plain = name.toLowerCase().replaceAll("ß", "ss").normalize("NFKD").replace(/\p{M}/gu, "");
  return plain
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-|-$/g, "");
}

export function ProjectsPage() {
  const address = useAddress();
  const { reload: reloadCaller } = useCaller();
  const [shown, show] = useState<Shown | null>(null);
  const projects = useProjects();
  const isNew = address.query.has("new");
  const closeNew = () => go(changed(address, { new: null }), "replace");
  const refresh = () => {
    projects.reload();
    reloadCaller();
  };
  return (
    <>
      <div class="page-head">
        <h1>Projects</h1>
        <Button class="primary" onClick={() => go(changed(address, { new: 1 }))}>
          New project
        </Button>
      </div>
      <SettingsTabs page="projects" />
      <Pending of={projects} rows={4} />
      {projects.data?.items.length === 0 && (
        <Empty title="No projects yet">
          <p>A project has its own errors, flags, insights and markers.</p>
        </Empty>
      )}
      <PlainTable
        items={projects.data?.items}
        idOf={(it) => it.id}
        columns={[
          [
            "Project",
            "",
            (it) => (
              <>
                <bdi>{it.name}</bdi>
                {it.production && <span class="quiet"> · production</span>}
              </>
            ),
          ],
          ["Slug", "wide quiet of-quarter", (it) => <code>{it.slug}</code>],
          [
            "DSN",
            "of-action",
            (it) => (
              <CopyButton text={dsnOf(location.origin, it)} label={`Copy the DSN of ${it.name}`} />
            ),
          ],
          [
            ACTIONS,
            "row-actions of-actions",
            (it) => (
              <>
                <Button
                  class="link"
                  aria-label={`Edit ${it.name}`}
                  onClick={() => show({ type: "edit", project: it })}
                >
                  Edit
                </Button>
                <Button
                  class="link danger"
                  aria-label={`Delete ${it.name}`}
                  onClick={() => show({ type: "delete", project: it })}
                >
                  Delete
                </Button>
              </>
            ),
          ],
        ]}
      />
      {isNew && (
        <NewProject
          onClose={closeNew}
          onCreated={({ name, slug }) => {
            closeNew();
            refresh();
            showToast(`Created “${name}”.`, undefined, {
              href: hrefOf("", { project: slug }),
              text: "Open",
            });
          }}
        />
      )}
      {shown?.type === "edit" && (
        <EditProject
          project={shown.project}
          onClose={() => show(null)}
          onSaved={() => {
            show(null);
            refresh();
            showToast("Saved. New limits take effect within a minute.");
          }}
        />
      )}
      {shown?.type === "delete" && (
        <DeleteProject
          project={shown.project}
          onClose={() => show(null)}
          onDeleted={() => {
            show(null);
            // The address must not name the deleted project.
            const other = projects.data?.items.find((it) => it.id !== shown.project.id);
            if (address.query.get("project") === shown.project.slug)
              go(hrefOf("projects", { project: other?.slug }), "replace");
            refresh();
            showToast(`Deleting “${shown.project.name}” and its data.`);
          }}
        />
      )}
    </>
  );
}

interface NewProjectProps {
  onClose: () => void;
  onCreated: (project: Schemas["Project"]) => void;
}

function NewProject({ onClose, onCreated }: NewProjectProps) {
  const [name, setName] = useState("");
  const [typedSlug, setSlug] = useState<string | null>(null);
  const attempts = useAttempts();
  const slug = typedSlug ?? slugOf(name);
  const form = useForm(async () => {
    const body = { name: name.trim(), slug };
    const params = { header: attempts.keyFor(body) };
    const project = await api.POST("/v0/projects", { params, body });
    attempts.succeeded();
    onCreated(project);
  });
  return (
    <FormDialog title="New project" action="Create project" form={form} onClose={onClose}>
      <Field
        label="Name"
        at="/name"
        form={form}
        placeholder="My shop"
        value={name}
        onInput={setName}
      />
      <Field label="Slug" id="project-slug" at="/slug" form={form} value={slug} onInput={setSlug}>
        <p class="quiet small">Names the project in addresses and the API. It cannot change.</p>
      </Field>
    </FormDialog>
  );
}

type Limit = "eventsPerMinute" | "requestsPerMinute";

const LIMITS: { limit: Limit; name: string }[] = [
  { limit: "eventsPerMinute", name: "Error events per minute" },
  { limit: "requestsPerMinute", name: "API requests per minute and key" },
];

function invalidLimit(limit: Limit): ApiError {
  const message = "Enter a whole number, or “default”.";
  return new ApiError(0, "invalid", message, [
    { pointer: `/${limit}`, code: "out_of_range", message },
  ]);
}

interface EditProjectProps {
  project: Project;
  onClose: () => void;
  onSaved: () => void;
}

function EditProject({ project, onClose, onSaved }: EditProjectProps) {
  const [name, setName] = useState(project.name);
  const [production, setProduction] = useState(project.production);
  // The API does not list limits, so only those that the user sets are sent.
  const [limits, setLimits] = useState<Record<Limit, string>>({
    eventsPerMinute: "",
    requestsPerMinute: "",
  });
  const form = useForm(async () => {
    const body: Schemas["ProjectPatch"] = { name: name.trim(), production };
    for (const { limit } of LIMITS) {
      const text = limits[limit].trim().toLowerCase();
      if (text && text !== "default" && !/^\d+$/.test(text)) throw invalidLimit(limit);
      if (text) body[limit] = text === "default" ? null : Number(text);
    }
    const params = { path: { idOrSlug: project.id } };
    await api.PATCH("/v0/projects/{idOrSlug}", { params, body });
    onSaved();
  });
  return (
    <FormDialog title={`Edit “${project.name}”`} action="Save" form={form} onClose={onClose}>
      <Field label="Name" at="/name" form={form} value={name} onInput={setName} />
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            checked={production}
            onChange={(event) => setProduction(event.currentTarget.checked)}
          />
          Production
        </label>
        <p class="quiet small">Turning on a flag needs a confirmation.</p>
      </div>
      {LIMITS.map(({ limit, name: label }) => (
        <Field
          key={limit}
          label={label}
          at={`/${limit}`}
          form={form}
          placeholder="Unchanged"
          value={limits[limit]}
          onInput={(value) => setLimits((was) => ({ ...was, [limit]: value }))}
        />
      ))}
      <p class="quiet small">
        0 means no limit. Enter <code>default</code> for the deployment’s limit.
      </p>
    </FormDialog>
  );
}

interface DeleteProjectProps {
  project: Project;
  onClose: () => void;
  onDeleted: () => void;
}

function DeleteProject({ project, onClose, onDeleted }: DeleteProjectProps) {
  const [confirm, setConfirm] = useState("");
  const form = useForm(async () => {
    const params = { path: { idOrSlug: project.id } };
    const body = { confirm: confirm.trim() };
    await api.DELETE("/v0/projects/{idOrSlug}", { params, body });
    onDeleted();
  });
  return (
    <FormDialog
      title={`Delete “${project.name}”?`}
      action="Delete project"
      isDangerous
      disabled={confirm.trim() !== project.slug}
      form={form}
      onClose={onClose}
    >
      <p>
        This permanently deletes the project with its errors, flags, segments, insights, markers and
        source maps. SDKs that evaluate its flags get their default values, and SDKs that send
        events are rejected.
      </p>
      <Field
        label={
          <>
            Type <code>{project.slug}</code> to confirm
          </>
        }
        at="/confirm"
        form={form}
        message={`Type “${project.slug}” exactly.`}
        autocomplete="off"
        spellcheck={false}
        value={confirm}
        onInput={setConfirm}
      />
    </FormDialog>
  );
}

import { useState } from "preact/hooks";
import { changed, go, Link, useAddress, usePageGuard } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError, api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import type { Page } from "../api/pages";
import { useCan, useCurrentProject } from "../caller";
import { newestOf } from "../errors/newest";
import { fieldOf, number, pluralize } from "../time/format";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Field, FormError, useForm } from "../ui/form";
import { Block } from "../ui/layout";
import { More, RowTitle, useNextPage } from "../ui/row-parts";
import { Empty, Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showToast, useAction } from "../ui/toast";

type Collection = Schemas["EventMarkerCollection"];
type Source = Collection["source"];

/** Sources of automatic markers. */
const SOURCES: Record<NonNullable<Source>, string> = {
  releases: "Automatic: each new release",
  flags: "Automatic: each flag change",
};
type Marker = Schemas["EventMarker"];

/** The earliest time that the API accepts. */
const FIRST_TIME = Date.parse("0000-01-01T00:00:00Z");
/** Pages of 100 markers that are loaded at a time, newest first. */
const MAX_PAGES = 5;

export function MarkersPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("markers:write");
  const loaded = useLoaded(`collections ${project.id}`, (signal) =>
    api.GET("/v0/projects/{idOrSlug}/event-marker-collections", {
      params: { path: { idOrSlug: project.slug }, query: { limit: 100 } },
      signal,
    }),
  );
  const items = loaded.data?.items ?? [];
  const chosen = items.find((it) => it.id === address.query.get("collection")) ?? items[0];
  return (
    <>
      <div class="page-head">
        <h1>Markers</h1>
        <span class="quiet small">
          Releases, incidents and campaigns, shown as dashed lines on every chart
        </span>
      </div>
      <Pending of={loaded} rows={5} />
      {loaded.data && (
        <div class="editor">
          <div>
            {chosen ? (
              <Markers
                key={chosen.id}
                collection={chosen}
                canWrite={canWrite}
                onChange={loaded.reload}
              />
            ) : (
              <Empty title="No markers yet">
                <p>Create a collection such as “Releases”, then add markers, ideally from CI.</p>
              </Empty>
            )}
          </div>
          <aside>
            <Block title="Collections">
              <ul class="rows">
                {items.map((it) => (
                  <li key={it.id}>
                    <Link
                      class="row"
                      href={changed(address, { collection: it.id })}
                      aria-current={it === chosen ? "page" : undefined}
                    >
                      <RowTitle
                        name={it.name}
                        description={[it.source && SOURCES[it.source], it.description]
                          .filter(Boolean)
                          .join(" · ")}
                      />
                      <span class="number quiet">{number(it.eventCount)}</span>
                    </Link>
                  </li>
                ))}
              </ul>
              {loaded.data.nextCursor && <p class="quiet small nothing">Showing the 100 newest.</p>}
            </Block>
            {canWrite && <NewCollection onCreated={loaded.reload} />}
          </aside>
        </div>
      )}
    </>
  );
}

function NewCollection({ onCreated }: { onCreated: () => void }) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [source, setSource] = useState<Source>(null);
  const attempts = useAttempts();
  const guardPage = usePageGuard();
  const form = useForm(async () => {
    const isHere = guardPage();
    const body = { name, description, source };
    const created = await api.POST("/v0/projects/{idOrSlug}/event-marker-collections", {
      params: { path: { idOrSlug: project.slug }, header: attempts.keyFor(body) },
      body,
    });
    attempts.succeeded();
    // Keeps text that was typed since the request.
    setName((current) => (current === body.name ? "" : current));
    setDescription((current) => (current === body.description ? "" : current));
    onCreated();
    const href = changed(address, { collection: created.id });
    if (isHere()) go(href);
    else showToast(`Created “${created.name}”.`, undefined, { href, text: "Open" });
  });
  return (
    <form class="form block" {...form.props}>
      <Field
        label="New collection"
        at="/name"
        form={form}
        placeholder="Releases"
        value={name}
        onInput={setName}
      />
      <Field
        label="Description"
        id="collection-description"
        at="/description"
        form={form}
        value={description}
        onInput={setDescription}
      />
      <label class="field">
        Markers
        <select
          value={source ?? ""}
          onChange={(event) => setSource((event.currentTarget.value || null) as Source)}
        >
          <option value="">Added by people and CI</option>
          {Object.entries(SOURCES).map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <FormError form={form} />
      <div>
        <button type="submit" disabled={form.busy}>
          Create
        </button>
      </div>
    </form>
  );
}

interface MarkersProps {
  collection: Collection;
  canWrite: boolean;
  onChange: () => void;
}

function Markers({ collection, canWrite, onChange }: MarkersProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [deleting, setDeleting] = useState(false);
  const path = { idOrSlug: project.slug, collectionId: collection.id };
  /** Loads the newest markers before a time, newest first. */
  const load = async (before: number | null): Promise<Page<Marker, number>> => {
    const found = await newestOf(
      (from, cursor) =>
        api.GET("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events", {
          params: { path, query: { limit: 100, from, to: before ?? undefined, cursor } },
        }),
      FIRST_TIME,
      before ?? Date.now(),
      MAX_PAGES,
    );
    return { items: found.items.toReversed(), nextCursor: found.isAll ? null : found.from };
  };
  const loaded = useLoaded(`markers ${project.id} ${collection.id} ${collection.eventCount}`, () =>
    load(null),
  );
  const { busy, loadMore } = useNextPage(loaded, load);
  const items = loaded.data?.items ?? [];
  const guardPage = usePageGuard();
  const [, run] = useAction();
  const remove = async () => {
    const isHere = guardPage();
    setDeleting(false);
    await api.DELETE("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}", {
      params: { path },
    });
    showToast(`Deleted “${collection.name}” and its markers.`);
    if (isHere()) go(changed(address, { collection: null }), "replace");
    onChange();
  };
  return (
    <>
      <Block
        class="titled"
        title={
          <>
            <bdi>{collection.name}</bdi>{" "}
            <span class="quiet">{pluralize(collection.eventCount, "marker")}</span>
          </>
        }
        actions={
          canWrite && (
            <Button class="danger" onClick={() => setDeleting(true)}>
              Delete collection
            </Button>
          )
        }
      />
      {canWrite && <NewMarker path={path} onAdded={onChange} />}
      <Pending of={loaded} rows={5} />
      {loaded.data && items.length === 0 && <p class="quiet nothing">No markers yet.</p>}
      <ul class="rows">
        {items.map((it) => (
          <li key={it.id} class="row">
            <RowTitle
              name={it.name}
              description={[
                it.description,
                ...Object.entries(it.attributes).map(([name, value]) => `${name}: ${value}`),
              ]
                .filter(Boolean)
                .join(" · ")}
            />
            <span class="when">
              <RelativeTime at={it.occurredAt} />
            </span>
          </li>
        ))}
      </ul>
      {loaded.data?.nextCursor && <More busy={busy} onClick={loadMore} />}
      {deleting && (
        <Confirm
          title={`Delete “${collection.name}”?`}
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={() => void run(remove)}
        >
          <p>
            This permanently deletes the collection and its{" "}
            {pluralize(collection.eventCount, "marker")}, also on all charts.
          </p>
        </Confirm>
      )}
    </>
  );
}

const NO_TIME = new ApiError(0, "invalid", "Enter a time.", [
  { pointer: "/events/0/occurredAt", code: "invalid_format", message: "Enter a time." },
]);

function NewMarker({
  path,
  onAdded,
}: {
  path: { idOrSlug: string; collectionId: string };
  onAdded: () => void;
}) {
  const [name, setName] = useState("");
  const [at, setAt] = useState(() => fieldOf(Date.now()));
  const [description, setDescription] = useState("");
  const attempts = useAttempts();
  const form = useForm(async () => {
    const time = new Date(at);
    if (Number.isNaN(time.getTime())) throw NO_TIME;
    const body = { events: [{ name, occurredAt: time.toISOString(), description }] };
    await api.POST("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events", {
      params: { path, header: attempts.keyFor(path.collectionId, body) },
      body,
    });
    attempts.succeeded();
    setName((current) => (current === name ? "" : current));
    setDescription((current) => (current === description ? "" : current));
    onAdded();
  });
  return (
    <form class="part" {...form.props}>
      <div class="form-row">
        <Field
          label="Title"
          at="/events/0/name"
          form={form}
          placeholder="Release 2.5.3"
          value={name}
          onInput={setName}
        />
        <Field
          label="Description"
          at="/events/0/description"
          form={form}
          value={description}
          onInput={setDescription}
        />
        <Field
          label="Time"
          at="/events/0/occurredAt"
          form={form}
          type="datetime-local"
          value={at}
          onInput={setAt}
        />
        <button type="submit" disabled={form.busy}>
          Add
        </button>
      </div>
      <FormError form={form} />
    </form>
  );
}

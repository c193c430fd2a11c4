import { useEffect, useState } from "preact/hooks";
import { changed, go, Link, useAddress, useStay } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError, api, type Schemas, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { type Newest, newestOf } from "../errors/newest";
import { counted, number } from "../time/format";
import { Confirm } from "../ui/confirm";
import { RowTitle } from "../ui/row-parts";
import { Empty, errorProps, FieldFault, Refused, SkeletonRows, useFirstFault } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";

type Collection = Schemas["EventMarkerCollection"];
type Marker = Schemas["EventMarker"];

/** Before this nothing happens: the year 0. */
const FIRST_TIME = Date.parse("0000-01-01T00:00:00Z");
/** Pages of 100 that are read of a collection at once; of a larger one, the newest. */
const MOST_PAGES = 5;

export function MarkersPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const mayWrite = useCan()("markers:write");
  const loaded = useLoaded(`collections ${project.id}`, (signal) =>
    unwrapResponse(
      api.GET("/v0/projects/{idOrSlug}/event-marker-collections", {
        params: { path: { idOrSlug: project.slug }, query: { limit: 100 } },
        signal,
      }),
    ),
  );
  const items = loaded.data?.items ?? [];
  const chosen = items.find((it) => it.id === address.query.get("collection")) ?? items[0];
  return (
    <>
      <div class="page-head">
        <h1>Markers</h1>
        <span class="quiet small">Releases, incidents, campaigns: dashed lines in every plot</span>
      </div>
      {loaded.error && <Refused refusal={loaded.error} retry={loaded.reload} />}
      {!loaded.data && !loaded.error && <SkeletonRows rows={5} />}
      {loaded.data && (
        <div class="editor">
          <div>
            {chosen ? (
              <Events
                key={chosen.id}
                collection={chosen}
                mayWrite={mayWrite}
                onChange={loaded.reload}
              />
            ) : (
              <Empty title="No markers yet">
                <p>
                  Make a collection, such as “Releases”, and add what happened to it, best from your
                  pipeline.
                </p>
              </Empty>
            )}
          </div>
          <aside>
            <section class="block">
              <header>
                <h2>Collections</h2>
              </header>
              <ul class="rows">
                {items.map((it) => (
                  <li key={it.id}>
                    <Link
                      class="row"
                      href={changed(address, { collection: it.id })}
                      aria-current={it === chosen ? "page" : undefined}
                    >
                      <RowTitle name={it.name} description={it.description} />
                      <span class="number quiet">{number(it.eventCount)}</span>
                    </Link>
                  </li>
                ))}
              </ul>
              {loaded.data.nextCursor && (
                <p class="quiet small nothing">These are the newest 100.</p>
              )}
            </section>
            {mayWrite && <NewCollection onMade={loaded.reload} />}
          </aside>
        </div>
      )}
    </>
  );
}

function NewCollection({ onMade }: { onMade: () => void }) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useFirstFault(refusal);
  const attempts = useAttempts();
  const stay = useStay();
  const make = async () => {
    const isHere = stay();
    setRefusal(null);
    setBusy(true);
    const body = { name, description };
    try {
      const made = await unwrapResponse(
        api.POST("/v0/projects/{idOrSlug}/event-marker-collections", {
          params: { path: { idOrSlug: project.slug }, header: attempts.keyFor(body) },
          body,
        }),
      );
      attempts.succeeded();
      // What was typed since it was sent is the next one.
      setName((now) => (now === body.name ? "" : now));
      setDescription((now) => (now === body.description ? "" : now));
      onMade();
      const href = changed(address, { collection: made.id });
      if (isHere()) go(href);
      else showToast(`“${made.name}” was made.`, undefined, { href, text: "Open it" });
    } catch (error) {
      if (error instanceof ApiError) setRefusal(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      ref={form}
      class="form block"
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <label class="field">
        New collection
        <input
          value={name}
          placeholder="Releases"
          {...errorProps(refusal, "/name")}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <FieldFault refusal={refusal} at="/name" />
      <label class="field">
        What it is for
        <input
          value={description}
          {...errorProps(refusal, "/description")}
          onInput={(event) => setDescription(event.currentTarget.value)}
        />
      </label>
      <FieldFault refusal={refusal} at="/description" />
      {refusal && refusal.violations.length === 0 && <Refused refusal={refusal} />}
      <div>
        <button type="submit" disabled={busy}>
          Make it
        </button>
      </div>
    </form>
  );
}

interface EventsProps {
  collection: Collection;
  mayWrite: boolean;
  onChange: () => void;
}

function Events({ collection, mayWrite, onChange }: EventsProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [asking, ask] = useState(false);
  const [older, setOlder] = useState<Newest<Marker>[]>([]);
  const [busy, setBusy] = useState(false);
  const path = { idOrSlug: project.slug, collectionId: collection.id };
  /** The newest before a time. */
  const load = (before: number | null) =>
    newestOf(
      (from, cursor) =>
        unwrapResponse(
          api.GET("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events", {
            params: {
              path,
              query: {
                limit: 100,
                from,
                ...(before !== null && { to: before }),
                ...(cursor && { cursor }),
              },
            },
          }),
        ),
      FIRST_TIME,
      before ?? Date.now(),
      MOST_PAGES,
    );
  const loaded = useLoaded(`markers ${project.id} ${collection.id} ${collection.eventCount}`, () =>
    load(null),
  );
  // What was added makes the first part another one, which the older parts no longer meet.
  useEffect(() => setOlder([]), [collection.eventCount]);
  const parts = loaded.data ? [loaded.data, ...older] : [];
  const items = parts.flatMap((it) => it.items.toReversed());
  const last = parts.at(-1);
  const showMore = async () => {
    if (!last || busy) return;
    setBusy(true);
    try {
      const part = await load(last.from);
      setOlder((was) => [...was, part]);
    } catch (error) {
      showErrorToast(error);
    }
    setBusy(false);
  };
  const stay = useStay();
  const remove = async () => {
    const isHere = stay();
    ask(false);
    try {
      await unwrapResponse(
        api.DELETE("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}", {
          params: { path },
        }),
      );
      showToast(`“${collection.name}” and its events are gone.`);
      if (isHere()) go(changed(address, { collection: null }), "replace");
      onChange();
    } catch (error) {
      showErrorToast(error);
    }
  };
  return (
    <>
      <div class="block titled">
        <header>
          <h2>
            <bdi>{collection.name}</bdi>{" "}
            <span class="quiet">{counted(collection.eventCount, "event")}</span>
          </h2>
          {mayWrite && (
            <button type="button" class="danger" onClick={() => ask(true)}>
              Delete the collection
            </button>
          )}
        </header>
      </div>
      {mayWrite && <NewEvent path={path} onAdded={onChange} />}
      {loaded.error && <Refused refusal={loaded.error} retry={loaded.reload} />}
      {!loaded.data && !loaded.error && <SkeletonRows rows={5} />}
      {loaded.data && items.length === 0 && <p class="quiet nothing">Nothing happened yet.</p>}
      <ul class="rows">
        {items.map((it) => (
          <li key={it.id} class="row">
            <span class="row-title">
              <bdi>{it.name}</bdi>
              <small>
                <bdi>
                  {[
                    it.description,
                    ...Object.entries(it.attributes).map(([name, value]) => `${name}: ${value}`),
                  ]
                    .filter(Boolean)
                    .join(" · ")}
                </bdi>
              </small>
            </span>
            <span class="when">
              <RelativeTime at={it.occurredAt} />
            </span>
          </li>
        ))}
      </ul>
      {last && !last.isAll && (
        <button type="button" class="more" disabled={busy} onClick={() => void showMore()}>
          {busy ? "Loading…" : `Show more: these are the newest ${number(items.length)}`}
        </button>
      )}
      {asking && (
        <Confirm
          title={`Delete “${collection.name}”?`}
          action="Delete"
          onClose={() => ask(false)}
          onConfirm={() => void remove()}
        >
          <p>
            The collection and its {counted(collection.eventCount, "event")} are deleted for good,
            and leave every plot.
          </p>
        </Confirm>
      )}
    </>
  );
}

function nowAsField(): string {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function NewEvent({
  path,
  onAdded,
}: {
  path: { idOrSlug: string; collectionId: string };
  onAdded: () => void;
}) {
  const [name, setName] = useState("");
  const [at, setAt] = useState(nowAsField);
  const [description, setDescription] = useState("");
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useFirstFault(refusal);
  const attempts = useAttempts();
  const add = async () => {
    setRefusal(null);
    setBusy(true);
    try {
      const occurredAt = new Date(at).toISOString();
      const body = { events: [{ name, occurredAt, description }] };
      await unwrapResponse(
        api.POST("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events", {
          params: { path, header: attempts.keyFor(path.collectionId, body) },
          body,
        }),
      );
      attempts.succeeded();
      setName((now) => (now === name ? "" : now));
      setDescription((now) => (now === description ? "" : now));
      onAdded();
    } catch (error) {
      setRefusal(
        error instanceof ApiError ? error : new ApiError(0, "fault", "Choose when it happened."),
      );
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      ref={form}
      class="part"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <div class="form-row">
        <label class="field grow">
          What happened
          <input
            value={name}
            placeholder="Release 2.5.3"
            {...errorProps(refusal, "/events/0/name")}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label class="field grow">
          More about it
          <input
            value={description}
            {...errorProps(refusal, "/events/0/description")}
            onInput={(event) => setDescription(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          When
          <input
            type="datetime-local"
            required
            value={at}
            {...errorProps(refusal, "/events/0/occurredAt")}
            onInput={(event) => setAt(event.currentTarget.value)}
          />
        </label>
        <button type="submit" disabled={busy}>
          Add
        </button>
      </div>
      <FieldFault refusal={refusal} at="/events/0/name" />
      <FieldFault refusal={refusal} at="/events/0/description" />
      <FieldFault refusal={refusal} at="/events/0/occurredAt" />
      {refusal && refusal.violations.length === 0 && <Refused refusal={refusal} />}
    </form>
  );
}

/** Source maps of the project, and uploads that failed. */

import { useState } from "preact/hooks";
import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { SettingsTabs } from "../people/tabs";
import { number } from "../time/format";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { More, useNextPage } from "../ui/row-parts";
import { Code, Empty, Pending } from "../ui/states";
import { ACTIONS, PlainTable } from "../ui/table";
import { RelativeTime, TimeOrNever } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";

type SourceMap = Schemas["SourceMap"];

const PAGE_SIZE = 100;
const MEGABYTE = 1_000_000;

const sizeText = (bytes: number) =>
  bytes < MEGABYTE
    ? `${number(Math.ceil(bytes / 1_000))} kB`
    : `${number(Math.round(bytes / 100_000) / 10)} MB`;

/** A map to delete, or a release whose maps to delete. */
type Deletion = { debugId: string } | { release: string };

export function SourceMapsPage() {
  const { project } = useCurrentProject();
  const canWrite = useCan()("source-maps:write");
  const [deletion, setDeletion] = useState<Deletion | null>(null);
  const path = { idOrSlug: project.slug };
  const load = (cursor?: string, signal?: AbortSignal) =>
    api.GET("/v0/projects/{idOrSlug}/source-maps", {
      params: { path, query: { limit: PAGE_SIZE, cursor } },
      signal,
    });
  const loaded = useLoaded(`source maps ${project.id}`, (signal) => load(undefined, signal));
  const { data } = loaded;
  const { busy, loadMore } = useNextPage(loaded, load);
  const remove = async (query: Deletion) => {
    setDeletion(null);
    try {
      await api.DELETE("/v0/projects/{idOrSlug}/source-maps", { params: { path, query } });
      showToast("debugId" in query ? "Deleted the map." : `Deleted the maps of ${query.release}.`);
    } catch (error) {
      showErrorToast(error);
    }
    loaded.reload();
  };
  const failures = data?.failures ?? [];
  return (
    <>
      <div class="page-head">
        <h1>Source maps</h1>
        <span class="quiet small">Deleted 180 days after the last use</span>
      </div>
      <SettingsTabs page="source-maps" />
      <Pending of={loaded} rows={6} />
      {failures.length > 0 && (
        <section class="failures" aria-label="Failed uploads">
          <h2>Failed uploads</h2>
          <ul>
            {failures.map((it) => (
              <li key={it.checksum}>
                <bdi>{it.detail}</bdi>{" "}
                <small>
                  {it.release && <bdi>{it.release} · </bdi>}
                  <RelativeTime at={it.failedAt} />
                </small>
              </li>
            ))}
          </ul>
          <p class="quiet small">Fix the cause and upload the bundle again.</p>
        </section>
      )}
      {data?.items.length === 0 && <NoMaps slug={project.slug} />}
      <PlainTable
        items={data?.items}
        idOf={(it) => `${it.debugId} ${it.release} ${it.dist} ${it.url}`}
        columns={[
          [
            "File",
            "",
            (it) => (
              <>
                <bdi>{it.url ?? "Unnamed file"}</bdi>
                <small>{it.debugId && <code>{it.debugId}</code>}</small>
              </>
            ),
          ],
          [
            "Release",
            "wide quiet of-quarter",
            (it) => <bdi>{[it.release, it.dist].filter(Boolean).join(" · ") || "–"}</bdi>,
          ],
          ["Size", "number of-count", (it) => sizeText(it.size)],
          ["Uploaded", "wide number quiet of-time", (it) => <RelativeTime at={it.createdAt} />],
          ["Last used", "wide number quiet of-time", (it) => <TimeOrNever at={it.lastUsedAt} />],
          canWrite && [
            ACTIONS,
            "row-actions of-action",
            (it) => (
              <Button
                class="link danger"
                aria-label={`Delete ${it.url ?? it.debugId}`}
                onClick={() => setDeletion(deletionOf(it))}
              >
                Delete
              </Button>
            ),
          ],
        ]}
      />
      {data?.nextCursor && <More busy={busy} onClick={loadMore} />}
      {deletion && (
        <Confirm
          title={
            "debugId" in deletion
              ? "Delete this source map?"
              : `Delete the source maps of ${deletion.release}?`
          }
          action="Delete"
          onClose={() => setDeletion(null)}
          onConfirm={() => void remove(deletion)}
        >
          <p>
            Stack traces that need {"debugId" in deletion ? "it" : "them"} show minified code again.
            Uploading the bundle again restores {"debugId" in deletion ? "it" : "them"}.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** A map without a debug ID is deleted with its release. */
function deletionOf({ debugId, release }: SourceMap): Deletion | null {
  if (debugId) return { debugId };
  return release ? { release } : null;
}

function NoMaps({ slug }: { slug: string }) {
  return (
    <Empty title="No source maps yet">
      <p>
        Source maps turn minified stack traces into your code. Sentry’s bundler plugins and
        sentry-cli upload them, with an API key of scope <code>source-maps:write</code>:
      </p>
      <Code
        text={`sentry-cli --url ${location.origin} --auth-token $KEY \\\n  sourcemaps upload --org waymark --project ${slug} ./dist`}
      />
    </Empty>
  );
}

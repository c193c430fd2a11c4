import { useMemo } from "preact/hooks";
import { changed, hrefOf, Link, useAddress } from "../address";
import { mapConcurrently } from "../api/client";
import { type Loaded, useLoaded } from "../api/loaded";
import type { Project } from "../caller";
import { Breakdown } from "../errors/breakdown";
import { EventsPlot } from "../errors/events-plot";
import { type Status, type View, viewKey } from "../errors/filters";
import { type ErrorRow, loadErrors, loadSeries, totalOf } from "../errors/load";
import { NewEvents } from "../errors/new-events";
import { keyOf, ProjectsMenu, useProjects } from "../errors/projects";
import { useCategories, useMarks, useRange, useView, ViewBar } from "../errors/view-bar";
import { Spark } from "../plot/spark";
import { number, percent, pluralize } from "../time/format";
import { keptParams, keptView, previousName, previousRange, type Range } from "../time/range";
import { Block } from "../ui/layout";
import { RowTitle } from "../ui/row-parts";
import { Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { Onboarding } from "./onboarding";

const MAX_LISTED = 6;
/** Changes shown in “What changed”. */
const MAX_CHANGES = 14;

export function OverviewPage() {
  const { range, reload } = useRange();
  const view = useView(null);
  const projects = useProjects();
  const categories = useCategories();
  const marks = useMarks(projects, range);
  const key = `${keyOf(projects)} ${viewKey(view, range)}`;
  const series = useLoaded(
    `series ${key}`,
    (signal) => loadSeries(projects, view, range, signal),
    "first",
  );
  const earlier = useLoaded(`earlier ${key}`, (signal) =>
    loadSeries(projects, view, previousRange(range), signal),
  );

  const status = view.status ?? "open";
  const listed = useMemo(() => ({ ...view, status }), [view, status]);
  const frequent = useTopErrors("count", projects, listed, range);
  const recent = useTopErrors("firstSeen", projects, listed, range);

  const isNew = categories?.every((it) => it.values.length === 0);
  const isPlain = view.filters.length === 0 && !view.search && projects.length === 1;
  if (series.data && totalOf(series.data) === 0 && isNew && isPlain) {
    return (
      <>
        <h1 class="hidden">Overview</h1>
        <Onboarding />
      </>
    );
  }
  return (
    <>
      <h1 class="hidden">Overview</h1>
      <ViewBar
        view={view}
        range={range}
        categories={categories}
        defaultStatus={null}
        onReload={reload}
      />
      <NewEvents
        projects={projects}
        view={view}
        range={range}
        series={series.data}
        onReload={reload}
      />
      <section class="figure-line">
        {series.data ? (
          <>
            <span class="figure">{number(totalOf(series.data))}</span>
            <span>{totalOf(series.data) === 1 ? "event" : "events"}</span>
            {earlier.data && !earlier.loading && (
              <Change
                current={totalOf(series.data)}
                previous={totalOf(earlier.data)}
                range={range}
              />
            )}
          </>
        ) : (
          !series.error && <span class="skeleton figure-skeleton" />
        )}
        {frequent.data && !frequent.loading && <OpenErrors page={frequent.data} status={status} />}
        <ProjectsMenu projects={projects} />
      </section>
      <EventsPlot series={series} marks={marks} height={240} />
      <div class="columns">
        <div>
          {projects.length > 1 && <ByProject projects={projects} view={view} range={range} />}
          <TopErrors
            title={`Most frequent ${status} errors`}
            sort="count"
            loaded={frequent}
            status={status}
            projects={projects}
          />
          <TopErrors
            title={`New ${status} errors`}
            sort="firstSeen"
            loaded={recent}
            status={status}
            projects={projects}
          />
        </div>
        <div>
          <div class="block">
            <Breakdown projects={projects} view={view} range={range} categories={categories} />
          </div>
          <RecentChanges loaded={marks} />
        </div>
      </div>
    </>
  );
}

function Change({ current, previous, range }: { current: number; previous: number; range: Range }) {
  const name = previousName(range);
  if (previous === 0) return current === 0 ? null : <span class="quiet">none in the {name}</span>;
  const value = ((current - previous) / previous) * 100;
  const kind = value > 10 ? "worse" : value < -10 ? "better" : "quiet";
  return (
    <span class={kind} title={`${pluralize(previous, "event")} in the ${name}`}>
      {percent(value)} <span class="quiet">vs {name}</span>
    </span>
  );
}

interface ProjectsProps {
  projects: Project[];
  view: View;
  range: Range;
}

/** Events of each project. A click shows the project alone. */
function ByProject({ projects, view, range }: ProjectsProps) {
  return (
    <Block title="By project" class="by-project">
      <ul class="rows">
        {projects.map((it) => (
          <ProjectRow key={it.id} project={it} view={view} range={range} />
        ))}
      </ul>
    </Block>
  );
}

function ProjectRow({ project, view, range }: { project: Project; view: View; range: Range }) {
  const address = useAddress();
  const key = `series ${project.id} ${viewKey(view, range)}`;
  const { data, error, loading } = useLoaded(key, (signal) =>
    loadSeries([project], view, range, signal),
  );
  return (
    <li>
      <Link
        class={loading && data ? "row stale" : "row"}
        href={changed(address, { project: project.slug, with: null })}
      >
        <span class="row-title">
          <bdi>{project.name}</bdi>
        </span>
        {data && <Spark values={data.buckets.map((it) => it.errors)} width={112} />}
        <span class="number count">
          {error ? <span title={error.message}>?</span> : data ? number(totalOf(data)) : "…"}
        </span>
      </Link>
    </li>
  );
}

type TopSort = "count" | "firstSeen";
type ErrorOfProject = ErrorRow & { project: Project };

interface TopErrors {
  items: ErrorOfProject[];
  /** Number of errors of the list. */
  count: number;
  /** `false` if `count` is a lower bound. */
  isExact: boolean;
}

const ORDERS: Record<TopSort, (one: ErrorRow, other: ErrorRow) => number> = {
  count: (one, other) => other.count - one.count,
  firstSeen: (one, other) => Date.parse(other.firstSeen) - Date.parse(one.firstSeen),
};

/** Errors of a project that are counted. */
const MAX_COUNTED = 100;

/** Loads the top errors of each project and merges them. */
function useTopErrors(sort: TopSort, projects: Project[], view: View, range: Range) {
  return useLoaded(
    `top ${sort} ${keyOf(projects)} ${viewKey(view, range)}`,
    async (signal): Promise<TopErrors> => {
      const limit = sort === "count" ? MAX_COUNTED : MAX_LISTED;
      const isListed = (it: ErrorRow) => sort === "count" || Date.parse(it.firstSeen) >= range.from;
      const pages = await mapConcurrently(projects, 4, async (project) => {
        const page = await loadErrors(project, view, range, { sort, limit }, signal);
        return { ...page, items: page.items.map((it) => ({ ...it, project })) };
      });
      const all = pages.flatMap((it) => it.items).filter(isListed);
      return {
        items: all.sort(ORDERS[sort]).slice(0, MAX_LISTED),
        count: all.length,
        isExact: pages.every((it) => it.nextCursor === null),
      };
    },
  );
}

/** The number of errors in the list that it links to. */
function OpenErrors({ page, status }: { page: TopErrors; status: Status }) {
  const address = useAddress();
  const count = page.isExact
    ? pluralize(page.count, `${status} error`)
    : `${number(page.count)} or more ${status} errors`;
  return (
    <Link href={hrefOf("errors", { ...keptView(address, "errors"), status: statusParam(status) })}>
      {count}
    </Link>
  );
}

/** The parameter of the error list, whose default is `open`. */
const statusParam = (status: Status) => (status === "open" ? null : status);

interface TopErrorsProps {
  title: string;
  sort: TopSort;
  loaded: Loaded<TopErrors>;
  status: Status;
  projects: Project[];
}

function TopErrors({ title, sort, loaded, status, projects }: TopErrorsProps) {
  const address = useAddress();
  const items = loaded.data?.items;
  const kept = { ...keptView(address, "errors"), status: statusParam(status) };
  return (
    <Block
      title={title}
      class={loaded.loading && items ? "stale" : ""}
      actions={
        <Link class="small" href={hrefOf("errors", { ...kept, sort })}>
          {`All ${status} errors`}
        </Link>
      }
    >
      <Pending small of={loaded} rows={4} />
      {items?.length === 0 && (
        <p class="quiet nothing">
          {sort === "count" ? `No ${status} errors in this period.` : `No new ${status} errors.`}
        </p>
      )}
      <ul class="rows">
        {items?.map((it) => (
          <li key={it.errorId}>
            <Link
              class="row"
              href={hrefOf("error", {
                ...kept,
                // The error can belong to another project.
                ...(projects.length > 1 && { project: it.project.slug, with: null }),
                id: it.errorId,
              })}
            >
              <RowTitle
                name={it.title}
                description={
                  <>
                    {projects.length > 1 && <b>{it.project.name} </b>}
                    {it.culprit}
                  </>
                }
              />
              <span class="number" title={pluralize(it.users, "user")}>
                {pluralize(it.count, "event")}
              </span>
              <span class="when">
                <RelativeTime at={sort === "count" ? it.lastSeen : it.firstSeen} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Block>
  );
}

function RecentChanges({ loaded }: { loaded: ReturnType<typeof useMarks> }) {
  const address = useAddress();
  const { data } = loaded;
  const newest = data?.marks.toReversed() ?? [];
  const older = Math.max(0, newest.length - MAX_CHANGES) + (data?.more ?? 0);
  return (
    <Block
      title="What changed"
      actions={
        <Link class="small" href={hrefOf("markers", keptParams(address))}>
          Markers
        </Link>
      }
    >
      <Pending small of={loaded} rows={4} />
      {data && newest.length === 0 && (
        <p class="quiet nothing">No markers, flag changes or new releases in this period.</p>
      )}
      <ul class="rows">
        {newest.slice(0, MAX_CHANGES).map((it) => (
          <li key={it.id} class="row flat">
            <span class={`dot ${it.kind}`} aria-hidden="true" />
            <RowTitle name={it.name} description={it.description} />
            <span class="when">
              <RelativeTime at={it.at} />
            </span>
          </li>
        ))}
      </ul>
      {older > 0 && (
        <p class="quiet small nothing">
          {number(older)} {data?.isExact ? "more" : "or more"}. Narrow the range to see older ones.
        </p>
      )}
    </Block>
  );
}

import { changed, go, hrefOf, Link, useAddress } from "../address";
import { mapConcurrently } from "../api/client";
import { useLoaded } from "../api/loaded";
import type { Project } from "../caller";
import { Breakdown } from "../errors/breakdown";
import { type View, viewKey } from "../errors/filters";
import { type ErrorRow, loadErrors, loadSeries, totalOf } from "../errors/load";
import { keyOf, ProjectsMenu, useProjects } from "../errors/projects";
import { useCategories, useMarks, useRange, useView, ViewBar } from "../errors/view-bar";
import { Plot } from "../plot/plot";
import { Spark } from "../plot/spark";
import { number, percent, pluralize } from "../time/format";
import {
  keptParams,
  keptView,
  previousName,
  previousRange,
  type Range,
  rangeParams,
} from "../time/range";
import { RowTitle } from "../ui/row-parts";
import { ErrorMessage, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { Onboarding } from "./onboarding";

const MAX_LISTED = 6;
/** Changes shown in “What changed”. */
const MAX_CHANGES = 14;

export function OverviewPage() {
  const address = useAddress();
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
      <ViewBar view={view} range={range} categories={categories} onReload={reload} />
      {series.error && <ErrorMessage error={series.error} retry={series.reload} />}
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
        <ProjectsMenu projects={projects} />
      </section>
      {series.data ? (
        <Plot
          series={series.data}
          marks={marks.marks}
          isAll={marks.isAll}
          height={240}
          stale={series.loading}
          onZoom={(from, to) => go(changed(address, rangeParams({ from, to })))}
        />
      ) : (
        !series.error && <div class="skeleton plot-skeleton" aria-busy="true" />
      )}
      <div class="columns">
        <div>
          {projects.length > 1 && <ByProject projects={projects} view={view} range={range} />}
          <TopErrors
            title="Most frequent"
            sort="count"
            projects={projects}
            view={view}
            range={range}
          />
          <TopErrors
            title="New in this period"
            sort="firstSeen"
            projects={projects}
            view={view}
            range={range}
          />
        </div>
        <div>
          <div class="block">
            <Breakdown projects={projects} view={view} range={range} categories={categories} />
          </div>
          <RecentChanges {...marks} />
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
    <section class="block by-project">
      <header>
        <h2>By project</h2>
      </header>
      <ul class="rows">
        {projects.map((it) => (
          <ProjectRow key={it.id} project={it} view={view} range={range} />
        ))}
      </ul>
    </section>
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

interface TopErrorsProps extends ProjectsProps {
  title: string;
  sort: "count" | "firstSeen";
}

type ErrorOfProject = ErrorRow & { project: Project };

const ORDERS: Record<TopErrorsProps["sort"], (one: ErrorRow, other: ErrorRow) => number> = {
  count: (one, other) => other.count - one.count,
  firstSeen: (one, other) => Date.parse(other.firstSeen) - Date.parse(one.firstSeen),
};

/** Loads the top errors of each project and merges them. */
async function loadTopErrors(
  { projects, view, range, sort }: TopErrorsProps,
  signal: AbortSignal,
): Promise<ErrorOfProject[]> {
  const pages = await mapConcurrently(projects, 4, async (project) => {
    const page = await loadErrors(project, view, range, { sort, limit: MAX_LISTED }, signal);
    return page.items.map((it) => ({ ...it, project }));
  });
  return pages.flat().sort(ORDERS[sort]).slice(0, MAX_LISTED);
}

function TopErrors(props: TopErrorsProps) {
  const { title, sort, projects, view, range } = props;
  const address = useAddress();
  const key = `top ${sort} ${keyOf(projects)} ${viewKey(view, range)}`;
  const loaded = useLoaded(key, (signal) => loadTopErrors(props, signal));
  const isNew = (it: ErrorRow) => Date.parse(it.firstSeen) >= range.from;
  const items = loaded.data?.filter((it) => sort === "count" || isNew(it));
  const kept = keptView(address, "errors");
  const all = { ...kept, status: address.query.get("status") ?? "any", sort };
  return (
    <section class={loaded.loading && items ? "block stale" : "block"}>
      <header>
        <h2>{title}</h2>
        <Link class="small" href={hrefOf("errors", all)}>
          All errors
        </Link>
      </header>
      {loaded.error && <ErrorMessage small error={loaded.error} retry={loaded.reload} />}
      {!items && !loaded.error && <SkeletonRows rows={4} />}
      {items?.length === 0 && (
        <p class="quiet nothing">
          {sort === "count" ? "No errors in this period." : "No new errors."}
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
              <span class="row-title">
                <bdi>{it.title}</bdi>
                <small>
                  {projects.length > 1 && <b>{it.project.name} </b>}
                  <bdi>{it.culprit}</bdi>
                </small>
              </span>
              <span class="number" title={pluralize(it.users, "user")}>
                {number(it.count)}
              </span>
              <span class="when">
                <RelativeTime at={sort === "count" ? it.lastSeen : it.firstSeen} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function RecentChanges({ marks, isAll, isLoaded, error, reload }: ReturnType<typeof useMarks>) {
  const address = useAddress();
  const newest = [...marks].reverse();
  return (
    <section class="block">
      <header>
        <h2>What changed</h2>
        <Link class="small" href={hrefOf("markers", keptParams(address))}>
          Markers
        </Link>
      </header>
      {error && <ErrorMessage small error={error} retry={reload} />}
      {!isLoaded && !error && <SkeletonRows rows={4} />}
      {isLoaded && marks.length === 0 && (
        <p class="quiet nothing">
          No markers or flag changes in this period. Add release markers to see them on the chart.
        </p>
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
      {newest.length > MAX_CHANGES && (
        <p class="quiet small nothing">{number(newest.length - MAX_CHANGES)} older</p>
      )}
      {!isAll && (
        <p class="quiet small nothing">
          Showing the newest changes. Narrow the range to see older ones.
        </p>
      )}
    </section>
  );
}

import { changed, go, hrefOf, Link, useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import { useHere } from "../caller";
import { type View, viewKey } from "../errors/filters";
import { type ErrorRow, loadErrors, loadSeries, totalOf } from "../errors/load";
import { useCategories, useMarks, useRange, useView, ViewBar } from "../errors/view-bar";
import type { Mark } from "../plot/marks";
import { Plot } from "../plot/plot";
import { counted, number, percent } from "../time/format";
import { before, keptParams, type Range, rangeParams } from "../time/range";
import { RowTitle } from "../ui/row-parts";
import { Refused, SkeletonRows } from "../ui/states";
import { Ago } from "../ui/time";
import { Onboarding } from "./onboarding";

const LISTED = 6;

export function OverviewPage() {
  const address = useAddress();
  const { project } = useHere();
  const { range, reload } = useRange();
  const view = useView(null);
  const categories = useCategories();
  const marks = useMarks(range);
  const key = `${project.id} ${viewKey(view, range)}`;
  const series = useLoaded(`series ${key}`, (signal) => loadSeries(project, view, range, signal));
  const earlier = useLoaded(`earlier ${key}`, (signal) =>
    loadSeries(project, view, before(range), signal),
  );

  const isNew = categories?.every((it) => it.values.length === 0);
  const isPlain = view.filters.length === 0 && !view.search;
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
      {series.error && <Refused refusal={series.error} retry={series.reload} />}
      <section class="figure-line">
        {series.data ? (
          <>
            <span class="figure">{number(totalOf(series.data))}</span>
            <span>errors</span>
            {earlier.data && !earlier.loading && (
              <Change now={totalOf(series.data)} was={totalOf(earlier.data)} />
            )}
          </>
        ) : (
          <span class="skeleton figure-skeleton" />
        )}
      </section>
      {series.data ? (
        <Plot
          series={series.data}
          marks={marks}
          height={240}
          stale={series.loading}
          onZoom={(from, to) => go(changed(address, rangeParams({ from, to })))}
        />
      ) : (
        !series.error && <div class="skeleton plot-skeleton" aria-busy="true" />
      )}
      <div class="columns">
        <div>
          <TopErrors title="Most frequent" sort="count" view={view} range={range} />
          <TopErrors title="New in this time" sort="firstSeen" view={view} range={range} />
        </div>
        <Happenings marks={marks} />
      </div>
    </>
  );
}

function Change({ now, was }: { now: number; was: number }) {
  if (was === 0) return now === 0 ? null : <span class="quiet">none in the time before</span>;
  const value = ((now - was) / was) * 100;
  const kind = value > 10 ? "worse" : value < -10 ? "better" : "quiet";
  return (
    <span class={kind} title={`${counted(was, "error")} in the time before`}>
      {percent(value)} <span class="quiet">against the time before</span>
    </span>
  );
}

interface TopErrorsProps {
  title: string;
  sort: "count" | "firstSeen";
  view: View;
  range: Range;
}

function TopErrors({ title, sort, view, range }: TopErrorsProps) {
  const address = useAddress();
  const { project } = useHere();
  const key = `top ${sort} ${project.id} ${viewKey(view, range)}`;
  const loaded = useLoaded(key, (signal) =>
    loadErrors(project, view, range, { sort, limit: LISTED }, signal),
  );
  const isNew = (it: ErrorRow) => Date.parse(it.firstSeen) >= range.from;
  const items = loaded.data?.items.filter((it) => sort === "count" || isNew(it));
  const kept = keptParams(address);
  const all = {
    ...kept,
    f: address.query.getAll("f"),
    q: address.query.get("q"),
    status: "any",
    sort,
  };
  return (
    <section class={loaded.loading && items ? "block stale" : "block"}>
      <header>
        <h2>{title}</h2>
        <Link class="small" href={hrefOf("errors", all)}>
          All errors
        </Link>
      </header>
      {loaded.error && <Refused refusal={loaded.error} retry={loaded.reload} />}
      {!items && !loaded.error && <SkeletonRows rows={4} />}
      {items?.length === 0 && (
        <p class="quiet nothing">
          {sort === "count" ? "No errors in this time." : "No error occurred for the first time."}
        </p>
      )}
      <ul class="rows">
        {items?.map((it) => (
          <li key={it.errorId}>
            <Link class="row" href={hrefOf("error", { ...kept, id: it.errorId })}>
              <span class="row-title">
                <bdi>{it.title}</bdi>
                <small>
                  <bdi>{it.culprit}</bdi>
                </small>
              </span>
              <span class="number" title={counted(it.users, "user")}>
                {number(it.count)}
              </span>
              <span class="when">
                <Ago at={sort === "count" ? it.lastSeen : it.firstSeen} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Happenings({ marks }: { marks: Mark[] }) {
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
      {marks.length === 0 && (
        <p class="quiet nothing">
          Neither markers nor changes of flags in this time. Mark releases, and they stand in the
          plot.
        </p>
      )}
      <ul class="rows">
        {newest.slice(0, 14).map((it) => (
          <li key={it.id} class="row flat">
            <span class={`dot ${it.kind}`} aria-hidden="true" />
            <RowTitle name={it.name} description={it.description} />
            <span class="when">
              <Ago at={it.at} />
            </span>
          </li>
        ))}
      </ul>
      {newest.length > 14 && (
        <p class="quiet small nothing">and {newest.length - 14} before these</p>
      )}
    </section>
  );
}

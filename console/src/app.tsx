import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { changed, currentHref, go, hrefOf, Link, useAddress } from "./address";
import { type ApiError, api, onUnderway, unwrapResponse } from "./api/client";
import { forgetLoaded, useLoaded } from "./api/loaded";
import { type CallerTold, HereContext, type Project, type Scope } from "./caller";
import { SHORTCUTS, useKeys, watchPrefixes } from "./keys";
import { own } from "./own";
import { ErrorPage } from "./pages/error";
import { ErrorsPage } from "./pages/errors";
import { FlagPage } from "./pages/flag";
import { FlagsPage } from "./pages/flags";
import { InsightPage } from "./pages/insight";
import { InsightsPage } from "./pages/insights";
import { MarkersPage } from "./pages/markers";
import { OverviewPage } from "./pages/overview";
import { SegmentPage } from "./pages/segment";
import { SegmentsPage } from "./pages/segments";
import { SettingsPage } from "./pages/settings";
import { KeyForm, KeyOffer, SignIn } from "./pages/sign-in";
import {
  currentKey,
  offeredKey,
  onKeyChange,
  rememberCaller,
  rememberedCaller,
  signOutReason,
} from "./session";
import { forgetSteps, stepNow } from "./steps";
import { keptParams, keptView } from "./time/range";
import { LiveRegion } from "./ui/announcement";
import { Boundary } from "./ui/boundary";
import { Dialog } from "./ui/confirm";
import { Icon, type IconName } from "./ui/icons";
import { Empty, Refused, SkeletonRows } from "./ui/states";
import { showToast, Toasts, undoLast } from "./ui/toast";

interface NavigationItem {
  page: string;
  name: string;
  icon: IconName;
  key: string;
  /** Pages that belong to it. */
  also: string[];
  scope: Scope | null;
}

const NAVIGATION: NavigationItem[] = [
  { page: "", name: "Overview", icon: "overview", key: "o", also: [], scope: "errors:read" },
  {
    page: "errors",
    name: "Errors",
    icon: "errors",
    key: "e",
    also: ["error"],
    scope: "errors:read",
  },
  {
    page: "flags",
    name: "Flags",
    icon: "flags",
    key: "f",
    also: ["flag", "segments", "segment"],
    scope: "flags:read",
  },
  {
    page: "insights",
    name: "Insights",
    icon: "insights",
    key: "i",
    also: ["insight"],
    scope: "insights:read",
  },
  { page: "markers", name: "Markers", icon: "markers", key: "m", also: [], scope: "markers:read" },
  { page: "settings", name: "Settings", icon: "settings", key: "s", also: [], scope: null },
];

const PAGES: Record<string, () => preact.JSX.Element> = {
  "": OverviewPage,
  errors: ErrorsPage,
  error: ErrorPage,
  flags: FlagsPage,
  flag: FlagPage,
  segments: SegmentsPage,
  segment: SegmentPage,
  insights: InsightsPage,
  insight: InsightPage,
  markers: MarkersPage,
  settings: SettingsPage,
};

/** `ready` resolves once the key of a link, or of another tab, is there. */
export function App({ ready }: { ready: Promise<void> }) {
  const [key, setKey] = useState(currentKey);
  const [offered, setOffered] = useState(offeredKey);
  const [ended, setEnded] = useState(false);
  const isAtWork = useRef(false);
  useLayoutEffect(
    () =>
      onKeyChange(() => {
        const next = currentKey();
        setOffered(offeredKey());
        // A key that ends takes nothing away that one is at: another is asked for above it.
        const isAsked = !next && signOutReason() !== null && isAtWork.current;
        setEnded(isAsked);
        if (isAsked) return;
        forgetLoaded();
        forgetSteps();
        setKey(next);
      }),
    [],
  );
  const [isReady, setReady] = useState(false);
  useEffect(() => void ready.then(() => setReady(true)), []);
  // The page need not wait to be told again; what no longer holds is put right once it is.
  const remembered = useMemo(() => rememberedCaller<CallerTold>(), [key]);
  const caller = useLoaded(key ? `caller ${key.slice(0, 19)}` : null, async (signal) => {
    const told = await unwrapResponse(api.GET("/v0/me", { signal }));
    rememberCaller(told);
    return told;
  });
  const shown = caller.data ?? remembered;
  isAtWork.current = Boolean(key && shown);
  if (!key) return isReady ? <SignIn /> : <SkeletonRows />;
  return (
    <>
      <Frame caller={shown} refusal={caller.error} retry={caller.reload} />
      {offered && <KeyOffer key={offered} offered={offered} current={shown} />}
      {ended && (
        <Dialog
          title="Another key is needed"
          onClose={() => {
            setEnded(false);
            showToast(
              "Without a key nothing is loaded or saved. What you do next asks for one again.",
            );
          }}
        >
          <KeyForm action="Go on">
            <p>What you typed is still here.</p>
          </KeyForm>
        </Dialog>
      )}
    </>
  );
}

interface FrameProps {
  caller: CallerTold | undefined;
  refusal: ApiError | null;
  retry: () => void;
}

/** The frame is painted at once, whoever calls. */
function Frame({ caller, refusal, retry }: FrameProps) {
  const address = useAddress();
  const [help, setHelp] = useState(false);
  const asked = address.query.get("project");
  const project = caller?.projects.find((it) => it.slug === asked || it.id === asked);
  const shown = project ?? (asked ? undefined : caller?.projects[0]);
  const here = useMemo(
    () => (caller && shown ? { caller, project: shown } : null),
    [caller, shown],
  );
  const place = NAVIGATION.find((it) => it.page === address.page || it.also.includes(address.page));
  const hrefTo = (page: string) => hrefOf(page, keptView(address, page));

  // Of two people, another project may be the first: a link is to show both the same.
  const unsaid = asked ? undefined : shown?.slug;
  useEffect(() => {
    if (unsaid) go(changed(address, { project: unsaid }), "replace");
  }, [unsaid, address]);
  // What is shown of a page of one thing; not how it is looked at.
  useHeadFocus(["id", "key", "new"].map((it) => address.query.get(it)).join(" "), address.page);
  useEffect(watchPrefixes, []);
  useEffect(() => {
    document.title = `${place?.name ?? "Not found"} · Waymark`;
  }, [place]);
  useKeys({
    "?": () => setHelp(true),
    z: () => void undoLast(),
    ...Object.fromEntries(NAVIGATION.map((it) => [`g ${it.key}`, () => go(hrefTo(it.page))])),
  });

  const Page = own(PAGES, address.page);
  return (
    <div class="frame">
      <Progress />
      <a class="skip" href="#content">
        Skip to content
      </a>
      <aside class="side">
        <ProjectSwitch projects={caller?.projects ?? []} shown={shown} />
        <nav aria-label="Pages">
          {NAVIGATION.filter((it) => !it.scope || !caller || caller.scopes.includes(it.scope)).map(
            (it) => (
              <Link
                key={it.page}
                href={hrefTo(it.page)}
                aria-current={it === place ? "page" : undefined}
                title={`${it.name} (g ${it.key})`}
              >
                <Icon name={it.icon} />
                <span>{it.name}</span>
              </Link>
            ),
          )}
        </nav>
        <button type="button" class="bare help" onClick={() => setHelp(true)} title="Keys (?)">
          <Icon name="keyboard" />
          <span>Keys</span>
        </button>
      </aside>
      <main id="content" tabIndex={-1}>
        {refusal && !caller ? (
          <Refused refusal={refusal} retry={retry} />
        ) : !caller ? (
          <SkeletonRows rows={10} />
        ) : !Page ? (
          <Empty title="There is no such page">
            <p>
              <Link href={hrefTo("")}>Go to the overview</Link>
            </p>
          </Empty>
        ) : here ? (
          <HereContext.Provider value={here}>
            {place?.scope && !caller.scopes.includes(place.scope) ? (
              <Empty title="This key may not read it">
                <p>
                  This page needs a key with the scope <code>{place.scope}</code>.
                </p>
              </Empty>
            ) : (
              <Boundary
                what="This page"
                remedy="Try again, or open another page. If it stays, report what the browser's console says."
                at={currentHref()}
              >
                <Page key={`${here.project.id} ${address.page}`} />
              </Boundary>
            )}
          </HereContext.Provider>
        ) : (
          <NoProject asked={asked} projects={caller.projects} />
        )}
      </main>
      {help && (
        <Dialog title="Keys" onClose={() => setHelp(false)}>
          <dl class="keys">
            {SHORTCUTS.map((it) => (
              <div key={it.keys}>
                <dt>
                  {it.keys.split(" ").map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{it.what}</dd>
              </div>
            ))}
          </dl>
          <div class="actions">
            <button type="button" onClick={() => setHelp(false)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
      <LiveRegion />
      <Toasts />
    </div>
  );
}

/** How long the head of a page may take until it is there. */
const HEAD_MS = 5_000;

/** Once another page is shown, the focus is at its head, or at the row that one comes back to. */
function useHeadFocus(thing: string, page: string) {
  const last = useRef(`${page} ${thing}`);
  useEffect(() => {
    const now = `${page} ${thing}`;
    if (last.current === now) return;
    last.current = now;
    const main = document.getElementById("content");
    if (!main) return;
    main.focus({ preventScroll: true });
    const look = () => {
      // Who went elsewhere meanwhile stays there.
      if (document.activeElement !== main) return true;
      const isBack = stepNow().row !== undefined;
      const head = main.querySelector<HTMLElement>(isBack ? "[data-row].current a" : "h1");
      if (!head) return false;
      if (!isBack) head.setAttribute("tabindex", "-1");
      head.focus({ preventScroll: true });
      return true;
    };
    if (look()) return;
    const observer = new MutationObserver(() => {
      if (look()) observer.disconnect();
    });
    observer.observe(main, { childList: true, subtree: true });
    const timer = setTimeout(() => observer.disconnect(), HEAD_MS);
    return () => {
      observer.disconnect();
      clearTimeout(timer);
    };
  }, [page, thing]);
}

function ProjectSwitch({ projects, shown }: { projects: Project[]; shown: Project | undefined }) {
  const address = useAddress();
  return (
    <label class="project-switch">
      <span class="hidden">Project</span>
      <select
        value={shown?.slug ?? ""}
        onChange={(event) => {
          const project = event.currentTarget.value;
          const { range, from, to } = keptParams(address);
          // What is open is of the other project.
          const page =
            NAVIGATION.find((it) => it.also.includes(address.page))?.page ?? address.page;
          go(hrefOf(page, { project, range, from, to }));
        }}
      >
        {!shown && <option value="">{projects.length ? "Choose a project" : "Waymark"}</option>}
        {projects.map((it) => (
          <option key={it.id} value={it.slug}>
            {it.name}
          </option>
        ))}
      </select>
    </label>
  );
}

function NoProject({ asked, projects }: { asked: string | null; projects: Project[] }) {
  if (asked && projects.length) {
    return (
      <Empty title="There is no such project">
        <p>
          This key sees no project called <code>{asked}</code>. Choose one of its {projects.length}{" "}
          at the top left.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="There is no project yet">
      <p>Make one where the stack runs, then reload this page:</p>
      <pre>waymark project create --name "My shop" --slug my-shop</pre>
    </Empty>
  );
}

/** A thin bar on top while something takes longer than people notice. */
function Progress() {
  const [slow, set] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onUnderway((underway) => {
      if (underway === 0) {
        clearTimeout(timer);
        timer = undefined;
        set(false);
      } else {
        timer ??= setTimeout(() => set(true), 400);
      }
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return <div class={slow ? "progress on" : "progress"} aria-hidden="true" />;
}

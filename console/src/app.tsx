import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { changed, currentHref, go, hrefOf, Link, useAddress } from "./address";
import { type ApiError, api, pendingCount } from "./api/client";
import { clearLoaded, useLoaded } from "./api/loaded";
import {
  CallerContext,
  type CallerInfo,
  CurrentProjectContext,
  type Project,
  type Scope,
} from "./caller";
import { SHORTCUTS, useKeys, watchPrefixes } from "./keys";
import { SourceMapsPage } from "./maps/source-maps";
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
import { Account, Invitations, SwitchedElsewhere } from "./people/account";
import { AuditPage } from "./people/audit";
import { CompleteSignIn } from "./people/complete";
import { KeysPage } from "./people/keys";
import { MembersPage } from "./people/members";
import { ProjectsPage } from "./people/projects";
import { KeyOffer, SignIn, SignInForm } from "./people/sign-in";
import { canOpen, ORGANIZATION_PAGES, scopeOf, settingPages } from "./people/tabs";
import { cacheCaller, cachedCaller, currentCredential, isSession, session } from "./session";
import { clearSteps, currentStep } from "./steps";
import { useStore } from "./store";
import { keptParams, keptView } from "./time/range";
import { LiveRegion } from "./ui/announcement";
import { Banner } from "./ui/banner";
import { Boundary } from "./ui/boundary";
import { Button } from "./ui/button";
import { Dialog } from "./ui/confirm";
import { Icon, type IconName } from "./ui/icons";
import { Palette } from "./ui/palette";
import { Code, Empty, ErrorMessage, SkeletonRows } from "./ui/states";
import { showToast, Toasts, undoLast } from "./ui/toast";

/** An item of the sidebar. Its icon has its name, and its shortcut is `g` and its first letter. */
interface NavigationItem {
  page: string;
  name: string;
  /** Other pages for which the item is marked as current. */
  also?: string[];
  /** Other pages that do not belong to a project, or have the same address in each. */
  tabs?: readonly string[];
  scope: Scope | null;
}

const NAVIGATION: NavigationItem[] = [
  { page: "", name: "Overview", scope: "errors:read" },
  { page: "errors", name: "Errors", also: ["error"], scope: "errors:read" },
  { page: "flags", name: "Flags", also: ["flag", "segments", "segment"], scope: "flags:read" },
  { page: "insights", name: "Insights", also: ["insight"], scope: "insights:read" },
  { page: "markers", name: "Markers", scope: "markers:read" },
  { page: "settings", name: "Settings", tabs: ["source-maps", ...ORGANIZATION_PAGES], scope: null },
];

const keyOf = ({ name }: NavigationItem) => name.charAt(0).toLowerCase();

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
  "source-maps": SourceMapsPage,
  members: MembersPage,
  keys: KeysPage,
  projects: ProjectsPage,
  audit: AuditPage,
};

/** `ready` resolves when the credential of a link or another tab is adopted, or there is none. */
export function App({ ready }: { ready: Promise<void> }) {
  const [key, setKey] = useState(currentCredential);
  const [generation, setGeneration] = useState(session.value.generation);
  const { token, elsewhere, offered } = useStore(session);
  const [expired, setExpired] = useState(false);
  const isSignedIn = useRef(false);
  const wasSession = useRef(false);
  useLayoutEffect(
    () =>
      session.watch((now) => {
        const next = currentCredential();
        // If a key or session expires, the page stays, and a dialog above it asks for another one.
        const isExpired = !next && now.notice !== null && isSignedIn.current;
        setExpired(isExpired);
        if (isExpired) return;
        clearLoaded();
        clearSteps();
        setKey(next);
        setGeneration(now.generation);
      }),
    [],
  );
  const [isReady, setReady] = useState(false);
  useEffect(() => void ready.then(() => setReady(true)), []);
  // The page starts with the cached caller and corrects it after the response.
  const cached = useMemo(() => cachedCaller<CallerInfo>(), [key, generation]);
  const caller = useLoaded(
    key && !token ? `caller ${key.slice(0, 19)} ${generation}` : null,
    async (signal) => {
      const info = await api.GET("/v0/me", { signal });
      cacheCaller(info);
      return info;
    },
  );
  const current = caller.loading ? cached : (caller.data ?? cached);
  isSignedIn.current = Boolean(key && current);
  if (currentCredential()) wasSession.current = isSession();
  if (token) return <CompleteSignIn key={token} token={token} current={cached} />;
  if (!key) return isReady ? <SignIn /> : <SkeletonRows />;
  return (
    <>
      <Frame key={generation} caller={current} error={caller.error} retry={caller.reload} />
      {elsewhere !== null && <SwitchedElsewhere organization={elsewhere} />}
      {offered && <KeyOffer key={offered} offered={offered} current={current} />}
      {expired && (
        <Dialog
          title={wasSession.current ? "Your session ended" : "Your key expired"}
          onClose={() => {
            setExpired(false);
            showToast("You’re signed out. Nothing loads or saves until you sign in again.");
          }}
        >
          <SignInForm preferKey={!wasSession.current} hasReason={!wasSession.current}>
            <p>Sign in again; your changes are kept.</p>
          </SignInForm>
        </Dialog>
      )}
    </>
  );
}

interface FrameProps {
  caller: CallerInfo | undefined;
  error: ApiError | null;
  retry: () => void;
}

/** The sidebar and the current page. Renders before the caller has loaded. */
function Frame({ caller, error, retry }: FrameProps) {
  const address = useAddress();
  const [help, setHelp] = useState(false);
  const requested = address.query.get("project");
  const found = caller?.projects.find((it) => it.slug === requested || it.id === requested);
  const project = found ?? (requested ? undefined : caller?.projects[0]);
  const context = useMemo(
    () => (caller && project ? { caller, project } : null),
    [caller, project],
  );
  const callerContext = useMemo(() => (caller ? { caller, reload: retry } : null), [caller, retry]);
  const place = placeOf(address.page);
  const scope = scopeOf(address.page) ?? place?.scope;
  const hrefTo = (page: string) => hrefOf(page, keptView(address, page));

  // The address of a sign-in link.
  useEffect(() => {
    if (address.page === "sign-in") go(hrefOf(""), "replace");
  }, [address.page]);
  // Users can have different first projects, so the address names the project.
  const implicit = requested ? undefined : project?.slug;
  const pages = NAVIGATION.filter((it) => !caller || canOpen(caller, it.scope));
  // A caller that cannot read errors starts with the first page that it can read.
  const readable = pages[0]?.page ?? "";
  useEffect(() => {
    // Both start from the current address, so they take turns.
    if (address.page === "" && readable) go(hrefTo(readable), "replace");
    else if (implicit) go(changed(address, { project: implicit }), "replace");
  }, [address, readable, implicit]);
  // The parameters that identify a resource, without those of filters and ranges.
  useHeadingFocus(["id", "key", "new"].map((it) => address.query.get(it)).join(" "), address.page);
  useEffect(watchPrefixes, []);
  useEffect(() => {
    document.title = `${place?.name ?? "Not found"} · Waymark`;
  }, [place]);
  useKeys({
    "?": () => setHelp(true),
    z: () => void undoLast(),
    ...Object.fromEntries(NAVIGATION.map((it) => [`g ${keyOf(it)}`, () => go(hrefTo(it.page))])),
  });

  const Page = own(PAGES, address.page);
  const hasNoScope = Boolean(caller && scope && !canOpen(caller, scope));
  const hasNoProject = !context && !ORGANIZATION_PAGES.includes(address.page);
  // Messages in place of a page have no heading of their own.
  const isEmpty = hasNoScope || hasNoProject;
  return (
    <div class="frame">
      <Progress />
      <a class="skip" href="#content">
        Skip to content
      </a>
      <aside class="side" aria-label="Waymark">
        <ProjectSwitch projects={caller?.projects ?? []} current={project} />
        <nav aria-label="Pages">
          {pages.map((it) => (
            <Link
              key={it.page}
              href={hrefTo(it.page)}
              aria-current={it === place ? "page" : undefined}
              title={`${it.name} (g ${keyOf(it)})`}
            >
              <Icon name={it.name.toLowerCase() as IconName} />
              <span>{it.name}</span>
            </Link>
          ))}
        </nav>
        <Account caller={caller} />
        <Button class="bare help" onClick={() => setHelp(true)} title="Keyboard shortcuts (?)">
          <Icon name="keyboard" />
          <span>Keyboard shortcuts</span>
        </Button>
      </aside>
      <main id="content" tabIndex={-1}>
        <Banner />
        {caller && (!Page || isEmpty) && <h1 class="hidden">{place?.name ?? "Not found"}</h1>}
        {error && !caller ? (
          <ErrorMessage error={error} retry={retry} />
        ) : !caller ? (
          <SkeletonRows rows={10} />
        ) : !Page ? (
          <Empty title="Page not found">
            <p>
              <Link href={hrefTo("")}>Go to the overview</Link>
            </p>
          </Empty>
        ) : (
          <CallerContext.Provider value={callerContext}>
            <CurrentProjectContext.Provider value={context}>
              <Invitations />
              {hasNoProject ? (
                <NoProject requested={requested} caller={caller} />
              ) : scope && hasNoScope ? (
                <NoScope caller={caller} page={place?.name ?? ""} scope={scope} />
              ) : (
                <Boundary
                  subject="This page"
                  remedy="Try again, or open another page. If it keeps failing, report the errors in the browser console."
                  at={currentHref()}
                >
                  <Page key={`${context?.project.id} ${address.page}`} />
                </Boundary>
              )}
            </CurrentProjectContext.Provider>
          </CallerContext.Provider>
        )}
      </main>
      {help && (
        <Dialog title="Keyboard shortcuts" onClose={() => setHelp(false)}>
          <dl class="keys">
            {SHORTCUTS.map((it) => (
              <div key={it.keys}>
                <dt>
                  {it.keys.split(" ").map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{it.action}</dd>
              </div>
            ))}
          </dl>
          <div class="actions">
            <Button onClick={() => setHelp(false)}>Close</Button>
          </div>
        </Dialog>
      )}
      {caller && (
        <Palette
          caller={caller}
          project={project}
          pages={[...pages, ...settingPages(caller).slice(1)].map(({ name, page }) => ({
            name,
            href: hrefTo(page),
          }))}
        />
      )}
      <LiveRegion />
      <Toasts />
    </div>
  );
}

function placeOf(page: string): NavigationItem | undefined {
  return NAVIGATION.find(
    (it) => it.page === page || it.also?.includes(page) || it.tabs?.includes(page),
  );
}

function NoScope({ caller, page, scope }: { caller: CallerInfo; page: string; scope: Scope }) {
  if (caller.keyId) {
    return (
      <Empty title={`Your key can’t open ${page}`}>
        <p>
          This page needs a key with the scope <code>{scope}</code>.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={`Your role can’t open ${page}`}>
      <p>Ask an admin of {caller.organization} for a role that includes it.</p>
    </Empty>
  );
}

/** Maximum time to wait for the heading of a page. */
const HEADING_TIMEOUT_MS = 5_000;

/** Focuses the heading of a new page or, after going back, the row that was current. */
function useHeadingFocus(resource: string, page: string) {
  const last = useRef(`${page} ${resource}`);
  useEffect(() => {
    const current = `${page} ${resource}`;
    if (last.current === current) return;
    last.current = current;
    const main = document.getElementById("content");
    if (!main) return;
    main.focus({ preventScroll: true });
    const tryFocus = () => {
      // The user has moved the focus.
      if (document.activeElement !== main) return true;
      const isBack = currentStep().row !== undefined;
      // A form for something new starts at its first field.
      const field = isBack ? null : main.querySelector<HTMLElement>("[autofocus]");
      const target =
        field ?? main.querySelector<HTMLElement>(isBack ? "[data-row].current a" : "h1");
      if (!target) return false;
      if (!isBack && !field) target.setAttribute("tabindex", "-1");
      target.focus({ preventScroll: true });
      return true;
    };
    if (tryFocus()) return;
    const observer = new MutationObserver(() => {
      if (tryFocus()) observer.disconnect();
    });
    observer.observe(main, { childList: true, subtree: true });
    const timer = setTimeout(() => observer.disconnect(), HEADING_TIMEOUT_MS);
    return () => {
      observer.disconnect();
      clearTimeout(timer);
    };
  }, [page, resource]);
}

interface ProjectSwitchProps {
  projects: Project[];
  current: Project | undefined;
}

function ProjectSwitch({ projects, current }: ProjectSwitchProps) {
  const address = useAddress();
  return (
    <label class="project-switch">
      <span class="hidden">Project</span>
      <select
        value={current?.slug ?? ""}
        onChange={(event) => {
          const project = event.currentTarget.value;
          const { range, from, to } = keptParams(address);
          // An open resource belongs to the previous project, so its list opens instead.
          const page =
            NAVIGATION.find((it) => it.also?.includes(address.page))?.page ?? address.page;
          go(hrefOf(page, { project, range, from, to }));
        }}
      >
        {!current && <option value="">{projects.length ? "Choose a project" : "Waymark"}</option>}
        {projects.map((it) => (
          <option key={it.id} value={it.slug}>
            {it.name}
          </option>
        ))}
      </select>
    </label>
  );
}

function NoProject({ requested, caller }: { requested: string | null; caller: CallerInfo }) {
  if (requested && caller.projects.length) {
    return (
      <Empty title="Project not found">
        <p>
          {caller.keyId ? "Your key has" : `In ${caller.organization}, you have`} no access to “
          {requested}”. Pick another project at top left.
        </p>
      </Empty>
    );
  }
  if (caller.scopes.includes("projects:write")) {
    return (
      <Empty title="No projects yet">
        <p>A project has its own errors, flags, insights and markers.</p>
        <p>
          <Link href={hrefOf("projects", { new: 1 })}>Create a project</Link>
        </p>
      </Empty>
    );
  }
  if (!caller.keyId) {
    return (
      <Empty title="No projects yet">
        <p>Ask an admin of {caller.organization} to create one, or to give you access.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No projects yet">
      <p>Create one where the stack runs, then reload this page:</p>
      <Code text='waymark project create --name "My shop" --slug my-shop' />
    </Empty>
  );
}

/** A thin bar at the top of the page while requests take longer than 400 ms. */
function Progress() {
  const [slow, set] = useState(false);
  const isPending = useStore(pendingCount) > 0;
  useEffect(() => {
    if (!isPending) return;
    const timer = setTimeout(() => set(true), 400);
    return () => {
      clearTimeout(timer);
      set(false);
    };
  }, [isPending]);
  return <div class={slow ? "progress on" : "progress"} aria-hidden="true" />;
}

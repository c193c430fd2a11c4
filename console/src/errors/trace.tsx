/** A stack trace: library frames are collapsed. */

import { useMemo } from "preact/hooks";
import { hrefOf, Link, useAddress } from "../address";
import { pluralize } from "../time/format";
import { Block } from "../ui/layout";
import { CopyButton, useShowMore } from "../ui/states";
import {
  type Exception,
  type Frame,
  groupsOf,
  locationOf,
  type MapStatus,
  sourceOf,
  traceAsText,
} from "./event";

/** Exceptions shown before “Show more”. */
const MAX_CAUSES = 10;

interface TraceProps {
  exceptions: Exception[];
  mapStatus: MapStatus | null;
}

export function Trace({ exceptions, mapStatus }: TraceProps) {
  const text = useMemo(() => traceAsText(exceptions), [exceptions]);
  const [limit, more] = useShowMore(exceptions.length, MAX_CAUSES);
  return (
    <Block title="Stack trace" actions={<CopyButton text={text} label="Copy stack trace" />}>
      {mapStatus && <MapNote status={mapStatus} />}
      {exceptions.slice(0, limit).map((it, index) => (
        <div class="exception" key={index}>
          <header>
            <div>
              {index > 0 && <h3>Caused by</h3>}
              <p>
                <b>{it.type || "Error"}</b> {it.value}
              </p>
            </div>
            {!it.isHandled && <span class="status open">unhandled</span>}
          </header>
          {it.frames.length ? (
            <FirstFrames frames={it.frames} />
          ) : (
            <p class="quiet">No stack trace.</p>
          )}
        </div>
      ))}
      {more}
    </Block>
  );
}

/** Says why minified frames have no source. */
function MapNote({ status }: { status: MapStatus }) {
  const { query } = useAddress();
  const href = hrefOf("source-maps", { project: query.get("project") });
  return (
    <p class="quiet map-note">
      {status === "missing"
        ? "Some frames are minified, and no source map was uploaded for them. "
        : "The source map of some frames could not be read. "}
      <Link href={href}>{status === "missing" ? "Upload source maps" : "See failed uploads"}</Link>
    </p>
  );
}

function FirstFrames({ frames }: { frames: Frame[] }) {
  const [limit, more] = useShowMore(frames.length);
  return (
    <>
      <Frames frames={frames.slice(0, limit)} />
      {more}
    </>
  );
}

function Frames({ frames }: { frames: Frame[] }) {
  const groups = groupsOf(frames);
  const firstOwn = groups.findIndex((it) => it.own);
  return (
    <ol class="frames">
      {groups.map((group, index) => {
        const [first] = group.frames;
        if (group.own && first) {
          return <OwnFrame key={index} frame={first} open={index === firstOwn} />;
        }
        return (
          <li class="library" key={index}>
            <details>
              <summary title={sourceOf(group.frames)}>
                {pluralize(group.frames.length, "library frame")}
              </summary>
              {group.frames.map((frame, at) => (
                <div class="frame-line" key={at}>
                  <FrameName frame={frame} />
                </div>
              ))}
            </details>
          </li>
        );
      })}
    </ol>
  );
}

function FrameName({ frame }: { frame: Frame }) {
  return (
    <code>
      <b>{frame.function || "?"}</b> <span class="quiet">in {locationOf(frame)}</span>
    </code>
  );
}

function OwnFrame({ frame, open }: { frame: Frame; open: boolean }) {
  if (!frame.source.length) {
    return (
      <li>
        <div class="frame-line">
          <FrameName frame={frame} />
          <Minified frame={frame} />
        </div>
      </li>
    );
  }
  return (
    <li>
      <details open={open}>
        <summary>
          <FrameName frame={frame} />
        </summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach scrollable content. */}
        <ol class="source" tabIndex={0}>
          {frame.source.map((it, index) => (
            <li key={index} class={it.isAt ? "at" : ""}>
              <span class="line">{it.line}</span>
              <span>{it.text}</span>
            </li>
          ))}
        </ol>
        <Minified frame={frame} />
      </details>
    </li>
  );
}

/** The location that the browser reported, for a search in the built files. */
function Minified({ frame: { minified } }: { frame: Frame }) {
  if (minified === null) return null;
  return (
    <p class="minified">
      <span>Minified: </span>
      <code>
        <bdi>{minified}</bdi>
      </code>
    </p>
  );
}

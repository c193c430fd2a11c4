/** A stack trace: library frames are collapsed. */

import { useMemo } from "preact/hooks";
import { pluralize } from "../time/format";
import { CopyButton, useShowMore } from "../ui/states";
import { type Exception, type Frame, groupsOf, locationOf, sourceOf, traceAsText } from "./event";

/** Exceptions shown before “Show more”. */
const MAX_CAUSES = 10;

export function Trace({ exceptions }: { exceptions: Exception[] }) {
  const text = useMemo(() => traceAsText(exceptions), [exceptions]);
  const [limit, more] = useShowMore(exceptions.length, MAX_CAUSES);
  return (
    <section class="block">
      <header>
        <h2>Stack trace</h2>
        <CopyButton text={text} label="Copy stack trace" />
      </header>
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
    </section>
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
      </details>
    </li>
  );
}

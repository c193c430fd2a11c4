/** A stack trace: the application's frames open, all others folded. */

import { useMemo } from "preact/hooks";
import { CopyButton, useShowMore } from "../ui/states";
import { type Exception, type Frame, groupsOf, placeOf, sourceOf, traceAsText } from "./event";

/** Few errors have more causes than these. */
const MOST_CAUSES = 10;

export function Trace({ exceptions }: { exceptions: Exception[] }) {
  const text = useMemo(() => traceAsText(exceptions), [exceptions]);
  const [most, more] = useShowMore(exceptions.length, MOST_CAUSES);
  return (
    <section class="block">
      <header>
        <h2>Stack trace</h2>
        <CopyButton text={text} label="Copy the stack trace" />
      </header>
      {exceptions.slice(0, most).map((it, index) => (
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
            <p class="quiet">It came without a trace.</p>
          )}
        </div>
      ))}
      {more}
    </section>
  );
}

function FirstFrames({ frames }: { frames: Frame[] }) {
  const [most, more] = useShowMore(frames.length);
  return (
    <>
      <Frames frames={frames.slice(0, most)} />
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
              <summary>
                {group.frames.length} {group.frames.length === 1 ? "frame" : "frames"} of{" "}
                {sourceOf(group.frames)}
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
      <b>{frame.function || "?"}</b> <span class="quiet">in {placeOf(frame)}</span>
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
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
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

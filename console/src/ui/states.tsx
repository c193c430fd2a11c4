/** What stands where something is missing: not there yet, not there at all, refused. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { own } from "../own";
import { number } from "../time/format";
import { Icon } from "./icons";
import { showToast } from "./toast";

/** Rows of the size of those to come. */
export function SkeletonRows({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeletons" aria-busy="true" role="status">
      <span class="hidden">Loading…</span>
      {Array.from({ length: rows }, (_, row) => (
        <div class="skeleton-row" key={row}>
          <i style={{ width: `${34 + ((row * 29) % 40)}%` }} />
          <i class="end" />
        </div>
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

const REMEDIES: Record<string, string> = {
  unreachable: "Try again in a moment; nothing that you typed is lost.",
  timed_out:
    "Try again. What was to be changed may have been carried out: look whether it was, before.",
  insufficient_scope: "Use a key with these rights: waymark key create makes one.",
  throttled:
    "The key asked for more than a minute takes. Wait for the next minute, then try again.",
  status_429: "There is no room for more requests at the moment. Wait a little, then try again.",
  unavailable: "It is usually back within seconds.",
  segment_in_use: "Open them under “Used by”, and take the segment out of their rules.",
  internal: "Try again; if it stays, report the request's id.",
};

interface RefusedProps {
  refusal: ApiError;
  retry?: () => void;
  /** For one part of a page among others: what the page as a whole says at length. */
  small?: boolean;
}

export function Refused({ refusal, retry, small = false }: RefusedProps) {
  const remedy = own(REMEDIES, refusal.code);
  const violations = refusal.violations.filter((it) => it.message !== refusal.message);
  if (small) {
    return (
      <p class="refused brief" role="alert" title={remedy}>
        {refusal.message}{" "}
        {retry && (
          <button type="button" class="link" onClick={retry}>
            Retry
          </button>
        )}
      </p>
    );
  }
  return (
    <div class="refused" role="alert" tabIndex={-1}>
      <p>
        <b>{refusal.message}</b>
      </p>
      {violations.map((it) => (
        <p key={it.pointer + it.code}>
          <code>{it.pointer || "body"}</code> {it.message}
        </p>
      ))}
      {remedy && <p class="quiet">{remedy}</p>}
      {refusal.requestId && <p class="quiet small">Request {refusal.requestId}</p>}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A refusal that a form shows: another key is asked for above it. */
export function shownHere(refusal: ApiError): ApiError | null {
  return refusal.status === 401 ? null : refusal;
}

/** What the API says of one field, below it. */
export function FieldFault({ refusal, at }: { refusal: ApiError | null; at: string }) {
  const text = refusal?.at(at);
  return text ? (
    <p class="fault" id={faultId(at)} data-fault tabIndex={-1} role="alert">
      {text}
    </p>
  ) : null;
}

function faultId(at: string): string {
  return `fault${at.replace(/\s/g, "_")}`;
}

/** What makes a field one that something is wrong with, and says where that stands. */
export function errorProps(refusal: ApiError | null, ...pointers: string[]) {
  const wrong = pointers.filter((at) => refusal?.at(at));
  return wrong.length
    ? { "aria-invalid": true, "aria-describedby": wrong.map(faultId).join(" ") }
    : {};
}

/** Leads to the first thing that is wrong in a form, each time that it was refused. */
export function useFirstFault(refused: unknown) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (!refused) return;
    const first = form.current?.querySelector<HTMLElement>(
      '[aria-invalid="true"], [data-fault], .refused',
    );
    first?.focus({ preventScroll: true });
    first?.scrollIntoView({ block: "center" });
  }, [refused]);
  return form;
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, set] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => {
        set(true);
        setTimeout(() => set(false), 1_500);
      },
      () => showToast("The browser does not let the page copy; select the text instead."),
    );
  return (
    <button type="button" class="bare copy" onClick={copy} title={label} aria-label={label}>
      <Icon name={done ? "check" : "copy"} />
    </button>
  );
}

/** The most characters that a browser lays out at once without a pause. */
const MOST_SHOWN = 200_000;

export function Code({ text, what }: { text: string; what?: string }) {
  return (
    <>
      <div class={text.includes("\n") ? "code" : "code line"}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
        <pre tabIndex={0}>{text.slice(0, MOST_SHOWN)}</pre>
        <CopyButton text={text} {...(what && { label: what })} />
      </div>
      {text.length > MOST_SHOWN && (
        <p class="quiet small">
          Only the first {number(MOST_SHOWN)} characters are shown. Copy the text to see all of it.
        </p>
      )}
    </>
  );
}

/** Returns how many items of a long list to show, and a button that shows `step` more. */
export function useShowMore(count: number, step = 100): [most: number, more: ComponentChildren] {
  const [most, set] = useState(step);
  const left = count - most;
  return [
    most,
    left > 0 && (
      <button type="button" class="more" onClick={() => set(most + step)}>
        Show more ({number(left)} left)
      </button>
    ),
  ];
}

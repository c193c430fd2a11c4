/** What stands where something is missing: not there yet, not there at all, refused. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Refusal } from "../api/client";
import { Icon } from "./icons";
import { tell } from "./toast";

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
  insufficient_scope: "Use a key that has this scope: waymark key create --scopes …",
  throttled:
    "The key asked for more than a minute takes. Wait for the next minute, then try again.",
  status_429: "There is no room for more requests at the moment. Wait a little, then try again.",
  unavailable: "It is usually back within seconds.",
  segment_in_use: "Open them under “Used by”, and take the segment out of their rules.",
  internal: "Try again; if it stays, report the request's id.",
};

interface RefusedProps {
  refusal: Refusal;
  retry?: () => void;
  /** For one part of a page among others: what the page as a whole says at length. */
  small?: boolean;
}

export function Refused({ refusal, retry, small = false }: RefusedProps) {
  const remedy = REMEDIES[refusal.code];
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
    <div class="refused" role="alert">
      <p>
        <b>{refusal.message}</b>
      </p>
      {refusal.violations.map((it) => (
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

/** What the API says of one field, below it. */
export function FieldFault({
  id,
  refusal,
  at,
}: {
  id?: string;
  refusal: Refusal | null;
  at: string;
}) {
  const text = refusal?.at(at);
  return text ? (
    <p class="fault" id={id} role="alert">
      {text}
    </p>
  ) : null;
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, set] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => {
        set(true);
        setTimeout(() => set(false), 1_500);
      },
      () => tell("The browser does not let the page copy; select the text instead."),
    );
  return (
    <button type="button" class="bare copy" onClick={copy} title={label} aria-label={label}>
      <Icon name={done ? "check" : "copy"} />
    </button>
  );
}

export function Code({ text, what }: { text: string; what?: string }) {
  return (
    <div class={text.includes("\n") ? "code" : "code line"}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} {...(what && { label: what })} />
    </div>
  );
}

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
  throttled: "Too many requests in this minute. Wait a little, then try again.",
  unavailable: "The database is busy. Try again in a moment.",
  internal: "Try again; if it stays, report the request's id.",
};

export function Refused({ refusal, retry }: { refusal: Refusal; retry?: () => void }) {
  const remedy = REMEDIES[refusal.code];
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

export function Code({ text }: { text: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} />
    </div>
  );
}

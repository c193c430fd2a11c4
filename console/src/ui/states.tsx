/** Placeholders: loading, empty and error states. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { isOutage } from "../api/outage";
import { describePointer, fieldMessage } from "../api/pointer";
import { own } from "../own";
import { isSession } from "../session";
import { capitalize, number, pluralize } from "../time/format";
import { Button } from "./button";
import { Icon } from "./icons";
import { showToast } from "./toast";

/** Placeholder rows of the height of loaded rows. */
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

interface PendingProps {
  of: { data?: unknown; error: ApiError | null; reload: () => void };
  rows: number;
  small?: boolean;
}

/** Error of a failed load, and placeholders during a load. */
export function Pending({ of: { data, error, reload }, rows, small = false }: PendingProps) {
  if (error) return <ErrorMessage error={error} retry={reload} small={small} />;
  return data === undefined ? <SkeletonRows rows={rows} /> : null;
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
  unreachable: "Try again in a moment. Your changes are kept.",
  timed_out: "Try again. If you changed something, first check whether it was saved.",
  insufficient_scope: "Create a key with this access: waymark key create.",
  status_429: "Too many requests right now. Wait a moment, then try again.",
  unavailable: "The service usually recovers within seconds. Try again.",
  segment_in_use: "Remove the segment from the rules of the flags under “Used by”.",
};

function remedyOf({ code, requestId }: ApiError): string | undefined {
  if (code === "insufficient_scope" && isSession())
    return "Ask an admin for a role that includes it.";
  if (code !== "internal") return own(REMEDIES, code);
  return requestId
    ? `Try again. If it keeps failing, report request ID ${requestId}.`
    : "Try again. If it keeps failing, report it.";
}

interface ErrorMessageProps {
  error: ApiError;
  retry?: () => void;
  /** `true` for a section of a page: one line, with the remedy on hover. */
  small?: boolean;
}

export function ErrorMessage({ error, retry, small = false }: ErrorMessageProps) {
  // The banner shows these, and retries.
  if (retry && isOutage(error)) return null;
  const remedy = remedyOf(error);
  const violations = error.violations.filter((it) => it.message !== error.message);
  if (small) {
    return (
      <p class="error-box brief" role="alert" title={remedy}>
        {error.message}{" "}
        {retry && (
          <Button class="link" onClick={retry}>
            Retry
          </Button>
        )}
      </p>
    );
  }
  return (
    <div class="error-box" role="alert" tabIndex={-1}>
      <p>
        <b>
          {violations.length
            ? `Fix ${pluralize(violations.length, "problem")} and try again.`
            : error.message}
        </b>
      </p>
      {violations.map((it) => (
        <p key={it.pointer + it.code}>
          {capitalize(describePointer(it.pointer))}: {fieldMessage(it)}
        </p>
      ))}
      {remedy && <p class="quiet">{remedy}</p>}
      {error.requestId && error.code !== "internal" && (
        <p class="quiet small">Request {error.requestId}</p>
      )}
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Returns the error to show in a form: none for 401, which opens the sign-in dialog. */
export function formError(error: ApiError): ApiError | null {
  return error.status === 401 ? null : error;
}

interface FieldErrorProps {
  error: ApiError | null;
  /** JSON pointer of the field. */
  at: string;
  /** Replaces the API's message. */
  message?: string | undefined;
}

/** The error of a field, below it. */
export function FieldError({ error, at, message }: FieldErrorProps) {
  const text = error?.at(at);
  return text ? (
    <p class="field-error" id={fieldErrorId(at)} data-field-error tabIndex={-1} role="alert">
      {message ?? text}
    </p>
  ) : null;
}

function fieldErrorId(at: string): string {
  return `error${at.replace(/\s/g, "_")}`;
}

/** Returns the attributes that mark a field as invalid and link it to its errors. */
export function errorProps(error: ApiError | null, ...pointers: string[]) {
  const invalid = pointers.filter((at) => error?.at(at));
  return invalid.length
    ? { "aria-invalid": true, "aria-describedby": invalid.map(fieldErrorId).join(" ") }
    : {};
}

/** Focuses the first error of a form whenever `failure` changes to a new one. */
export function useFocusFirstError(failure: unknown) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (!failure) return;
    const first = form.current?.querySelector<HTMLElement>(
      '[aria-invalid="true"], [data-field-error], .error-box',
    );
    first?.focus({ preventScroll: true });
    first?.scrollIntoView({ block: "center" });
  }, [failure]);
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
      () => showToast("The browser blocked copying. Select the text and copy it instead."),
    );
  return (
    <Button class="bare copy" onClick={copy} title={label} aria-label={label}>
      <Icon name={done ? "check" : "copy"} />
    </Button>
  );
}

/** Maximum characters that a browser lays out without a noticeable pause. */
const MAX_SHOWN = 200_000;

export function Code({ text, copyLabel }: { text: string; copyLabel?: string }) {
  return (
    <>
      <div class={text.includes("\n") ? "code" : "code line"}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach scrollable content. */}
        <pre tabIndex={0}>{text.slice(0, MAX_SHOWN)}</pre>
        <CopyButton text={text} {...(copyLabel && { label: copyLabel })} />
      </div>
      {text.length > MAX_SHOWN && (
        <p class="quiet small">
          Showing the first {number(MAX_SHOWN)} characters. Copy the text to get all of it.
        </p>
      )}
    </>
  );
}

/** Returns the number of items to show of a long list, and a button that shows `step` more. */
export function useShowMore(count: number, step = 100): [limit: number, more: ComponentChildren] {
  const [limit, set] = useState(step);
  const left = count - limit;
  return [
    limit,
    left > 0 && (
      <Button class="more" onClick={() => set(limit + step)}>
        Show more ({number(left)} left)
      </Button>
    ),
  ];
}

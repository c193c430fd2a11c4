/** The details of an event: stack trace, breadcrumbs, tags, context and raw JSON. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatTimeOfDay } from "../time/format";
import { Boundary } from "../ui/boundary";
import { Block, Pairs } from "../ui/layout";
import { Code, useShowMore } from "../ui/states";
import { Time } from "../ui/time";
import {
  contextsOf,
  countCrumbs,
  crumbsOf,
  exceptionsOf,
  type MapStatus,
  messageOf,
  type NamedValues,
  tagsOf,
} from "./event";
import { Trace } from "./trace";

interface PartProps {
  event: unknown;
}

interface EventDetailsProps extends PartProps {
  mapStatus?: MapStatus | null | undefined;
}

export function EventDetails({ event, mapStatus = null }: EventDetailsProps) {
  const remedy =
    "The other parts are complete. To get this one, list the error’s events with the API.";
  const part = (subject: string, content: ComponentChildren) => (
    <Boundary subject={subject} remedy={remedy}>
      {content}
    </Boundary>
  );
  return (
    <>
      {part("The stack trace", <Thrown event={event} mapStatus={mapStatus} />)}
      {part("The breadcrumb list", <Crumbs event={event} />)}
      <div class="two">
        {part("The tag list", <Table name="Tags" event={event} read={tagsOf} />)}
        {part("The context", <Table name="Context" event={event} read={contextsOf} />)}
      </div>
      {part("The raw JSON", <Raw event={event} />)}
    </>
  );
}

function Thrown({ event, mapStatus }: PartProps & { mapStatus: MapStatus | null }) {
  const exceptions = useMemo(() => exceptionsOf(event), [event]);
  if (exceptions.length > 0) return <Trace exceptions={exceptions} mapStatus={mapStatus} />;
  const message = messageOf(event);
  if (!message) return null;
  return (
    <Block title="Message">
      <Code text={message} />
    </Block>
  );
}

function Crumbs({ event }: PartProps) {
  const count = countCrumbs(event);
  const [limit, more] = useShowMore(count);
  const crumbs = useMemo(() => crumbsOf(event, limit), [event, limit]);
  if (count === 0) return null;
  return (
    <Block title="Breadcrumbs">
      {more}
      <ol class="crumbs">
        {crumbs.map((it, index) => (
          <li key={count - crumbs.length + index}>
            <span class="quiet number">
              {it.at !== null && <Time at={it.at}>{formatTimeOfDay(it.at)}</Time>}
            </span>
            <span class="quiet">{it.category}</span>
            <span class={it.isError ? "is-error" : ""}>{it.message}</span>
          </li>
        ))}
      </ol>
    </Block>
  );
}

interface TableProps extends PartProps {
  name: string;
  read: (event: unknown) => NamedValues;
}

function Table({ name, event, read }: TableProps) {
  const pairs = useMemo(() => read(event), [event, read]);
  const [limit, more] = useShowMore(pairs.length);
  if (pairs.length === 0) return null;
  return (
    <Block title={name}>
      <Pairs rows={pairs.slice(0, limit).map(([key, value]) => [key, <bdi>{value}</bdi>])} />
      {more}
    </Block>
  );
}

/** The whole event, formatted when the section opens. */
function Raw({ event }: PartProps) {
  const [open, setOpen] = useState(false);
  return (
    <details class="raw" onToggle={(it) => setOpen(it.currentTarget.open)}>
      <summary class="quiet">Raw JSON</summary>
      {open && <Code text={JSON.stringify(event, null, 2)} />}
    </details>
  );
}

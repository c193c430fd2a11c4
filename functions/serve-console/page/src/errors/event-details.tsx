/** What an event tells beside its trace. */

import type { Schemas } from "../api/client";
import { timeOfDay } from "../time/format";
import { Code } from "../ui/states";
import { contextsOf, crumbsOf, exceptionsOf, messageOf, type Pairs, tagsOf } from "./event";
import { Trace } from "./trace";

export function EventDetails({ event }: { event: Schemas["ErrorEvent"] }) {
  const exceptions = exceptionsOf(event.event);
  const crumbs = crumbsOf(event.event);
  const tags = tagsOf(event.event);
  const contexts = contextsOf(event.event);
  const message = messageOf(event.event);
  return (
    <>
      {message && !exceptions.length && (
        <section class="block">
          <header>
            <h2>Message</h2>
          </header>
          <Code text={message} />
        </section>
      )}
      {exceptions.length > 0 && <Trace exceptions={exceptions} />}
      {crumbs.length > 0 && (
        <section class="block">
          <header>
            <h2>What happened before</h2>
          </header>
          <ol class="crumbs">
            {crumbs.map((it, index) => (
              <li key={index}>
                <span class="quiet number">{it.at === null ? "" : timeOfDay(it.at)}</span>
                <span class="quiet">{it.category}</span>
                <span class={it.isWrong ? "wrong" : ""}>{it.message}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      <div class="two">
        <Table name="Tags" groups={[{ name: "", pairs: tags }]} />
        <Table name="Context" groups={contexts} />
      </div>
      <details class="raw">
        <summary class="quiet">Raw JSON</summary>
        <Code text={JSON.stringify(event.event, null, 2)} />
      </details>
    </>
  );
}

function Table({ name, groups }: { name: string; groups: { name: string; pairs: Pairs }[] }) {
  if (!groups.some((it) => it.pairs.length)) return null;
  return (
    <section class="block">
      <header>
        <h2>{name}</h2>
      </header>
      <table class="pairs">
        <tbody>
          {groups.flatMap((group) =>
            group.pairs.map(([key, value], index) => (
              <tr key={`${group.name} ${key} ${index}`}>
                <th scope="row">{group.name ? `${group.name}.${key}` : key}</th>
                <td>
                  <bdi>{value}</bdi>
                </td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </section>
  );
}

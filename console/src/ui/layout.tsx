/** Parts of pages: sections with headings, and lists of facts. */

import type { ComponentChildren } from "preact";

interface SectionProps {
  title: ComponentChildren;
  /** Controls beside the title. */
  actions?: ComponentChildren;
  class?: string | undefined;
  label?: string;
  children?: ComponentChildren;
}

/** A section of a page, with a line below its heading. */
export function Block({ title, actions, class: more = "", label, children }: SectionProps) {
  return (
    <section class={`block ${more}`} aria-label={label}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

/** A part of an editor, with a line above its heading. */
export function Part({ title, actions, class: more = "", children }: SectionProps) {
  return (
    <section class={`part ${more}`}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

type Row = [name: ComponentChildren, value: ComponentChildren];

/** Names and values. Rows without a name are omitted. */
export function Pairs({ rows }: { rows: Row[] }) {
  return (
    <table class="pairs">
      <tbody>
        {rows.map(([name, value], index) =>
          name ? (
            <tr key={index}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ) : null,
        )}
      </tbody>
    </table>
  );
}

/** The most important values of a resource, side by side. */
export function Facts({ rows }: { rows: Row[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value], index) =>
        name ? (
          <div key={index}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

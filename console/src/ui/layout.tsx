/** Parts of pages: sections with headings, and lists of facts. */

import type { ComponentChildren } from "preact";

interface SectionProps {
  kind?: "block" | "part";
  title: ComponentChildren;
  /** Controls beside the title. */
  actions?: ComponentChildren;
  class?: string | undefined;
  label?: string;
  children?: ComponentChildren;
}

/** A section of a page, with a line below its heading. */
export function Block(props: SectionProps) {
  const { kind = "block", title, actions, class: more = "", label, children } = props;
  return (
    <section class={`${kind} ${more}`} aria-label={label}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

/** A part of an editor, with a line above its heading. */
export function Part(props: SectionProps) {
  return <Block {...props} kind="part" />;
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

/** A flag as text, for users who cannot change it. */

import type { Segment } from "../segments/segment";
import { describeCondition } from "./conditions-editor";
import { CODE_DEFAULT, describeServe, type Flag } from "./flag";

export function FlagText({ flag, segments }: { flag: Flag; segments: Segment[] }) {
  const { description, variants, targets, rules, fallthrough, offVariant, prerequisites } = flag;
  const nameOf = (key: string) => segments.find((it) => it.key === key)?.name;
  return (
    <div class="flag-text">
      {description && (
        <p class="nothing">
          <bdi>{description}</bdi>
        </p>
      )}
      <section class="part">
        <h2>Variants</h2>
        {variants.length === 0 && <p class="quiet">None. Everyone gets {CODE_DEFAULT}.</p>}
        <table class="pairs">
          <tbody>
            {variants.map((it) => (
              <tr key={it.key}>
                <th scope="row">
                  <code>{it.key}</code> {it.name !== it.key && <bdi>{it.name}</bdi>}
                </th>
                <td>
                  <code>{it.value}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {targets.length > 0 && (
        <section class="part">
          <h2>Individual users</h2>
          <table class="pairs">
            <tbody>
              {targets.map((it) => (
                <tr key={it.value}>
                  <th scope="row">
                    <bdi>{it.value}</bdi>
                  </th>
                  <td>{it.variant}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {rules.length > 0 && (
        <section class="part">
          <h2>Rules</h2>
          <ol class="rule-texts">
            {rules.map((rule) => (
              <li key={rule.id}>
                {rule.name && (
                  <b>
                    <bdi>{rule.name}</bdi>:{" "}
                  </b>
                )}
                if{" "}
                <bdi>
                  {rule.conditions
                    .map((it) => {
                      const values = it.values.map((key) => nameOf(key) ?? key);
                      return it.attribute
                        ? describeCondition(it)
                        : `the user ${describeCondition({ ...it, values })}`;
                    })
                    .join(" and ") || "anyone"}
                </bdi>
                , serve <b>{describeServe(rule.serve)}</b>
              </li>
            ))}
          </ol>
        </section>
      )}
      <section class="part">
        <h2>Everyone else</h2>
        <p>
          <b>{describeServe(fallthrough)}</b>
        </p>
      </section>
      <section class="part">
        <h2>When off</h2>
        <p>
          <b>{offVariant ?? CODE_DEFAULT}</b>
        </p>
      </section>
      {prerequisites.length > 0 && (
        <section class="part">
          <h2>Prerequisites</h2>
          <ul>
            {prerequisites.map((it) => (
              <li key={it.flagKey}>
                <code>{it.flagKey}</code> serves <b>{it.variant}</b>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

/** A flag as text, for users who cannot change it. */

import type { Segment } from "../segments/segment";
import { Pairs, Part } from "../ui/layout";
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
      <Part title="Variants">
        {variants.length === 0 && <p class="quiet">None. Everyone gets {CODE_DEFAULT}.</p>}
        <Pairs
          rows={variants.map((it) => [
            <>
              <code>{it.key}</code> {it.name !== it.key && <bdi>{it.name}</bdi>}
            </>,
            <code>{it.value}</code>,
          ])}
        />
      </Part>
      {targets.length > 0 && (
        <Part title="Individual users">
          <Pairs rows={targets.map((it) => [<bdi>{it.value}</bdi>, it.variant])} />
        </Part>
      )}
      {rules.length > 0 && (
        <Part title="Rules">
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
        </Part>
      )}
      <Part title="Everyone else">
        <p>
          <b>{describeServe(fallthrough)}</b>
        </p>
      </Part>
      <Part title="When off">
        <p>
          <b>{offVariant ?? CODE_DEFAULT}</b>
        </p>
      </Part>
      {prerequisites.length > 0 && (
        <Part title="Prerequisites">
          <ul>
            {prerequisites.map((it) => (
              <li key={it.flagKey}>
                <code>{it.flagKey}</code> serves <b>{it.variant}</b>
              </li>
            ))}
          </ul>
        </Part>
      )}
    </div>
  );
}

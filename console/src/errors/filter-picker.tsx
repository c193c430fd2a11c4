/** Adds or changes a filter: a category first, then its values, in one field. */

import { useState } from "preact/hooks";
import { Combobox, matchesText, type Option } from "../ui/combobox";
import { type Category, type Filter, OPERATORS } from "./filters";

interface Choice extends Option {
  filter?: Filter;
  category?: Category;
}

interface FilterPickerProps {
  categories: Category[];
  onChoose: (filter: Filter) => void;
  onClose: () => void;
}

export function FilterPicker({ categories, onChoose, onClose }: FilterPickerProps) {
  const [category, setCategory] = useState<Category>();
  const [text, setText] = useState("");
  const typed = text.trim();
  const options = category ? valuesOf(category, typed) : categoriesOf(categories, typed);
  return (
    <Combobox
      label={category ? `Value of ${category.label}` : "Add filter"}
      placeholder={category ? `${category.label} is …` : "Category or value"}
      options={options}
      text={text}
      onText={setText}
      onClose={onClose}
      onChoose={(it) => {
        if (!it.filter) {
          setCategory(it.category);
          return setText("");
        }
        onClose();
        onChoose(it.filter);
      }}
    />
  );
}

const filterOf = (category: Category, operator: Filter["operator"], value: string): Filter => ({
  categoryId: category.id as Filter["categoryId"],
  operator,
  value,
});

/** Categories and, once something is typed, values of all of them. */
function categoriesOf(categories: Category[], typed: string): Choice[] {
  const found: Choice[] = categories
    .filter((it) => matchesText(`${it.label} ${it.id}`, typed))
    .map((it) => ({ key: it.id, label: it.label, group: "Categories", category: it }));
  if (!typed) return found;
  // `tenant:acme` names both.
  const [, name, value] = /^([^:=]+)[:=](.*)$/.exec(typed) ?? [];
  const named = categories.find((it) =>
    [it.id, it.label].some((one) => one.toLowerCase() === name?.trim().toLowerCase()),
  );
  if (named) return valuesOf(named, value?.trim() ?? "", `${named.label} `);
  const values = categories.flatMap((it) =>
    it.values
      .filter((value) => matchesText(value, typed))
      .map((value) => ({
        key: `${it.id} ${value}`,
        label: `${it.label} is ${value}`,
        group: "Values",
        filter: filterOf(it, "is", value),
      })),
  );
  return [...found, ...values];
}

function valuesOf(category: Category, typed: string, prefix = ""): Choice[] {
  const choice = (operator: Filter["operator"], value: string): Choice => ({
    key: `${operator} ${value}`,
    label: `${prefix}${OPERATORS[operator]} ${value}`.trim(),
    filter: filterOf(category, operator, value),
  });
  const known = category.isBoolean ? ["true", "false"] : category.values;
  const values = known.filter((it) => matchesText(it, typed)).map((it) => choice("is", it));
  if (category.isBoolean) return values;
  const isKnown = known.some((it) => it.toLowerCase() === typed.toLowerCase());
  const free = typed
    ? [
        ...(isKnown ? [] : [choice("is", typed)]),
        // Users are compared as a whole.
        ...(category.id === "user" ? [] : [choice("contains", typed)]),
        choice("is_not", typed),
      ]
    : [choice("is_set", ""), choice("is_not_set", "")];
  return [...values, ...free];
}

/** A text field with a list of choices (WAI-ARIA combobox). Nothing changes until one is chosen. */

import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface Option {
  key: string;
  label: string;
  /** Shown at the right. */
  hint?: string | undefined;
  /** Heading above the first option of a group. */
  group?: string | undefined;
}

interface ComboboxProps<T extends Option> {
  label: string;
  placeholder?: string;
  options: T[];
  /** The typed text, which the owner keeps to compute the options. */
  text: string;
  onText: (text: string) => void;
  onChoose: (option: T) => void;
  /** Escape, and losing the focus. */
  onClose: () => void;
  /** Shown if there are no options. */
  empty?: string;
}

/** Maximum options rendered. Others are counted. */
const MAX_SHOWN = 50;

/** An open combobox. It has the focus from the start. */
export function Combobox<T extends Option>(props: ComboboxProps<T>) {
  const { label, placeholder, options, text, onText, onChoose, onClose, empty } = props;
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const shown = options.slice(0, MAX_SHOWN);
  const current = Math.min(active, shown.length - 1);
  useEffect(() => input.current?.focus({ preventScroll: true }), []);
  // The same field can show other choices.
  useEffect(() => setActive(0), [text, label]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, number> = {
      ArrowDown: (current + 1) % shown.length,
      ArrowUp: (current - 1 + shown.length) % shown.length,
      PageDown: Math.min(current + 8, shown.length - 1),
      PageUp: Math.max(current - 8, 0),
    };
    const next = moves[event.key];
    const option = shown[current];
    if (next !== undefined) setActive(next || 0);
    else if (event.key === "Enter") {
      if (option) onChoose(option);
    } else if (event.key === "Escape") onClose();
    else return;
    event.preventDefault();
    // Escape must not zoom out or close a dialog as well.
    event.stopPropagation();
  };
  return (
    <div
      class="combobox"
      onFocusOut={(event) => {
        const to = event.relatedTarget;
        if (!(to instanceof Node) || !event.currentTarget.contains(to)) onClose();
      }}
    >
      <input
        ref={input}
        role="combobox"
        aria-label={label}
        aria-expanded={shown.length > 0}
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={shown[current] ? `${id}${current}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div
        ref={list}
        id={`${id}list`}
        role="listbox"
        aria-label={label}
        hidden={shown.length === 0}
        // Keeps the focus in the field.
        onMouseDown={(event) => event.preventDefault()}
      >
        {shown.map((it, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the field has the focus and handles the keys.
          <div
            key={it.key}
            id={`${id}${index}`}
            role="option"
            aria-selected={index === current}
            data-group={it.group !== shown[index - 1]?.group ? it.group : undefined}
            onClick={() => onChoose(it)}
          >
            <bdi>{it.label}</bdi>
            {it.hint && <small>{it.hint}</small>}
          </div>
        ))}
      </div>
      {shown.length === 0 && (
        <p class="quiet small" role="status">
          {empty ?? "Nothing matches."}
        </p>
      )}
      {options.length > MAX_SHOWN && (
        <p class="quiet small">{options.length - MAX_SHOWN} more; type to filter</p>
      )}
    </div>
  );
}

/** `true` if the text contains each typed word. */
export function matchesText(text: string, typed: string): boolean {
  const words = text.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((it) => words.includes(it));
}

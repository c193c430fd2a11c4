/** A button with a field above the page, in which the user picks something. */

import type { ComponentChildren, RefObject } from "preact";
import { useRef, useState } from "preact/hooks";

interface PickerProps {
  text: string;
  class?: string;
  title?: string;
  /** Gets the button, for owners that focus it. */
  button?: RefObject<HTMLButtonElement | null>;
  /** The field; `close` hides it. */
  children: (close: () => void) => ComponentChildren;
}

export function Picker({ text, children, ...rest }: PickerProps) {
  const [isOpen, setOpen] = useState(false);
  const own = useRef<HTMLButtonElement>(null);
  const { button = own, ...attributes } = rest;
  const close = () => {
    setOpen(false);
    // Unless the user moved the focus elsewhere.
    setTimeout(() => document.activeElement === document.body && button.current?.focus());
  };
  return (
    <span class="add-chip">
      <button
        {...attributes}
        ref={button}
        type="button"
        aria-expanded={isOpen}
        aria-haspopup="listbox"
        onClick={() => setOpen(true)}
      >
        {text}
      </button>
      {isOpen && <span class="picker">{children(close)}</span>}
    </span>
  );
}

/** A question before what cannot be undone. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // What had the focus gets it back, once nothing modal is in the way.
      setTimeout(() => {
        const isFree = document.activeElement === document.body;
        if (isFree && before instanceof HTMLElement && before.isConnected) before.focus();
      });
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  action: string;
  cancel?: string;
  children: ComponentChildren;
  onClose: () => void;
  onConfirm: () => void;
}

export function Confirm({
  title,
  action,
  cancel = "Cancel",
  children,
  onClose,
  onConfirm,
}: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <div class="actions">
        <button type="button" onClick={onClose}>
          {cancel}
        </button>
        <button
          type="button"
          class="danger"
          // The second click of a double click was meant for what asked.
          onClick={(event) => event.detail > 1 || onConfirm()}
        >
          {action}
        </button>
      </div>
    </Dialog>
  );
}

/** Dialogs, and confirmations of actions that cannot be undone. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./button";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const previous = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // Restores the focus, unless another dialog or element took it.
      setTimeout(() => {
        const isFree = document.activeElement === document.body;
        if (isFree && previous instanceof HTMLElement && previous.isConnected) previous.focus();
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
        <Button onClick={onClose}>{cancel}</Button>
        <Button
          class="danger"
          // Ignores the second click of a double click on the button that opened the dialog.
          onClick={(event) => event.detail > 1 || onConfirm()}
        >
          {action}
        </Button>
      </div>
    </Dialog>
  );
}

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
  const gone = useRef(false);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Closed before it goes, it gives the focus back to what had it.
    return () => {
      gone.current = true;
      shown?.close();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={() => !gone.current && onClose()}>
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  action: string;
  children: ComponentChildren;
  onClose: () => void;
  onConfirm: () => void;
}

export function Confirm({ title, action, children, onClose, onConfirm }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={onConfirm}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}

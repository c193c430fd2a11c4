/** Forms: sending, busy state, and errors below their fields. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { Dialog } from "./confirm";
import { ErrorMessage, errorProps, FieldError, formError, useFocusFirstError } from "./states";
import { showErrorToast } from "./toast";

/** Sends a form with `send`. Errors of the API show in the form, others as toasts. */
export function useForm(send: () => Promise<unknown>) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  // A field that the user fixes must not lose the focus to the next error.
  const [failure, setFailure] = useState<unknown>(null);
  const ref = useFocusFirstError(error && failure);
  const onSubmit = async (event?: Event) => {
    event?.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await send();
    } catch (failed) {
      setFailure(failed);
      if (failed instanceof ApiError) setError(formError(failed));
      else showErrorToast(failed);
    } finally {
      setBusy(false);
    }
  };
  /** Removes the error of a field that the user changes. */
  const touch = (at: string) => setError((was) => was?.without((it) => it === at) ?? null);
  return { busy, error, touch, submit: onSubmit, props: { ref, onSubmit, noValidate: true } };
}

export type Form = ReturnType<typeof useForm>;

interface FieldProps {
  label: ComponentChildren;
  /** JSON pointer of the field in the request. */
  at: string;
  form: Form;
  /** Replaces the API's message. */
  message?: string;
  value: string;
  onInput: (value: string) => void;
  id?: string;
  type?: "text" | "email" | "datetime-local";
  placeholder?: string;
  maxLength?: number;
  autocomplete?: "off";
  spellcheck?: boolean;
  autofocus?: boolean;
  /** A hint below the field. */
  children?: ComponentChildren;
}

/** A labeled text field with its error. */
export function Field(props: FieldProps) {
  const { label, at, form, message, onInput, children, type = "text", ...input } = props;
  const id = input.id ?? `field${at.replaceAll("/", "-")}`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...input}
        // The types of attributes differ by the type of the field, which all have these.
        type={type as "text"}
        id={id}
        {...errorProps(form.error, at)}
        onInput={(event) => {
          form.touch(at);
          onInput(event.currentTarget.value);
        }}
      />
      <FieldError error={form.error} at={at} message={message} />
      {children}
    </div>
  );
}

/** The error that belongs to no field. */
export function FormError({ form: { error } }: { form: Form }) {
  return error && error.violations.length === 0 ? <ErrorMessage error={error} /> : null;
}

interface FormDialogProps {
  title: string;
  /** The text of the button that sends the form. */
  action: string;
  isDangerous?: boolean;
  disabled?: boolean;
  form: Form;
  onClose: () => void;
  children: ComponentChildren;
}

/** A form in a dialog. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, isDangerous = false, disabled = false, form, onClose, children } = props;
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" {...form.props}>
        {children}
        <FormError form={form} />
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={isDangerous ? "danger" : "primary"}
            disabled={form.busy || disabled}
          >
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

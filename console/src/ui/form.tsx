/** Forms: sending, busy state, and errors below their fields. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { Button } from "./button";
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
  form: Pick<Form, "error" | "touch">;
  /** Replaces the API's message. */
  message?: string;
  value: string;
  onInput: (value: string) => void;
  /** Makes the field a text area of this many lines. */
  rows?: number;
  id?: string;
  class?: string;
  type?: "text" | "email" | "datetime-local";
  placeholder?: string;
  maxLength?: number;
  autocomplete?: "off" | "email";
  spellcheck?: boolean;
  autofocus?: boolean;
  disabled?: boolean;
  /** A hint below the field. */
  children?: ComponentChildren;
}

/** A labeled text field with its error. */
export function Field(props: FieldProps) {
  const { label, at, form, message, onInput, children, type, rows, class: more, ...rest } = props;
  const field = {
    ...rest,
    id: rest.id ?? `field${at.replaceAll("/", "-")}`,
    ...errorProps(form.error, at),
    onInput: (event: { currentTarget: { value: string } }) => {
      form.touch(at);
      onInput(event.currentTarget.value);
    },
  };
  return (
    <div class={`field ${more ?? ""}`}>
      <label for={field.id}>{label}</label>
      {/* The types of attributes differ by the type of the field, which all have these. */}
      {rows ? <textarea {...field} rows={rows} /> : <input {...field} type={type as "text"} />}
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
          <Button onClick={onClose}>Cancel</Button>
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

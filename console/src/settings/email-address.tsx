/** The user's email address, which takes effect when it is confirmed. */

import { useState } from "preact/hooks";
import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Button } from "../ui/button";
import { FormError, useForm } from "../ui/form";
import { Pairs } from "../ui/layout";
import { errorProps, FieldError, Pending } from "../ui/states";
import { showToast } from "../ui/toast";

type Address = Schemas["EmailAddress"];

export function EmailAddress() {
  const { caller } = useCurrentProject();
  if (caller.email) {
    return (
      <p class="quiet nothing">
        Email goes to the address that you sign in with: <bdi>{caller.email}</bdi>.
      </p>
    );
  }
  return <AddressOfKey keyId={caller.keyId} />;
}

function AddressOfKey({ keyId }: { keyId: string | null }) {
  const can = useCan();
  const canRead = can("notifications:read");
  const loaded = useLoaded(canRead ? `address ${keyId}` : null, (signal) =>
    api.GET("/v0/notifications/email-address", { signal }),
  );
  if (canRead && (loaded.error || !loaded.data)) return <Pending small of={loaded} rows={1} />;
  return (
    <div class="address form">
      {loaded.data && <Addresses address={loaded.data} reload={loaded.reload} />}
      {can("notifications:write") ? (
        <AddressForm
          address={loaded.data}
          onSaved={(address) => {
            loaded.set(() => address);
            showToast(
              address.pendingEmail
                ? `Sending a confirmation link to ${address.pendingEmail}.`
                : "Saved.",
            );
          }}
        />
      ) : (
        <p class="quiet small">
          Changing it requires the scope <code>notifications:write</code>.
        </p>
      )}
    </div>
  );
}

interface AddressFormProps {
  /** `undefined` for a key that can set the address but not read it. */
  address: Address | undefined;
  onSaved: (address: Address) => void;
}

function AddressForm({ address, onSaved }: AddressFormProps) {
  const [email, setEmail] = useState("");
  const save = async (newEmail: string) => {
    const body = { email: newEmail };
    onSaved(await api.PUT("/v0/notifications/email-address", { body }));
    setEmail("");
  };
  const form = useForm(() => save(email.trim()));
  const pending = address?.pendingEmail;
  const resend = useForm(() => save(pending ?? ""));
  return (
    <form {...form.props}>
      <label class="field" for="email">
        {address?.email || pending ? "Change address" : "Your address"}
      </label>
      <div class="form-row">
        <input
          id="email"
          class="grow"
          type="email"
          autocomplete="email"
          placeholder="you@example.com"
          value={email}
          aria-describedby="email-help"
          {...errorProps(form.error, "/email")}
          onInput={(event) => {
            form.touch("/email");
            setEmail(event.currentTarget.value);
          }}
        />
        <button type="submit" disabled={form.busy}>
          Save
        </button>
        {pending && (
          <Button disabled={resend.busy} onClick={() => void resend.submit()}>
            Resend
          </Button>
        )}
      </div>
      <FieldError error={form.error} at="/email" />
      <p class="quiet small" id="email-help">
        You get a confirmation link within a minute. Open it within 24 hours to confirm.
        {address?.email && " Until then, email goes to your previous address."}
      </p>
      <FormError form={form} />
      <FormError form={resend} />
    </form>
  );
}

function Addresses({ address, reload }: { address: Address; reload: () => void }) {
  const { email, pendingEmail } = address;
  if (!email && !pendingEmail) {
    return <p class="quiet">No address yet. You won’t get email.</p>;
  }
  return (
    <div role="status">
      <Pairs
        rows={[
          [
            email && "Current address",
            <>
              <bdi>{email}</bdi> <span class="status resolved">confirmed</span>
            </>,
          ],
          [
            pendingEmail && "Awaiting confirmation",
            <>
              <bdi>{pendingEmail}</bdi> <span class="status pending">not confirmed</span>{" "}
              <Button class="link small" onClick={reload}>
                Check again
              </Button>
            </>,
          ],
        ]}
      />
    </div>
  );
}

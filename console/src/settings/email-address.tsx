/** Where one's mail goes: an address that counts once it is confirmed. */

import { useState } from "preact/hooks";
import { ApiError, api, type Schemas, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { FieldFault, Refused, SkeletonRows } from "../ui/states";
import { showErrorToast, showToast } from "../ui/toast";

type Told = Schemas["EmailAddress"];

export function EmailAddress() {
  const { caller } = useCurrentProject();
  const can = useCan();
  const mayRead = can("notifications:read");
  const loaded = useLoaded(mayRead ? `address ${caller.keyId}` : null, (signal) =>
    unwrapResponse(api.GET("/v0/notifications/email-address", { signal })),
  );
  if (mayRead && loaded.error)
    return <Refused small refusal={loaded.error} retry={loaded.reload} />;
  if (mayRead && !loaded.data) return <SkeletonRows rows={1} />;
  return (
    <div class="address form">
      {loaded.data && <Addresses told={loaded.data} reload={loaded.reload} />}
      {can("notifications:write") ? (
        <SetAddress
          told={loaded.data}
          onSet={(told) => {
            loaded.set(() => told);
            showToast(
              told.pendingEmail ? `A mail is on its way to ${told.pendingEmail}.` : "It is set.",
            );
          }}
        />
      ) : (
        <p class="quiet small">
          To set it, a key needs the scope <code>notifications:write</code>.
        </p>
      )}
    </div>
  );
}

interface SetAddressProps {
  /** `undefined` for a key that may set an address and not see it. */
  told: Told | undefined;
  onSet: (told: Told) => void;
}

function SetAddress({ told, onSet }: SetAddressProps) {
  const [email, setEmail] = useState("");
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const put = async (address: string) => {
    setBusy(true);
    setRefusal(null);
    try {
      onSet(
        await unwrapResponse(
          api.PUT("/v0/notifications/email-address", { body: { email: address } }),
        ),
      );
      setEmail("");
    } catch (error) {
      if (error instanceof ApiError) setRefusal(error);
      else showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };
  const pending = told?.pendingEmail;
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void put(email.trim());
      }}
    >
      <label class="field" for="email">
        {told?.email || pending ? "Send it elsewhere" : "Your address"}
      </label>
      <div class="form-row">
        <input
          id="email"
          class="grow"
          type="email"
          autocomplete="email"
          placeholder="you@example.com"
          value={email}
          aria-invalid={Boolean(refusal?.at("/email"))}
          aria-describedby="email-help"
          onInput={(event) => setEmail(event.currentTarget.value)}
        />
        <button type="submit" disabled={busy}>
          Set the address
        </button>
        {pending && (
          <button type="button" disabled={busy} onClick={() => void put(pending)}>
            Send the mail again
          </button>
        )}
      </div>
      <FieldFault refusal={refusal} at="/email" />
      <p class="quiet small" id="email-help">
        A mail with a link goes there within a minute. The address counts once the link was opened,
        within 24 hours; until then mail goes to the address before it, if there is one.
      </p>
      {refusal && refusal.violations.length === 0 && <Refused refusal={refusal} />}
    </form>
  );
}

function Addresses({ told, reload }: { told: Told; reload: () => void }) {
  const { email, pendingEmail } = told;
  if (!email && !pendingEmail) {
    return <p class="quiet">No address is set, so no mail is sent.</p>;
  }
  return (
    <table class="pairs" role="status">
      <tbody>
        {email && (
          <tr>
            <th scope="row">Mail goes to</th>
            <td>
              <bdi>{email}</bdi> <span class="status resolved">confirmed</span>
            </td>
          </tr>
        )}
        {pendingEmail && (
          <tr>
            <th scope="row">Waits for you</th>
            <td>
              <bdi>{pendingEmail}</bdi> <span class="status pending">not confirmed yet</span>{" "}
              <button type="button" class="link small" onClick={reload}>
                Look again
              </button>
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

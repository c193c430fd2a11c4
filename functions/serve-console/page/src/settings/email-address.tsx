/** Where one's mail goes: an address that counts once it is confirmed. */

import { useState } from "preact/hooks";
import { answered, api, Refusal, type Schemas } from "../api/client";
import { useHere } from "../caller";
import { FieldFault, Refused } from "../ui/states";
import { tellRefusal } from "../ui/toast";

type Told = Schemas["EmailAddress"];

/** What was answered last, for each key: the API tells an address only to whoever sets it. */
const answers = new Map<string, Told>();

export function EmailAddress() {
  const { caller } = useHere();
  const [told, setTold] = useState(answers.get(caller.keyId));
  const [email, setEmail] = useState("");
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  const put = async (address: string) => {
    setBusy(true);
    setRefusal(null);
    try {
      const answer = await answered(
        api.PUT("/v0/notifications/email-address", { body: { email: address } }),
      );
      answers.set(caller.keyId, answer);
      setTold(answer);
      setEmail("");
    } catch (error) {
      if (error instanceof Refusal) setRefusal(error);
      else tellRefusal(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="form address"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void put(email.trim());
      }}
    >
      {told && <Addresses told={told} busy={busy} onAgain={put} />}
      <div>
        <label class="field" for="email">
          {told?.email ? "Send it elsewhere" : "Your address"}
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
        </div>
        <FieldFault refusal={refusal} at="/email" />
        <p class="quiet small" id="email-help">
          A mail with a link goes there within a minute. The address counts once the link was
          opened, which it can be for 24 hours; until then mail goes to the address before it, if
          there is one.
        </p>
      </div>
      {refusal && refusal.violations.length === 0 && <Refused refusal={refusal} />}
    </form>
  );
}

interface AddressesProps {
  told: Told;
  busy: boolean;
  onAgain: (email: string) => Promise<void>;
}

function Addresses({ told: { email, pendingEmail }, busy, onAgain }: AddressesProps) {
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
              <bdi>{pendingEmail}</bdi> <span class="status pending">not confirmed yet</span>
              <br />
              <button
                type="button"
                class="link small"
                disabled={busy}
                onClick={() => void onAgain(pendingEmail)}
              >
                Look again, which sends another mail if it still waits
              </button>
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

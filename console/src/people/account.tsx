/** The account in the sidebar: the user, the organizations, and signing out. */

import { useState } from "preact/hooks";
import { go, hrefOf } from "../address";
import { ApiError, api } from "../api/client";
import { type CallerInfo, useCaller } from "../caller";
import { followSession, isSession, signOut, switchSession } from "../session";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/confirm";
import { Icon } from "../ui/icons";
import { useMenu } from "../ui/menu";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { roleName } from "./roles";

export async function switchOrganization(organization: string): Promise<void> {
  try {
    const caller = await api.PUT("/v0/session", { body: { organization } });
    go(hrefOf(""));
    switchSession(caller);
    showToast(`You’re now in ${organization}.`);
  } catch (error) {
    showErrorToast(error);
  }
}

/** Ends the session, or drops the key. `everywhere` ends the user's sessions in all browsers. */
export async function endSession(everywhere = false): Promise<void> {
  if (!isSession()) return signOut();
  try {
    await api.POST("/v0/sign-out", { body: { everywhere } });
    signOut();
  } catch (error) {
    // A session that has ended is signed out.
    if (error instanceof ApiError && error.status === 401) signOut();
    else showErrorToast(error);
  }
}

export function Account({ caller }: { caller: CallerInfo | undefined }) {
  const { box, close, onKeyDown } = useMenu();
  const [isLeaving, setLeaving] = useState(false);
  if (!caller) return null;
  const name = caller.email ?? caller.user ?? "API key";
  const others = (caller.organizations ?? []).filter((it) => it !== caller.organization);
  return (
    <>
      <details class="menu account" ref={box} onKeyDown={onKeyDown}>
        <summary title={`${name}\n${caller.organization}`} aria-label={`Account: ${name}`}>
          <Icon name="account" />
          <span>
            <bdi>{name}</bdi>
          </span>
        </summary>
        <div class="popover account-menu">
          <p>
            <b>
              <bdi>{name}</bdi>
            </b>
            <small>
              {caller.role ? `${roleName(caller.role)} of ` : "Key of "}
              <bdi>{caller.organization}</bdi>
            </small>
          </p>
          {others.length > 0 && (
            <div>
              <h3 id="organizations">Switch organization</h3>
              <ul aria-labelledby="organizations">
                {others.map((it) => (
                  <li key={it}>
                    <Button
                      class="bare"
                      onClick={() => {
                        close();
                        void switchOrganization(it);
                      }}
                    >
                      <bdi>{it}</bdi>
                    </Button>
                  </li>
                ))}
              </ul>
            </div>
          )}
          <ul>
            <li>
              <Button class="bare" onClick={() => void endSession()}>
                Sign out
              </Button>
            </li>
            {isSession() && (
              <li>
                <Button
                  class="bare"
                  onClick={() => {
                    close();
                    setLeaving(true);
                  }}
                >
                  Sign out everywhere…
                </Button>
              </li>
            )}
          </ul>
        </div>
      </details>
      {isLeaving && <SignOutEverywhere onClose={() => setLeaving(false)} />}
    </>
  );
}

export function SignOutEverywhere({ onClose }: { onClose: () => void }) {
  return (
    <Confirm
      title="Sign out everywhere?"
      action="Sign out everywhere"
      onClose={onClose}
      onConfirm={() => {
        onClose();
        void endSession(true);
      }}
    >
      <p>
        This ends your sessions in all browsers, including this one. Your API keys keep working;
        revoke those separately.
      </p>
    </Confirm>
  );
}

/** Invitations to other organizations, above each page until the user accepts or hides them. */
export function Invitations() {
  const { caller, reload } = useCaller();
  const [hidden, setHidden] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const invitations = (caller.invitations ?? []).filter((it) => !hidden.includes(it.id));
  const accept = async (id: string) => {
    setBusy(true);
    try {
      const params = { path: { invitationId: id } };
      const accepted = await api.POST("/v0/invitations/{invitationId}/accept", { params });
      go(hrefOf(""));
      switchSession(accepted);
      showToast(`You joined ${accepted.organization}.`);
    } catch (error) {
      showErrorToast(error);
      reload();
    } finally {
      setBusy(false);
    }
  };
  if (invitations.length === 0) return null;
  return (
    <ul class="invitations" aria-label="Invitations">
      {invitations.map((it) => (
        <li key={it.id}>
          <p>
            <bdi>{it.invitedBy}</bdi> invited you to{" "}
            <b>
              <bdi>{it.organization}</bdi>
            </b>{" "}
            as {roleName(it.role).toLowerCase()}.{" "}
            <span class="quiet">
              Expires <RelativeTime at={it.expiresAt} />.
            </span>
          </p>
          <div>
            <Button class="primary" disabled={busy} onClick={() => void accept(it.id)}>
              Accept
            </Button>
            <Button class="link" onClick={() => setHidden([...hidden, it.id])}>
              Not now
            </Button>
          </div>
        </li>
      ))}
    </ul>
  );
}

/** Blocks a tab that shows another organization than the session, which another tab switched. */
export function SwitchedElsewhere({ organization }: { organization: string }) {
  return (
    <Dialog title={`This browser is now in ${organization}`} onClose={followSession}>
      <p>Another tab switched the session. This tab still shows the previous organization.</p>
      <div class="actions">
        <Button class="primary" onClick={followSession}>
          Open {organization}
        </Button>
      </div>
    </Dialog>
  );
}

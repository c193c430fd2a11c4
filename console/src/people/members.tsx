/** Members of the organization, and invitations to it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type ApiError, api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { loadPages } from "../api/pages";
import { useCaller, useCan } from "../caller";
import { pluralize } from "../time/format";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Field, FormDialog, useForm } from "../ui/form";
import { ErrorMessage, FieldError, Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { endSession } from "./account";
import { ProjectChoice, type ProjectIds, useProjectNames } from "./project-choice";
import { grantable, hasAllProjects, ROLES, type Role, roleName } from "./roles";
import { SettingsTabs } from "./tabs";

type Member = Schemas["Member"];
type Invitation = Schemas["Invitation"];
type Shown =
  | { type: "invite" }
  | { type: "edit" | "remove"; member: Member }
  | { type: "revoke"; invitation: Invitation };

export function MembersPage() {
  const { caller, reload: reloadCaller } = useCaller();
  const canWrite = useCan()("members:write");
  const [shown, show] = useState<Shown | null>(null);
  const members = useLoaded(`members ${caller.organization}`, (signal) =>
    loadPages((query) => api.GET("/v0/members", { params: { query }, signal })),
  );
  const invitations = useLoaded(`invitations ${caller.organization}`, (signal) =>
    loadPages((query) => api.GET("/v0/invitations", { params: { query }, signal })),
  );
  const namesOf = useProjectNames();
  const close = () => show(null);
  const isMe = (member: Member) => member.email === caller.email;

  const save = async (member: Member, patch: Schemas["MemberPatch"]) => {
    const params = { path: { memberId: member.id } };
    const saved = await api.PATCH("/v0/members/{memberId}", { params, body: patch });
    members.set((was) => ({
      ...was,
      items: was.items.map((it) => (it.id === saved.id ? saved : it)),
    }));
    if (isMe(member)) reloadCaller();
  };
  const remove = async (member: Member) => {
    close();
    try {
      const params = { path: { memberId: member.id } };
      await api.DELETE("/v0/members/{memberId}", { params });
      if (isMe(member)) return await endSession();
      members.set((was) => ({ ...was, items: was.items.filter((it) => it.id !== member.id) }));
      showToast(`Removed ${member.email}.`);
    } catch (error) {
      showErrorToast(error);
      members.reload();
    }
  };
  const revoke = async (invitation: Invitation) => {
    close();
    try {
      const params = { path: { invitationId: invitation.id } };
      await api.DELETE("/v0/invitations/{invitationId}", { params });
      showToast(`Revoked the invitation to ${invitation.email}.`);
    } catch (error) {
      showErrorToast(error);
    }
    invitations.reload();
  };

  return (
    <>
      <div class="page-head">
        <h1>Members</h1>
        {canWrite && (
          <Button class="primary" onClick={() => show({ type: "invite" })}>
            Invite
          </Button>
        )}
      </div>
      <SettingsTabs page="members" />
      <Pending of={members} rows={4} />
      {members.data && (
        <PeopleTable
          title={pluralize(members.data.items.length, "member")}
          time="Last seen"
          canWrite={canWrite}
        >
          {members.data.items.map((it) => (
            <tr key={it.id}>
              <td title={it.email}>
                <bdi>{it.email}</bdi> {isMe(it) && <span class="quiet">(you)</span>}
              </td>
              <td>{roleName(it.role)}</td>
              <td class="wide quiet">{namesOf(it.projects)}</td>
              <td class="wide number quiet">
                {it.lastSeenAt ? <RelativeTime at={it.lastSeenAt} /> : "Never"}
              </td>
              {canWrite && (
                <td class="row-actions">
                  {grantable(caller).some(({ role }) => role === it.role) && (
                    <>
                      <Button
                        class="link"
                        aria-label={`Edit ${it.email}`}
                        onClick={() => show({ type: "edit", member: it })}
                      >
                        Edit
                      </Button>
                      <Button
                        class="link danger"
                        aria-label={`${isMe(it) ? "Leave" : "Remove"} ${it.email}`}
                        onClick={() => show({ type: "remove", member: it })}
                      >
                        {isMe(it) ? "Leave" : "Remove"}
                      </Button>
                    </>
                  )}
                </td>
              )}
            </tr>
          ))}
        </PeopleTable>
      )}
      {members.data?.nextCursor && <p class="quiet nothing">Showing the first 1,000.</p>}
      {invitations.error && <ErrorMessage error={invitations.error} retry={invitations.reload} />}
      {invitations.data && invitations.data.items.length > 0 && (
        <PeopleTable
          title={pluralize(invitations.data.items.length, "open invitation")}
          time="Expires"
          canWrite={canWrite}
        >
          {invitations.data.items.map((it) => (
            <tr key={it.id}>
              <td title={it.email}>
                <bdi>{it.email}</bdi>
                <small>
                  Invited by <bdi>{it.invitedBy}</bdi>
                </small>
              </td>
              <td>{roleName(it.role)}</td>
              <td class="wide quiet">{namesOf(it.projects)}</td>
              <td class="wide number quiet">
                <RelativeTime at={it.expiresAt} />
              </td>
              {canWrite && (
                <td class="row-actions">
                  {grantable(caller).some(({ role }) => role === it.role) && (
                    <Button
                      class="link danger"
                      aria-label={`Revoke the invitation to ${it.email}`}
                      onClick={() => show({ type: "revoke", invitation: it })}
                    >
                      Revoke
                    </Button>
                  )}
                </td>
              )}
            </tr>
          ))}
        </PeopleTable>
      )}
      {shown?.type === "invite" && (
        <InviteDialog
          onClose={close}
          onInvited={(invitation) => {
            close();
            showToast(`Invited ${invitation.email}. The link works for 7 days.`);
            invitations.reload();
          }}
        />
      )}
      {shown?.type === "edit" && (
        <EditDialog
          member={shown.member}
          isMe={isMe(shown.member)}
          onClose={close}
          onSave={(patch) => save(shown.member, patch)}
        />
      )}
      {shown?.type === "remove" && (
        <Confirm
          title={isMe(shown.member) ? `Leave ${caller.organization}?` : "Remove this member?"}
          action={isMe(shown.member) ? "Leave" : "Remove"}
          onClose={close}
          onConfirm={() => void remove(shown.member)}
        >
          <p>
            Within 60 seconds, <bdi>{shown.member.email}</bdi> is signed out of{" "}
            {caller.organization}, and API keys that they created stop working.
          </p>
          <p>Flags, insights and other work stay. They can be invited again; their keys cannot.</p>
        </Confirm>
      )}
      {shown?.type === "revoke" && (
        <Confirm
          title="Revoke this invitation?"
          action="Revoke"
          onClose={close}
          onConfirm={() => void revoke(shown.invitation)}
        >
          <p>
            The link that <bdi>{shown.invitation.email}</bdi> received stops working.
          </p>
        </Confirm>
      )}
    </>
  );
}

interface PeopleTableProps {
  title: string;
  /** Name of the column with a time. */
  time: string;
  canWrite: boolean;
  children: ComponentChildren;
}

function PeopleTable({ title, time, canWrite, children }: PeopleTableProps) {
  return (
    <div class="table-scroll people">
      <table class="table people-table">
        <colgroup>
          <col />
          <col class="of-role" />
          <col class="wide" style={{ width: "22%" }} />
          <col class="wide of-time" />
          {canWrite && <col class="of-actions" />}
        </colgroup>
        <thead>
          <tr>
            <th>{title}</th>
            <th>Role</th>
            <th class="wide">Projects</th>
            <th class="wide number">{time}</th>
            {canWrite && (
              <th>
                <span class="hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

interface RoleChoiceProps {
  role: Role;
  onChange: (role: Role) => void;
  error: ApiError | null;
}

function RoleChoice({ role, onChange, error }: RoleChoiceProps) {
  const { caller } = useCaller();
  return (
    <fieldset class="choice">
      <legend>Role</legend>
      {grantable(caller).map((it) => (
        <label class="check" key={it.role}>
          <input
            type="radio"
            name="role"
            checked={role === it.role}
            onChange={() => onChange(it.role)}
          />
          <span>
            {it.name} <small>{it.description}</small>
          </span>
        </label>
      ))}
      <FieldError error={error} at="/role" />
    </fieldset>
  );
}

const fixedProjects = (role: Role) =>
  hasAllProjects(role) ? `${roleName(role)}s always have all projects.` : null;

interface InviteDialogProps {
  onClose: () => void;
  onInvited: (invitation: Invitation) => void;
}

function InviteDialog({ onClose, onInvited }: InviteDialogProps) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("member");
  const [projects, setProjects] = useState<ProjectIds>(null);
  const form = useForm(async () => {
    const chosen = hasAllProjects(role) ? null : projects;
    const body = { email: email.trim(), role, projects: chosen };
    onInvited(await api.POST("/v0/invitations", { body }));
  });
  return (
    <FormDialog title="Invite a member" action="Send invitation" form={form} onClose={onClose}>
      <Field
        label="Email address"
        at="/email"
        form={form}
        type="email"
        autocomplete="off"
        value={email}
        onInput={setEmail}
      />
      <RoleChoice role={role} onChange={setRole} error={form.error} />
      <ProjectChoice
        chosen={projects}
        onChange={setProjects}
        error={form.error}
        fixed={fixedProjects(role)}
      />
    </FormDialog>
  );
}

interface EditDialogProps {
  member: Member;
  isMe: boolean;
  onClose: () => void;
  onSave: (patch: Schemas["MemberPatch"]) => Promise<void>;
}

function EditDialog({ member, isMe, onClose, onSave }: EditDialogProps) {
  const [role, setRole] = useState(member.role);
  const [projects, setProjects] = useState<ProjectIds>(member.projects);
  const rank = (it: Role) => ROLES.findIndex((one) => one.role === it);
  const isDemotion = isMe && rank(role) < rank(member.role);
  const form = useForm(async () => {
    await onSave({ role, projects: hasAllProjects(role) ? null : projects });
    onClose();
    // Members who lowered their own role cannot raise it again.
    showToast(
      `${member.email} is now ${roleName(role).toLowerCase()}.`,
      isDemotion ? undefined : () => onSave({ role: member.role, projects: member.projects }),
    );
  });
  return (
    <FormDialog title={member.email} action="Save" form={form} onClose={onClose}>
      <RoleChoice role={role} onChange={setRole} error={form.error} />
      <ProjectChoice
        chosen={projects}
        onChange={setProjects}
        error={form.error}
        fixed={fixedProjects(role)}
      />
      {isDemotion && (
        <p class="warning">
          You lower your own role. Only another {roleName(member.role).toLowerCase()} can raise it
          again.
        </p>
      )}
    </FormDialog>
  );
}

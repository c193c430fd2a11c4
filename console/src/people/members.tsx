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
import { ACTIONS, PlainTable } from "../ui/table";
import { TimeOrNever } from "../ui/time";
import { showToast, useAction } from "../ui/toast";
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
  const [, run] = useAction();
  const remove = async (member: Member) => {
    close();
    try {
      await api.DELETE("/v0/members/{memberId}", { params: { path: { memberId: member.id } } });
    } catch (error) {
      members.reload();
      throw error;
    }
    if (isMe(member)) return await endSession();
    members.set((was) => ({ ...was, items: was.items.filter((it) => it.id !== member.id) }));
    showToast(`Removed ${member.email}.`);
  };
  const revoke = async ({ id, email }: Invitation) => {
    close();
    try {
      await api.DELETE("/v0/invitations/{invitationId}", {
        params: { path: { invitationId: id } },
      });
    } finally {
      invitations.reload();
    }
    showToast(`Revoked the invitation to ${email}.`);
  };
  const canManage = (it: { role: Role }) => grantable(caller).some(({ role }) => role === it.role);
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
      <PeopleTable
        noun="member"
        items={members.data?.items}
        canWrite={canWrite}
        name={(it) => (
          <>
            <bdi>{it.email}</bdi> {isMe(it) && <span class="quiet">(you)</span>}
          </>
        )}
        time={["Last seen", (it) => it.lastSeenAt]}
        actions={(it) =>
          canManage(it) && (
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
          )
        }
      />
      {members.data?.nextCursor && <p class="quiet nothing">Showing the first 1,000.</p>}
      {invitations.error && <ErrorMessage error={invitations.error} retry={invitations.reload} />}
      <PeopleTable
        noun="open invitation"
        items={invitations.data?.items}
        canWrite={canWrite}
        name={(it) => (
          <>
            <bdi>{it.email}</bdi>
            <small>
              Invited by <bdi>{it.invitedBy}</bdi>
            </small>
          </>
        )}
        time={["Expires", (it) => it.expiresAt]}
        actions={(it) =>
          canManage(it) && (
            <Button
              class="link danger"
              aria-label={`Revoke the invitation to ${it.email}`}
              onClick={() => show({ type: "revoke", invitation: it })}
            >
              Revoke
            </Button>
          )
        }
      />
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
          onConfirm={() => void run(() => remove(shown.member))}
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
          onConfirm={() => void run(() => revoke(shown.invitation))}
        >
          <p>
            The link that <bdi>{shown.invitation.email}</bdi> received stops working.
          </p>
        </Confirm>
      )}
    </>
  );
}

interface PeopleTableProps<T> {
  noun: string;
  items: T[] | undefined;
  canWrite: boolean;
  name: (item: T) => ComponentChildren;
  /** Name and value of the column with a time. */
  time: [name: string, at: (item: T) => string | null];
  actions: (item: T) => ComponentChildren;
}

function PeopleTable<T extends Pick<Member, "id" | "role" | "projects">>(
  props: PeopleTableProps<T>,
) {
  const { noun, items, canWrite, name, time, actions } = props;
  const namesOf = useProjectNames();
  return (
    <div class="people">
      <PlainTable
        items={items}
        idOf={(it) => it.id}
        columns={[
          [pluralize(items?.length ?? 0, noun), "", name],
          ["Role", "of-role", (it) => roleName(it.role)],
          ["Projects", "wide quiet of-quarter", (it) => namesOf(it.projects)],
          [time[0], "wide number quiet of-time", (it) => <TimeOrNever at={time[1](it)} />],
          canWrite && [ACTIONS, "row-actions of-actions", actions],
        ]}
      />
    </div>
  );
}

interface AccessProps {
  role: Role;
  projects: ProjectIds;
  onRole: (role: Role) => void;
  onProjects: (projects: ProjectIds) => void;
  error: ApiError | null;
}

/** The choice of a role and of projects. */
function Access({ role, projects, onRole, onProjects, error }: AccessProps) {
  const { caller } = useCaller();
  return (
    <>
      <fieldset class="choice">
        <legend>Role</legend>
        {grantable(caller).map((it) => (
          <label class="check" key={it.role}>
            <input
              type="radio"
              name="role"
              checked={role === it.role}
              onChange={() => onRole(it.role)}
            />
            <span>
              {it.name} <small>{it.description}</small>
            </span>
          </label>
        ))}
        <FieldError error={error} at="/role" />
      </fieldset>
      <ProjectChoice
        chosen={projects}
        onChange={onProjects}
        error={error}
        fixed={hasAllProjects(role) ? `${roleName(role)}s always have all projects.` : null}
      />
    </>
  );
}

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
      <Access
        role={role}
        projects={projects}
        onRole={setRole}
        onProjects={setProjects}
        error={form.error}
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
      <Access
        role={role}
        projects={projects}
        onRole={setRole}
        onProjects={setProjects}
        error={form.error}
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

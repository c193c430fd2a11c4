import { useMemo, useState } from "preact/hooks";
import { go, hrefOf, useAddress, usePageGuard } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError, api, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { isChangedAt } from "../api/pointer";
import { useCan, useCurrentProject } from "../caller";
import { dropDraft, useDraft } from "../drafts";
import { AttributeNames } from "../flags/attributes";
import { Conflict, type EditConflict, findConflict } from "../flags/conflict";
import {
  createFlag,
  type Draft,
  describeFlag,
  describeUnevenShares,
  draftOf,
  type Flag,
  type FlagType,
  isMismatch,
  loadFlag,
  loadFlags,
  missingWeights,
  NEW_FLAG,
  patchFlag,
  patchIfUnchanged,
  patchOf,
  TYPES,
  unevenRollouts,
  versionOf,
  withIds,
} from "../flags/flag";
import { FlagText } from "../flags/flag-text";
import { History } from "../flags/history-list";
import { PrerequisitesEditor, TargetsEditor, VariantsEditor } from "../flags/lists-editor";
import { RulesEditor } from "../flags/rules-editor";
import { NO_WEIGHT, ServeEditor, VariantSelect } from "../flags/serve-editor";
import { FlagSwitch } from "../flags/switch";
import { Tester } from "../flags/tester";
import { createUndo } from "../flags/undo";
import { loadSegments, type Segment } from "../segments/segment";
import { keptParams } from "../time/range";
import { Confirm } from "../ui/confirm";
import { Back, DetailPage } from "../ui/detail-page";
import { useIsSettled } from "../ui/settled";
import { ErrorMessage, errorProps, FieldError, formError, useFocusFirstError } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";

export function FlagPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const isNew = address.query.has("new");
  const key = address.query.get("key") ?? "";
  const loaded = useLoaded(isNew ? null : `flag ${project.id} ${key}`, (signal) =>
    loadFlag(project, key, signal),
  );
  const back = hrefOf("flags", keptParams(address));
  if (isNew) {
    return (
      <>
        <Back list="Flags" href={back} />
        <Editor flag={null} back={back} onChange={() => {}} />
      </>
    );
  }
  return (
    <DetailPage
      list="Flags"
      back={back}
      loaded={loaded}
      isCurrent={(it) => it.key === key}
      noun="Flag"
      notFoundHint={
        <>
          This project has no flag with the key <code>{key}</code>.
        </>
      }
      rows={9}
    >
      {(flag) => (
        <Editor
          key={flag.id}
          flag={flag}
          back={back}
          onChange={(changed) =>
            loaded.set((was) =>
              was.id === changed.id && was.version > changed.version ? was : changed,
            )
          }
        />
      )}
    </DetailPage>
  );
}

interface EditorProps {
  /** `null` for a new flag. */
  flag: Flag | null;
  back: string;
  onChange: (flag: Flag) => void;
}

/** An archiving or unarchiving to confirm. */
interface Archiving {
  flag: Flag;
  archived: boolean;
  /** `true` if another user's change came first. */
  isConflict: boolean;
}

const BOOLEANS = NEW_FLAG.variants;
const NO_SEGMENTS: Segment[] = [];

function Editor({ flag, back, onChange }: EditorProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const can = useCan();
  const saved = useMemo(() => (flag ? draftOf(flag) : NEW_FLAG), [flag]);
  const nameOf = (key: string) => `flag ${project.id} ${key}`;
  const edited = useDraft<Draft>(nameOf(flag?.key ?? ""), versionOf(flag), saved);
  const { draft, isChanged, set } = edited;
  const [saveConflict, setSaveConflict] = useState<EditConflict | null>(null);
  const draftConflict = edited.conflict;
  const conflict = useMemo(() => {
    if (saveConflict || !draftConflict || !flag) return saveConflict;
    const found = findConflict(draftConflict.base, draftConflict.edited, saved, flag.version);
    return { ...found, isSaveRejected: false };
  }, [saveConflict, draftConflict, saved, flag]);
  const [failure, setFailure] = useState<{ error: ApiError; sent: Draft } | null>(null);
  // An error disappears when its field changes.
  const saveError = useMemo(
    () => failure?.error.without((at) => isChangedAt(at, failure.sent, draft)) ?? null,
    [failure, draft],
  );
  const setSaveError = (error: ApiError | null) => setFailure(error && { error, sent: draft });
  const form = useFocusFirstError(failure ?? saveConflict);
  const isSettled = useIsSettled(flag?.archivedAt);
  const attempts = useAttempts();
  const guardPage = usePageGuard();
  const [busy, setBusy] = useState(false);
  /** The action to confirm. `flag` is its version after a change by another user. */
  const [confirming, setConfirming] = useState<"delete" | Archiving | null>(null);
  const flags =
    useLoaded(`flags ${project.id} false`, (signal) => loadFlags(project, false, signal)).data ??
    [];
  const segments =
    useLoaded(`segments ${project.id}`, (signal) => loadSegments(project, signal)).data ??
    NO_SEGMENTS;
  const disabled = !can("flags:write") || Boolean(flag?.archivedAt);
  const unevenShares = describeUnevenShares(draft);
  const changes = useMemo(() => patchOf(saved, draft), [saved, draft]);

  const save = async () => {
    const missing = missingWeights(draft);
    if (missing.length) {
      const violations = missing.map((pointer) => ({
        pointer,
        code: "invalid_type" as const,
        message: NO_WEIGHT,
      }));
      setSaveError(new ApiError(0, "weight", "Enter all percentages.", violations));
      return;
    }
    const uneven = unevenRollouts(draft, saved);
    if (uneven.length) {
      const violations = uneven.map((pointer) => ({
        pointer,
        code: "out_of_range" as const,
        message: "The percentages must add up to 100. Change one, or balance them.",
      }));
      setSaveError(new ApiError(0, "weight", "The percentages don’t add up to 100.", violations));
      return;
    }
    const sent = draft;
    const savedAs = (result: Flag) =>
      [
        versionOf(result),
        draftOf(result),
        (it: Draft) => ({ ...it, rules: withIds(it.rules, sent.rules, result.rules) }),
      ] as const;
    const isHere = guardPage();
    setBusy(true);
    setSaveError(null);
    setSaveConflict(null);
    try {
      if (!flag) {
        const created = await createFlag(project, sent, attempts.keyFor(sent));
        attempts.succeeded();
        edited.handOver(sent, nameOf(created.key), ...savedAs(created));
        const href = hrefOf("flag", { ...keptParams(address), key: created.key });
        const isStillHere = isHere();
        showToast(
          `Created ${created.key}. It’s off.`,
          undefined,
          isStillHere ? undefined : { href, text: "Open" },
        );
        if (isStillHere) go(href, "replace");
        return;
      }
      const changed = await patchFlag(project, flag.key, patchOf(saved, sent), flag);
      edited.accept(sent, ...savedAs(changed));
      onChange(changed);
      showToast(`Saved as version ${changed.version}.`);
    } catch (error) {
      if (!isHere()) showErrorToast(error);
      else if (flag && isMismatch(error)) await mergeChanges(flag, sent);
      else showError(error);
    } finally {
      setBusy(false);
    }
  };
  const showError = (error: unknown) =>
    error instanceof ApiError ? setSaveError(formError(error)) : showErrorToast(error);
  /** Merges the changes of another user into the form, and shows them. */
  const mergeChanges = async (known: Flag, sent: Draft) => {
    try {
      const latest = await loadFlag(project, known.key);
      const found = findConflict(edited.base, sent, draftOf(latest), latest.version);
      setSaveConflict({ ...found, isSaveRejected: true });
      onChange(latest);
    } catch (error) {
      showError(error);
    }
  };
  const archive = async (known: Flag, archived: boolean) => {
    setConfirming(null);
    setBusy(true);
    try {
      const { flag: latest, isDone } = await patchIfUnchanged(project, known, { archived });
      onChange(latest);
      if (!isDone && Boolean(latest.archivedAt) !== archived) {
        return setConfirming({ flag: latest, archived, isConflict: true });
      }
      const undo = archived
        ? createUndo(project, latest, { archived: false }, onChange)
        : undefined;
      showToast(`${archived ? "Archived" : "Unarchived"} ${latest.key}.`, undo);
    } catch (error) {
      showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };
  const remove = async () => {
    if (!flag) return;
    const isHere = guardPage();
    setConfirming(null);
    try {
      const params = { path: { idOrSlug: project.slug, key: flag.key } };
      await unwrapResponse(api.DELETE("/v0/project/{idOrSlug}/feature-flags/{key}", { params }));
      dropDraft(nameOf(flag.key));
      showToast(`Deleted ${flag.key}.`);
      if (isHere()) go(back);
    } catch (error) {
      showErrorToast(error);
    }
  };
  const chooseType = (type: FlagType) => {
    const variants = type === "boolean" ? structuredClone(BOOLEANS) : [];
    const first = variants[0]?.key ?? null;
    set({
      type,
      variants,
      offVariant: type === "boolean" ? "off" : null,
      fallthrough: { variant: first, rollout: [] },
    });
  };

  return (
    <>
      <div class="page-head">
        <div>
          <h1>
            <bdi>{flag ? flag.name : "New flag"}</bdi>
          </h1>
          {flag && (
            <p class="quiet small">
              <code>{flag.key}</code> · {flag.type} · version {flag.version},{" "}
              <RelativeTime at={flag.updatedAt} />
            </p>
          )}
        </div>
        {flag && (
          <div class="actions">
            <FlagSwitch flag={flag} onChange={onChange} />
            {can("flags:write") &&
              (flag.archivedAt ? (
                <>
                  <button
                    type="button"
                    class="danger"
                    disabled={!isSettled}
                    onClick={() => setConfirming("delete")}
                  >
                    Delete
                  </button>
                  <button
                    type="button"
                    disabled={busy || !isSettled}
                    onClick={() => void archive(flag, false)}
                  >
                    Unarchive
                  </button>
                </>
              ) : (
                <button
                  type="button"
                  disabled={busy || !isSettled}
                  onClick={() =>
                    flag.enabled
                      ? setConfirming({ flag, archived: true, isConflict: false })
                      : void archive(flag, true)
                  }
                >
                  Archive
                </button>
              ))}
          </div>
        )}
      </div>
      <div class="editor">
        <div>
          {disabled && flag && <FlagText flag={flag} segments={segments} />}
          <form
            ref={form}
            hidden={disabled}
            onSubmit={(event) => {
              event.preventDefault();
              void save();
            }}
          >
            <div class="form part">
              <div class="form-row">
                {!flag && (
                  <label class="field grow">
                    Key
                    <input
                      value={draft.key}
                      placeholder="new-checkout"
                      spellcheck={false}
                      autocomplete="off"
                      autofocus
                      {...errorProps(saveError, "/key")}
                      onInput={(event) => set({ key: event.currentTarget.value })}
                    />
                    <FieldError error={saveError} at="/key" />
                  </label>
                )}
                <label class="field grow">
                  Name
                  <input
                    value={draft.name}
                    placeholder="New checkout"
                    disabled={disabled}
                    {...errorProps(saveError, "/name")}
                    onInput={(event) => set({ name: event.currentTarget.value })}
                  />
                  <FieldError error={saveError} at="/name" />
                </label>
                {!flag && (
                  <label class="field">
                    Type
                    <select
                      value={draft.type}
                      onChange={(event) => chooseType(event.currentTarget.value as FlagType)}
                    >
                      {TYPES.map((it) => (
                        <option key={it}>{it}</option>
                      ))}
                    </select>
                  </label>
                )}
              </div>
              <label class="field">
                Description
                <textarea
                  rows={2}
                  value={draft.description}
                  disabled={disabled}
                  {...errorProps(saveError, "/description")}
                  onInput={(event) => set({ description: event.currentTarget.value })}
                />
              </label>
              <FieldError error={saveError} at="/description" />
            </div>
            <VariantsEditor draft={draft} error={saveError} disabled={disabled} onChange={set} />
            <TargetsEditor draft={draft} error={saveError} disabled={disabled} onChange={set} />
            <RulesEditor
              draft={draft}
              segments={segments}
              error={saveError}
              disabled={disabled}
              onChange={(rules) => set({ rules })}
            />
            <section class="part">
              <header>
                <h2>Everyone else</h2>
              </header>
              <ServeEditor
                serve={draft.fallthrough}
                variants={draft.variants}
                pointer="/fallthrough"
                error={saveError}
                label="Everyone else gets"
                disabled={disabled}
                onChange={(fallthrough) => set({ fallthrough })}
              />
            </section>
            <section class="part">
              <header>
                <h2>When off, serve</h2>
              </header>
              <VariantSelect
                label="When off, serve"
                value={draft.offVariant ?? ""}
                variants={draft.variants}
                none="The default in code"
                disabled={disabled}
                invalid={errorProps(saveError, "/offVariant")}
                onChange={(key) => set({ offVariant: key || null })}
              />
              <FieldError error={saveError} at="/offVariant" />
            </section>
            <PrerequisitesEditor
              draft={draft}
              error={saveError}
              disabled={disabled}
              onChange={set}
              flags={flags}
            />
            {conflict && <Conflict noun="flag" conflict={conflict} isChanged={isChanged} />}
            {saveError && <ErrorMessage error={saveError} />}
            {!disabled && (isChanged || !flag) && (
              <div class="save-bar">
                <button type="submit" class="primary" disabled={busy}>
                  {!flag ? "Create flag" : conflict ? "Overwrite" : "Save"}
                </button>
                {isChanged && (
                  <button
                    type="button"
                    onClick={() => {
                      edited.discard();
                      setSaveError(null);
                      setSaveConflict(null);
                    }}
                  >
                    Discard
                  </button>
                )}
                {edited.isRestored && isChanged && (
                  <span class="small">Unsaved draft restored.</span>
                )}
                {unevenShares.map((it) => (
                  <span class="field-error" key={it}>
                    {it}
                  </span>
                ))}
                <span class="quiet small">When on: {describeFlag(draft)}.</span>
              </div>
            )}
          </form>
          {flag && <History key={flag.id} flag={flag} onChange={onChange} />}
        </div>
        <aside>
          {flag && <Tester key={flag.id} flag={flag} draft={draft} changes={changes} />}
        </aside>
      </div>
      {confirming === "delete" && flag && (
        <Confirm
          title={`Delete ${flag.key}?`}
          action="Delete"
          onClose={() => setConfirming(null)}
          onConfirm={() => void remove()}
        >
          <p>
            This permanently deletes the flag. Applications that still evaluate it get the default
            in code.
          </p>
        </Confirm>
      )}
      {confirming && confirming !== "delete" && (
        <Confirm
          title={`${confirming.archived ? "Archive" : "Unarchive"} ${confirming.flag.key}?`}
          action={confirming.archived ? "Archive" : "Unarchive"}
          onClose={() => setConfirming(null)}
          onConfirm={() => void archive(confirming.flag, confirming.archived)}
        >
          {confirming.isConflict && (
            <p>
              Not changed: another user changed the flag. It is now version{" "}
              {confirming.flag.version} and{" "}
              {confirming.flag.archivedAt ? "archived" : confirming.flag.enabled ? "on" : "off"}.
              When on: {describeFlag(confirming.flag)}.
            </p>
          )}
          {confirming.archived && confirming.flag.enabled && (
            <p>
              The flag is on: {describeFlag(confirming.flag)}. Once archived, it no longer exists
              for applications: every caller gets the default in code within 5 seconds.
            </p>
          )}
        </Confirm>
      )}
      <AttributeNames />
    </>
  );
}

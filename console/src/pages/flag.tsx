import { useMemo, useState } from "preact/hooks";
import { go, hrefOf, useAddress, useStay } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError, api, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { dropDraft, useDraft } from "../drafts";
import { AttributeNames } from "../flags/attributes";
import { Conflict, type Met, meet } from "../flags/conflict";
import {
  createFlag,
  type Draft,
  doesInWords,
  draftOf,
  type Flag,
  type FlagType,
  isMismatch,
  loadFlag,
  loadFlags,
  missingWeights,
  NEW_FLAG,
  patchAsKnown,
  patchFlag,
  patchOf,
  sharesInWords,
  TYPES,
  versionOf,
  withIds,
} from "../flags/flag";
import { History } from "../flags/history-list";
import { PrerequisitesEditor, TargetsEditor, VariantsEditor } from "../flags/lists-editor";
import { RulesEditor } from "../flags/rules-editor";
import { NO_WEIGHT, ServeEditor, VariantSelect } from "../flags/serve-editor";
import { FlagSwitch } from "../flags/switch";
import { Tester } from "../flags/tester";
import { undoOf } from "../flags/undo";
import { loadSegments, type Segment } from "../segments/segment";
import { keptParams } from "../time/range";
import { Confirm } from "../ui/confirm";
import { Back, One } from "../ui/one";
import { errorProps, FieldFault, Refused, shownHere, useFirstFault } from "../ui/states";
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
    <One
      list="Flags"
      back={back}
      loaded={loaded}
      isIt={(it) => it.key === key}
      what="flag"
      why={
        <>
          The project has no flag <code>{key}</code>, or not any more.
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
    </One>
  );
}

interface EditorProps {
  /** `null` for one that is to be made. */
  flag: Flag | null;
  back: string;
  onChange: (flag: Flag) => void;
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
  const [refused, setMet] = useState<Met | null>(null);
  const { overtaken } = edited;
  const met = useMemo(() => {
    if (refused || !overtaken || !flag) return refused;
    return { ...meet(overtaken.base, overtaken.typed, saved, flag.version), isRefused: false };
  }, [refused, overtaken, saved, flag]);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const form = useFirstFault(refusal ?? refused);
  const attempts = useAttempts();
  const stay = useStay();
  const [busy, setBusy] = useState(false);
  const [asked, ask] = useState<"delete" | { flag: Flag; archived: boolean } | null>(null);
  const flags =
    useLoaded(`flags ${project.id} false`, (signal) => loadFlags(project, false, signal)).data ??
    [];
  const segments =
    useLoaded(`segments ${project.id}`, (signal) => loadSegments(project, signal)).data ??
    NO_SEGMENTS;
  const disabled = !can("flags:write") || Boolean(flag?.archivedAt);
  const unevenShares = sharesInWords(draft);

  const save = async () => {
    const missing = missingWeights(draft);
    if (missing.length) {
      const violations = missing.map((pointer) => ({
        pointer,
        code: "invalid_type" as const,
        message: NO_WEIGHT,
      }));
      setRefusal(new ApiError(0, "weight", "A share has no number yet.", violations));
      return;
    }
    const sent = draft;
    const accepted = (now: Flag) =>
      [
        versionOf(now),
        draftOf(now),
        (it: Draft) => ({ ...it, rules: withIds(it.rules, sent.rules, now.rules) }),
      ] as const;
    const isHere = stay();
    setBusy(true);
    setRefusal(null);
    setMet(null);
    try {
      if (!flag) {
        const made = await createFlag(project, sent, attempts.keyFor(sent));
        attempts.succeeded();
        edited.handOver(sent, nameOf(made.key), ...accepted(made));
        const href = hrefOf("flag", { ...keptParams(address), key: made.key });
        const isStill = isHere();
        showToast(
          `${made.key} was made. It is off.`,
          undefined,
          isStill ? undefined : { href, text: "Open it" },
        );
        if (isStill) go(href, "replace");
        return;
      }
      const changed = await patchFlag(project, flag.key, patchOf(saved, sent), flag);
      edited.accept(sent, ...accepted(changed));
      onChange(changed);
      showToast(`Saved as version ${changed.version}.`);
    } catch (error) {
      if (!isHere()) showErrorToast(error);
      else if (flag && isMismatch(error)) await takeOver(flag, sent);
      else refuse(error);
    } finally {
      setBusy(false);
    }
  };
  const refuse = (error: unknown) =>
    error instanceof ApiError ? setRefusal(shownHere(error)) : showErrorToast(error);
  /** What somebody else saved comes in beside what was typed, and is told. */
  const takeOver = async (known: Flag, sent: Draft) => {
    try {
      const now = await loadFlag(project, known.key);
      setMet({ ...meet(edited.base, sent, draftOf(now), now.version), isRefused: true });
      onChange(now);
    } catch (error) {
      refuse(error);
    }
  };
  const archive = async (known: Flag, archived: boolean) => {
    ask(null);
    setBusy(true);
    try {
      const { flag: now, isDone } = await patchAsKnown(project, known, { archived });
      onChange(now);
      if (!isDone && Boolean(now.archivedAt) !== archived) return ask({ flag: now, archived });
      const undo = archived ? undoOf(project, now, { archived: false }, onChange) : undefined;
      showToast(archived ? `${now.key} is archived.` : `${now.key} is back.`, undo);
    } catch (error) {
      showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };
  const remove = async () => {
    if (!flag) return;
    const isHere = stay();
    ask(null);
    try {
      const params = { path: { idOrSlug: project.slug, key: flag.key } };
      await unwrapResponse(api.DELETE("/v0/project/{idOrSlug}/feature-flags/{key}", { params }));
      dropDraft(nameOf(flag.key));
      showToast(`${flag.key} is gone.`);
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
                  <button type="button" disabled={busy} onClick={() => void archive(flag, false)}>
                    Bring back
                  </button>
                  <button type="button" class="danger" onClick={() => ask("delete")}>
                    Delete
                  </button>
                </>
              ) : (
                <button type="button" disabled={busy} onClick={() => void archive(flag, true)}>
                  Archive
                </button>
              ))}
          </div>
        )}
      </div>
      <div class="editor">
        <div>
          <form
            ref={form}
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
                      {...errorProps(refusal, "/key")}
                      onInput={(event) => set({ key: event.currentTarget.value })}
                    />
                  </label>
                )}
                <label class="field grow">
                  Name
                  <input
                    value={draft.name}
                    placeholder="New checkout"
                    disabled={disabled}
                    {...errorProps(refusal, "/name")}
                    onInput={(event) => set({ name: event.currentTarget.value })}
                  />
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
              <FieldFault refusal={refusal} at="/key" />
              <FieldFault refusal={refusal} at="/name" />
              <label class="field">
                What it is for
                <textarea
                  rows={2}
                  value={draft.description}
                  disabled={disabled}
                  {...errorProps(refusal, "/description")}
                  onInput={(event) => set({ description: event.currentTarget.value })}
                />
              </label>
              <FieldFault refusal={refusal} at="/description" />
            </div>
            <VariantsEditor draft={draft} refusal={refusal} disabled={disabled} onChange={set} />
            <TargetsEditor draft={draft} refusal={refusal} disabled={disabled} onChange={set} />
            <RulesEditor
              draft={draft}
              segments={segments}
              refusal={refusal}
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
                refusal={refusal}
                label="Everyone else gets"
                disabled={disabled}
                onChange={(fallthrough) => set({ fallthrough })}
              />
            </section>
            <section class="part">
              <header>
                <h2>While it is off</h2>
              </header>
              <VariantSelect
                label="Variant while it is off"
                value={draft.offVariant ?? ""}
                variants={draft.variants}
                none="The application’s own default"
                disabled={disabled}
                fault={errorProps(refusal, "/offVariant")}
                onChange={(key) => set({ offVariant: key || null })}
              />
              <FieldFault refusal={refusal} at="/offVariant" />
            </section>
            <PrerequisitesEditor
              draft={draft}
              refusal={refusal}
              disabled={disabled}
              onChange={set}
              flags={flags}
            />
            {met && <Conflict what="flag" met={met} isLeft={isChanged} />}
            {refusal && <Refused refusal={refusal} />}
            {!disabled && (isChanged || !flag) && (
              <div class="save-bar">
                <button type="submit" class="primary" disabled={busy}>
                  {!flag ? "Make the flag" : met ? "Save over it" : "Save"}
                </button>
                {isChanged && (
                  <button
                    type="button"
                    onClick={() => {
                      edited.discard();
                      setRefusal(null);
                      setMet(null);
                    }}
                  >
                    Discard
                  </button>
                )}
                {edited.wasKept && isChanged && (
                  <span class="small">You typed this before and did not save it.</span>
                )}
                {unevenShares.map((it) => (
                  <span class="fault" key={it}>
                    {it}
                  </span>
                ))}
                <span class="quiet small">Once on, it serves {doesInWords(draft)}.</span>
              </div>
            )}
          </form>
          {flag && <History key={flag.id} flag={flag} onChange={onChange} />}
        </div>
        <aside>
          {flag && can("flags:evaluate") && (
            <Tester key={flag.id} flag={flag} isEdited={isChanged} />
          )}
          {flag && !can("flags:evaluate") && (
            <p class="quiet small">To try it out here, a key needs the scope flags:evaluate.</p>
          )}
        </aside>
      </div>
      {asked === "delete" && flag && (
        <Confirm
          title={`Delete ${flag.key}?`}
          action="Delete"
          onClose={() => ask(null)}
          onConfirm={() => void remove()}
        >
          <p>
            The flag is deleted for good. Applications that still ask for it get their own default.
          </p>
        </Confirm>
      )}
      {asked && asked !== "delete" && (
        <Confirm
          title={asked.archived ? `Archive ${asked.flag.key}?` : `Bring ${asked.flag.key} back?`}
          action={asked.archived ? "Archive" : "Bring back"}
          onClose={() => ask(null)}
          onConfirm={() => void archive(asked.flag, asked.archived)}
        >
          <p>
            Somebody changed the flag in the meantime, so nothing was done. It is version{" "}
            {asked.flag.version} now and{" "}
            {asked.flag.archivedAt ? "archived" : asked.flag.enabled ? "on" : "off"}; once on, it
            serves {doesInWords(asked.flag)}.
          </p>
        </Confirm>
      )}
      <AttributeNames />
    </>
  );
}

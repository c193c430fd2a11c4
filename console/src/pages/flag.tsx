import { useMemo, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import {
  EditorHead,
  EditorPage,
  type EditorProps,
  KeyAndName,
  type Kind,
  SaveBar,
  useEditor,
} from "../flags/editor";
import {
  createFlag,
  type Draft,
  deleteFlag,
  describeFlag,
  describeUnevenShares,
  draftOf,
  type Flag,
  type FlagType,
  loadFlag,
  loadFlags,
  missingWeights,
  NEW_FLAG,
  patchFlag,
  patchIfUnchanged,
  patchOf,
  stateOf,
  TYPES,
  unevenRollouts,
  withIds,
} from "../flags/flag";
import { FlagText, History } from "../flags/history-list";
import { PrerequisitesEditor, TargetsEditor, VariantsEditor } from "../flags/lists-editor";
import { RulesEditor } from "../flags/rules-editor";
import { NO_WEIGHT, ServeEditor, VariantSelect } from "../flags/serve-editor";
import { FlagSwitch } from "../flags/switch";
import { Tester } from "../flags/tester";
import { createUndo } from "../flags/undo";
import { loadSegments, type Segment } from "../segments/segment";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Field } from "../ui/form";
import { Part } from "../ui/layout";
import { useIsSettled } from "../ui/settled";
import { errorProps, FieldError } from "../ui/states";
import { showToast, useAction } from "../ui/toast";

/** An archiving or unarchiving to confirm. */
interface Archiving {
  flag: Flag;
  archived: boolean;
  /** `true` if another user's change came first. */
  isConflict: boolean;
}

const BOOLEANS = NEW_FLAG.variants;
const NO_SEGMENTS: Segment[] = [];

const KIND: Kind<Flag, Draft> = {
  page: "flag",
  newDraft: NEW_FLAG,
  draftOf,
  load: loadFlag,
  create: createFlag,
  remove: deleteFlag,
  patch: (project, saved, draft) =>
    patchFlag(project, saved.key, patchOf(draftOf(saved), draft), saved),
  withIds: (draft, sent, { rules }) => ({
    ...draft,
    rules: withIds(draft.rules, sent.rules, rules),
  }),
  created: ({ key }) => `Created ${key}. It’s off.`,
  changed: ({ version }) => `Saved as version ${version}.`,
};

/** Returns an error for percentages that are missing or do not add up. */
function checkWeights(draft: Draft, saved: Draft): ApiError | null {
  const errorAt = (pointers: string[], code: "invalid_type" | "out_of_range", message: string) =>
    pointers.map((pointer) => ({ pointer, code, message }));
  const missing = errorAt(missingWeights(draft), "invalid_type", NO_WEIGHT);
  if (missing.length) return new ApiError(0, "weight", "Enter all percentages.", missing);
  const uneven = errorAt(
    unevenRollouts(draft, saved),
    "out_of_range",
    "The percentages must add up to 100. Change one, or balance them.",
  );
  if (!uneven.length) return null;
  return new ApiError(0, "weight", "The percentages don’t add up to 100.", uneven);
}

export function FlagPage() {
  return <EditorPage page="flag" load={loadFlag} Editor={Editor} />;
}

function Editor(props: EditorProps<Flag>) {
  const { saved: flag, onChange } = props;
  const { project } = useCurrentProject();
  const can = useCan();
  const editing = useEditor(KIND, props, checkWeights);
  const { draft, saved, set, error } = editing;
  const isSettled = useIsSettled(flag?.archivedAt);
  const [busy, run] = useAction();
  /** The action to confirm. `flag` is its version after a change by another user. */
  const [confirming, setConfirming] = useState<"delete" | Archiving | null>(null);
  const flags =
    useLoaded(`flags ${project.id} false`, (signal) => loadFlags(project, false, signal)).data ??
    [];
  const segments =
    useLoaded(`segments ${project.id}`, (signal) => loadSegments(project, signal)).data ??
    NO_SEGMENTS;
  const isReadOnly = !can("flags:write") || Boolean(flag?.archivedAt);
  const unevenShares = describeUnevenShares(draft);
  const changes = useMemo(() => patchOf(saved, draft), [saved, draft]);

  const archive = async (known: Flag, archived: boolean) => {
    setConfirming(null);
    const { flag: latest, isDone } = await patchIfUnchanged(project, known, { archived });
    onChange(latest);
    if (!isDone && Boolean(latest.archivedAt) !== archived) {
      return setConfirming({ flag: latest, archived, isConflict: true });
    }
    const undo = archived ? createUndo(project, latest, { archived: false }, onChange) : undefined;
    showToast(`${archived ? "Archived" : "Unarchived"} ${latest.key}.`, undo);
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
      <EditorHead item={flag} noun="flag" facts={` ${flag?.type} ·`}>
        {flag && (
          <>
            <FlagSwitch flag={flag} onChange={onChange} />
            {can("flags:write") &&
              (flag.archivedAt ? (
                <>
                  <Button
                    class="danger"
                    disabled={!isSettled}
                    onClick={() => setConfirming("delete")}
                  >
                    Delete
                  </Button>
                  <Button
                    disabled={busy || !isSettled}
                    onClick={() => void run(() => archive(flag, false))}
                  >
                    Unarchive
                  </Button>
                </>
              ) : (
                <Button
                  disabled={busy || !isSettled}
                  onClick={() =>
                    flag.enabled
                      ? setConfirming({ flag, archived: true, isConflict: false })
                      : void run(() => archive(flag, true))
                  }
                >
                  Archive
                </Button>
              ))}
          </>
        )}
      </EditorHead>
      <div class="editor">
        <div>
          {isReadOnly ? (
            flag && <FlagText flag={flag} />
          ) : (
            <form {...editing.form}>
              <div class="form part">
                <KeyAndName
                  editing={editing}
                  placeholders={["new-checkout", "New checkout"]}
                  onChange={set}
                >
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
                </KeyAndName>
                <Field
                  label="Description"
                  at="/description"
                  form={editing}
                  rows={2}
                  value={draft.description}
                  onInput={(description) => set({ description })}
                />
              </div>
              <VariantsEditor draft={draft} error={error} onChange={set} />
              <TargetsEditor draft={draft} error={error} onChange={set} />
              <RulesEditor
                draft={draft}
                segments={segments}
                error={error}
                onChange={(rules) => set({ rules })}
              />
              <Part title="Everyone else">
                <ServeEditor
                  serve={draft.fallthrough}
                  variants={draft.variants}
                  pointer="/fallthrough"
                  error={error}
                  label="Everyone else gets"
                  onChange={(fallthrough) => set({ fallthrough })}
                />
              </Part>
              <Part title="When off, serve">
                <VariantSelect
                  label="When off, serve"
                  value={draft.offVariant ?? ""}
                  variants={draft.variants}
                  none="The default in code"
                  invalid={errorProps(error, "/offVariant")}
                  onChange={(key) => set({ offVariant: key || null })}
                />
                <FieldError error={error} at="/offVariant" />
              </Part>
              <PrerequisitesEditor draft={draft} error={error} onChange={set} flags={flags} />
              <SaveBar editing={editing}>
                {unevenShares.map((it) => (
                  <span class="field-error" key={it}>
                    {it}
                  </span>
                ))}
                <span class="quiet small">When on: {describeFlag(draft)}.</span>
              </SaveBar>
            </form>
          )}
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
          onConfirm={() => {
            setConfirming(null);
            void run(editing.remove);
          }}
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
          onConfirm={() => void run(() => archive(confirming.flag, confirming.archived))}
        >
          {confirming.isConflict && (
            <p>
              Not changed: another user changed the flag. It is now version{" "}
              {confirming.flag.version} and {stateOf(confirming.flag)}. When on:{" "}
              {describeFlag(confirming.flag)}.
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
    </>
  );
}

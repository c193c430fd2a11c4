/** The command palette (⌘K or Ctrl+K): pages, projects, flags and errors by name. */

import { useEffect, useState } from "preact/hooks";
import { go, hrefOf, useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import type { CallerInfo, Project } from "../caller";
import { loadErrors } from "../errors/load";
import { loadFlags } from "../flags/flag";
import { keptParams } from "../time/range";
import { Combobox, matchesText, type Option } from "./combobox";
import { Dialog } from "./confirm";

interface PaletteProps {
  caller: CallerInfo | undefined;
  project: Project | undefined;
  /** The pages that the caller can open. */
  pages: { name: string; href: string }[];
}

export function Palette(props: PaletteProps) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey)) return;
      if (event.shiftKey || event.altKey) return;
      event.preventDefault();
      setOpen((was) => was || !document.querySelector("dialog[open]"));
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
  return isOpen && props.caller ? (
    <Dialog title="Go to" onClose={() => setOpen(false)}>
      <Choices {...props} caller={props.caller} onClose={() => setOpen(false)} />
    </Dialog>
  ) : null;
}

interface Choice extends Option {
  href: string;
}

interface ChoicesProps extends PaletteProps {
  caller: CallerInfo;
  onClose: () => void;
}

const MAX_ERRORS = 10;
const PAUSE_MS = 250;
const RANGE_MS = 30 * 86_400_000;

function Choices({ caller, project, pages, onClose }: ChoicesProps) {
  const address = useAddress();
  const [text, setText] = useState("");
  const [searched, setSearched] = useState("");
  const typed = text.trim();
  useEffect(() => {
    const timer = setTimeout(() => setSearched(typed), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const kept = keptParams(address);
  const can = (scope: CallerInfo["scopes"][number]) => caller.scopes.includes(scope);
  const flags = useLoaded(
    project && can("flags:read") ? `flags ${project.id} false` : null,
    (signal) => loadFlags(project as Project, false, signal),
  );
  const errors = useLoaded(
    project && searched && can("errors:read") ? `palette ${project.id} ${searched}` : null,
    (signal) => {
      const to = Date.now();
      const view = { filters: [], search: searched, status: null };
      const range = { from: to - RANGE_MS, to };
      return loadErrors(project as Project, view, range, { limit: MAX_ERRORS }, signal);
    },
  );
  const named: Choice[] = [
    ...pages.map((it) => ({ key: it.href, label: it.name, group: "Pages", href: it.href })),
    ...caller.projects.map((it) => ({
      key: it.id,
      label: it.name,
      hint: it.slug,
      group: "Projects",
      href: hrefOf(address.page === "errors" ? "errors" : "", { ...kept, project: it.slug }),
    })),
    ...(flags.data ?? []).map((it) => ({
      key: it.id,
      label: it.name,
      hint: it.key,
      group: "Flags",
      href: hrefOf("flag", { ...kept, key: it.key }),
    })),
  ];
  const choices = named.filter((it) => matchesText(`${it.label} ${it.hint ?? ""}`, typed));
  // The API has searched these.
  const found = (searched === typed && typed ? (errors.data?.items ?? []) : []).map((it) => ({
    key: it.errorId,
    label: it.title,
    hint: it.culprit,
    group: "Errors",
    href: hrefOf("error", { ...kept, id: it.errorId }),
  }));
  return (
    <Combobox
      label="Go to"
      placeholder="Page, project, flag or error"
      options={[...choices, ...found]}
      text={text}
      onText={setText}
      onClose={onClose}
      onChoose={(it) => {
        onClose();
        go(it.href);
      }}
    />
  );
}

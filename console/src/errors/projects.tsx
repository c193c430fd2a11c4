/** The projects that a page is about: the one of the frame, and others beside it. */

import { useMemo } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { type Project, useCurrentProject } from "../caller";
import { useMenu } from "../ui/menu";

/** More in one plot tell nobody anything; each brings a few requests of its own. */
const MOST_PROJECTS = 10;

/** What is loaded for projects, as a key. */
export function keyOf(projects: readonly Project[]): string {
  return projects.map((it) => it.id).join(" ");
}

/** Those of the address, the frame's own first. */
export function useProjects(): Project[] {
  const { caller, project } = useCurrentProject();
  const asked = useAddress().query.get("with") ?? "";
  return useMemo(() => {
    const slugs = new Set(asked.split(","));
    const others = caller.projects.filter((it) => it.id !== project.id && slugs.has(it.slug));
    return [project, ...others].slice(0, MOST_PROJECTS);
  }, [caller, project, asked]);
}

/** Chooses projects to be looked at together. Absent where there is but one. */
export function ProjectsMenu({ projects }: { projects: Project[] }) {
  const address = useAddress();
  const { caller, project } = useCurrentProject();
  const { box, onKeyDown } = useMenu();
  if (caller.projects.length < 2) return null;
  const isChosen = (it: Project) => projects.some((one) => one.id === it.id);
  const put = (chosen: Project[]) => {
    const others = chosen.filter((it) => it.id !== project.id).map((it) => it.slug);
    go(changed(address, { with: others.join(",") || null }));
  };
  const more = projects.length - 1;
  return (
    <details class={more > 0 ? "menu zoomed" : "menu"} ref={box} onKeyDown={onKeyDown}>
      <summary>{more === 0 ? "Add projects" : `${project.name} and ${more} more`}</summary>
      <fieldset class="popover choices">
        <legend class="hidden">Projects</legend>
        {caller.projects.map((it) => (
          <label class="check" key={it.id}>
            <input
              type="checkbox"
              checked={isChosen(it)}
              disabled={it.id === project.id || (!isChosen(it) && projects.length >= MOST_PROJECTS)}
              onChange={(event) =>
                put(
                  event.currentTarget.checked
                    ? [...projects, it]
                    : projects.filter((one) => one.id !== it.id),
                )
              }
            />
            <bdi>{it.name}</bdi>
          </label>
        ))}
        {projects.length >= MOST_PROJECTS && (
          <p class="quiet small">At most {MOST_PROJECTS} at once.</p>
        )}
      </fieldset>
    </details>
  );
}

/** The projects of the overview: the current one and others that the user adds. */

import { useMemo } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { type Project, useCurrentProject } from "../caller";
import { useMenu } from "../ui/menu";

/** Maximum projects in one plot: more are unreadable, and each needs requests of its own. */
const MAX_PROJECTS = 10;

/** Returns the cache key of a list of projects. */
export function keyOf(projects: readonly Project[]): string {
  return projects.map((it) => it.id).join(" ");
}

/** Returns the projects in the address, the current one first. */
export function useProjects(): Project[] {
  const { caller, project } = useCurrentProject();
  const others = useAddress().query.get("with") ?? "";
  return useMemo(() => {
    const slugs = new Set(others.split(","));
    const added = caller.projects.filter((it) => it.id !== project.id && slugs.has(it.slug));
    return [project, ...added].slice(0, MAX_PROJECTS);
  }, [caller, project, others]);
}

/** A menu of projects to show together. Hidden if the caller has only one. */
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
              disabled={it.id === project.id || (!isChosen(it) && projects.length >= MAX_PROJECTS)}
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
        {projects.length >= MAX_PROJECTS && (
          <p class="quiet small">Up to {MAX_PROJECTS} projects.</p>
        )}
      </fieldset>
    </details>
  );
}

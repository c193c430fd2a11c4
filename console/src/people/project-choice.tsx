/** The choice of projects for a member, an invitation or a key. */

import { useId } from "preact/hooks";
import { type ApiError, api } from "../api/client";
import { useLoaded } from "../api/loaded";
import { loadPages } from "../api/pages";
import { useCaller } from "../caller";
import { pluralize } from "../time/format";
import { ErrorMessage, FieldError, SkeletonRows } from "../ui/states";

/** Project IDs; `null` for all projects. */
export type ProjectIds = string[] | null;

/** Loads all projects of the organization. */
export function useProjects() {
  const { caller } = useCaller();
  return useLoaded(`projects ${caller.organization}`, (signal) =>
    loadPages((query) => api.GET("/v0/projects", { params: { query }, signal })),
  );
}

/** Describes a choice in a table: the names of up to two projects, or their number. */
export function useProjectNames(): (ids: ProjectIds) => string {
  const { data } = useProjects();
  return (ids) => {
    if (ids === null) return "All";
    const names = ids.flatMap((id) => data?.items.find((it) => it.id === id)?.name ?? []);
    if (ids.length > 2 || names.length < ids.length) return pluralize(ids.length, "project");
    return names.join(", ");
  };
}

interface ProjectChoiceProps {
  chosen: ProjectIds;
  onChange: (chosen: ProjectIds) => void;
  error: ApiError | null;
  /** Replaces the choice if the role always has all projects. */
  fixed?: string | null;
}

export function ProjectChoice({ chosen, onChange, error, fixed = null }: ProjectChoiceProps) {
  const projects = useProjects();
  const name = useId();
  const toggle = (id: string, isChosen: boolean) =>
    onChange(isChosen ? [...(chosen ?? []), id] : (chosen ?? []).filter((it) => it !== id));
  return (
    <fieldset class="choice">
      <legend>Projects</legend>
      {fixed ? (
        <p class="quiet">{fixed}</p>
      ) : (
        <>
          <label class="check">
            <input
              type="radio"
              name={name}
              checked={chosen === null}
              onChange={() => onChange(null)}
            />
            All projects, also future ones
          </label>
          <label class="check">
            <input
              type="radio"
              name={name}
              checked={chosen !== null}
              onChange={() => onChange([])}
            />
            Only these projects
          </label>
          {chosen !== null && projects.error && (
            <ErrorMessage small error={projects.error} retry={projects.reload} />
          )}
          {chosen !== null && !projects.data && !projects.error && <SkeletonRows rows={2} />}
          {chosen !== null && projects.data && (
            <ul class="choice-list">
              {projects.data.items.map((it) => (
                <li key={it.id}>
                  <label class="check">
                    <input
                      type="checkbox"
                      checked={chosen.includes(it.id)}
                      onChange={(event) => toggle(it.id, event.currentTarget.checked)}
                    />
                    <bdi>{it.name}</bdi>
                  </label>
                </li>
              ))}
            </ul>
          )}
          <FieldError error={error} at="/projects" message="Choose at least one project." />
        </>
      )}
    </fieldset>
  );
}

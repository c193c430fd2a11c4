/** The page of a project without errors: how to report the first one. */

import { useCurrentProject } from "../caller";
import { Snippets } from "../settings/snippets";

export function Onboarding() {
  const { project } = useCurrentProject();
  return (
    <div class="onboarding">
      <h2>No errors in {project.name} yet</h2>
      <p>Point any Sentry SDK at this DSN; errors show up here.</p>
      <Snippets />
    </div>
  );
}

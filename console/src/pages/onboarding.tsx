/** What stands where there are no errors yet: the one step to get them. */

import { useCurrentProject } from "../caller";
import { Snippets } from "../settings/snippets";

export function Onboarding() {
  const { project } = useCurrentProject();
  return (
    <div class="onboarding">
      <h2>No errors of {project.name} yet</h2>
      <p>
        Here the errors of your application stand over time, with releases and changes of flags
        beside them. Any official Sentry SDK reports them, once it knows the project’s DSN:
      </p>
      <Snippets />
    </div>
  );
}

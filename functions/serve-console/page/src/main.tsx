import { render } from "preact";
import { App } from "./app";
import { currentKey, LINK_FAILED, takeKeyFromLink } from "./session";
import { watchScroll } from "./steps";
import { answerTabs } from "./tabs";
import { tell } from "./ui/toast";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/controls.css";
import "./styles/plot.css";
import "./styles/forms.css";
import "./styles/error.css";
import "./styles/pages.css";
import "./styles/forced.css";

async function openLink(): Promise<boolean> {
  const outcome = await takeKeyFromLink();
  // Without a key, the form for one says it.
  if (outcome === "failed" && currentKey()) tell(LINK_FAILED);
  return outcome === "new";
}

await openLink();
// A link that is opened where the page already is changes nothing but the fragment.
addEventListener("hashchange", async () => {
  if (await openLink()) location.reload();
});
answerTabs();
watchScroll();
const root = document.getElementById("app");
if (root) render(<App />, root);

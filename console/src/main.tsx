import { render } from "preact";
import { App } from "./app";
import { currentCredential, showSignInNotice, takeLink, watchSession } from "./session";
import { watchScroll } from "./steps";
import { shareKeyWithTabs } from "./tabs";
import { showToast } from "./ui/toast";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/controls.css";
import "./styles/plot.css";
import "./styles/forms.css";
import "./styles/error.css";
import "./styles/pages.css";
import "./styles/people.css";
import "./styles/forced.css";

async function openLink(): Promise<void> {
  const failure = await takeLink();
  if (failure && currentCredential()) showToast(failure);
  else if (failure) showSignInNotice(failure);
}

shareKeyWithTabs();
watchSession();
const ready = openLink();
// A link that opens in a tab with the console changes only the fragment.
addEventListener("hashchange", () => void openLink());
watchScroll();
const root = document.getElementById("app");
if (root) render(<App ready={ready} />, root);

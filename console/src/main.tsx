import { render } from "preact";
import { App } from "./app";
import { currentKey, LINK_FAILED, takeKeyFromLink } from "./session";
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
import "./styles/forced.css";

async function openLink(): Promise<void> {
  if (!(await takeKeyFromLink()) && currentKey()) showToast(LINK_FAILED);
}

shareKeyWithTabs();
const ready = openLink();
// A link that opens in a tab with the console changes only the fragment.
addEventListener("hashchange", () => void openLink());
watchScroll();
const root = document.getElementById("app");
if (root) render(<App ready={ready} />, root);

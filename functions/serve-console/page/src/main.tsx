import { render } from "preact";
import { App } from "./app";
import { takeKeyFromAddress } from "./session";
import { watchScroll } from "./steps";
import { answerTabs } from "./tabs";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/controls.css";
import "./styles/plot.css";
import "./styles/forms.css";
import "./styles/error.css";
import "./styles/pages.css";
import "./styles/forced.css";

answerTabs();
const ready = takeKeyFromAddress();
// A link with a key that is opened where the page already is changes nothing but the fragment.
addEventListener("hashchange", () => void takeKeyFromAddress());
watchScroll();
const root = document.getElementById("app");
if (root) render(<App ready={ready} />, root);

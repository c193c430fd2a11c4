// Scripts sessions with the official SDK in a headless browser, and prints as JSON the pain points
// that follow from the published rule: node replays.mjs CHROMIUM SESSIONS
//
// SENTRY_DSN is the destination of the SDK.
import { createServer } from "node:http";
import { build } from "esbuild";
import puppeteer from "puppeteer-core";

// The User-Agent of regular browsers. By default, Chromium's shows that it is headless.
const USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
  + "Chrome/140.0.0.0 Safari/537.36";
// Sessions at a time. More would delay timers of the pages.
const AT_ONCE = 6;
// The SDK decides about a click after seven seconds, and checks once a second.
const VERDICT_MILLIS = 9_500;

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Shop</title>
<style>* { font-size: 16px } button, a, p, label { display: block; margin: 4px }</style>
<p id="log">nothing yet</p>
<p id="prose">Some words that a reader can select with the mouse.</p>
<button id="dead" class="app-bawkde e1md5v962 wide">Does nothing</button>
<a id="dead-link" href="#" onclick="return false" aria-label="Terms">Terms</a>
<div id="panel">A panel without purpose</div>
<button id="fast">Reacts</button>
<button id="slow">Reacts after four seconds</button>
<button id="stepper">More</button>
<button id="failing">Reacts and fails</button>
<button id="failing-late">Reacts and fails late</button>
<button id="failing-silently">Fails</button>
<button id="route">Opens an order</button>
<a id="tab" href="/other" target="_blank">Opens a tab</a>
<input id="file" type="file">
<input id="name" type="text" placeholder="Your name">
<a id="away" href="/other">Opens another page</a>
<script>window.dsn = ${JSON.stringify(process.env.SENTRY_DSN)};</script>
<script src="/replays.js"></script>
</html>`;

const times = async (count, click) => {
  for (let done = 0; done < count; done += 1) {
    await click();
  }
};

// Opens another page, in which the replay continues.
async function openOther(tab) {
  await Promise.all([tab.waitForNavigation({ waitUntil: "load" }), tab.click("#away")]);
  await tab.waitForFunction(() => window.replayId());
}

// Sessions, by name, with the labels of their pain points: kind and element.
const SCRIPTS = {
  dead: [async (tab) => tab.click("#dead"), ["dead_click", "dead", "/"]],
  deadLink: [async (tab) => tab.click("#dead-link"), ["dead_click", "dead-link", "/"]],
  rage: [async (tab) => times(6, () => tab.click("#dead")), ["rage_click", "dead", "/"]],
  ragePanel: [async (tab) => times(6, () => tab.click("#panel"))],
  fast: [async (tab) => tab.click("#fast")],
  slow: [async (tab) => tab.click("#slow")],
  stepper: [async (tab) => times(6, () => tab.click("#stepper")), ["rage_click", "stepper", "/"]],
  fewSteps: [async (tab) => times(4, () => tab.click("#stepper"))],
  doubleClick: [async (tab) => tab.click("#prose", { count: 2 })],
  tripleClick: [async (tab) => tab.click("#prose", { count: 3 })],
  newTab: [async (tab) => tab.click("#tab")],
  fileInput: [async (tab) => tab.click("#file")],
  failing: [async (tab) => tab.click("#failing"), ["error_click", "failing", "/"]],
  failingLate: [async (tab) => tab.click("#failing-late")],
  failingSilently: [
    async (tab) => tab.click("#failing-silently"), ["dead_click", "failing-silently", "/", true],
  ],
  route: [async (tab) => tab.click("#route")],
  routeDead: [
    async (tab) => {
      await tab.click("#route");
      await tab.click("#dead");
    },
    ["dead_click", "dead", "/orders/:id"],
  ],
  routeFailing: [
    async (tab) => {
      await tab.click("#route");
      await tab.click("#failing");
    },
    ["error_click", "failing", "/orders/:id"],
  ],
  away: [openOther],
  awayDead: [
    async (tab) => {
      await openOther(tab);
      await tab.click("#dead");
    },
    ["dead_click", "dead", "/other"],
  ],
};

const bundled = await build({
  entryPoints: ["replays.js"], bundle: true, format: "iife", write: false, logLevel: "error",
});
const server = createServer(({ url }, response) => {
  const [type, content] = url === "/replays.js"
    ? ["text/javascript", bundled.outputFiles[0].text]
    : ["text/html; charset=utf-8", page];
  response.writeHead(200, { "content-type": type }).end(content);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

// Chromium's sandbox needs permissions that containers lack. Pages in the background keep their
// timers.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
  "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding"];
const browser = await puppeteer.launch({ executablePath: process.argv[2], args });

async function visit(name) {
  const [script, ...labels] = SCRIPTS[name];
  const context = await browser.createBrowserContext();
  const tab = await context.newPage();
  await tab.setUserAgent({ userAgent: USER_AGENT });
  await tab.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "load" });
  const replay = await tab.evaluate(() => window.replayId());
  await script(tab);
  await new Promise((resolve) => setTimeout(resolve, VERDICT_MILLIS));
  const left = await tab.evaluate(() => window.leave());
  await context.close();
  const labelled = labels.map(([kind, element, route, hasError = kind === "error_click"]) => ({
    kind, element, route, hasError,
  }));
  return { name, replay, left, labels: labelled };
}

const names = Object.keys(SCRIPTS);
const planned = Array.from({ length: Number(process.argv[3]) }, (_, at) => names[at % names.length]);
const sessions = [];
try {
  const worker = async () => {
    while (planned.length > 0) {
      sessions.push(await visit(planned.shift()));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log(JSON.stringify(sessions));
} finally {
  await browser.close();
  server.close();
}

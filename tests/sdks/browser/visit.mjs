// Visits a shop's page with the official SDK in a headless browser, and prints the page's requests as
// JSON: node visit.mjs CHROMIUM
//
// SENTRY_DSN is the destination of the SDK.
import { createServer } from "node:http";
import { build } from "esbuild";
import puppeteer from "puppeteer-core";

// The User-Agent of regular browsers. By default, Chromium's shows that it is headless.
const USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
  + "Chrome/140.0.0.0 Safari/537.36";

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Shop</title>
<button id="check-out">Check out</button>
<button id="close-day">Close the day</button>
<button id="synchronize">Synchronize</button>
<button id="import">Import</button>
<script>window.dsn = ${JSON.stringify(process.env.SENTRY_DSN)};</script>
<script src="/shop.js"></script>
</html>`;

const bundled = await build({
  entryPoints: ["shop.js"], bundle: true, format: "iife", write: false, logLevel: "error",
});
const files = {
  "/": ["text/html; charset=utf-8", page],
  "/shop.js": ["text/javascript", bundled.outputFiles[0].text],
};
const server = createServer(({ url }, response) => {
  const [type, content] = files[url] ?? ["text/plain", ""];
  response.writeHead(content ? 200 : 404, { "content-type": type }).end(content);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

// Chromium's sandbox needs permissions that containers lack.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath: process.argv[2], args });
try {
  const tab = await browser.newPage();
  await tab.setUserAgent({ userAgent: USER_AGENT });
  const requests = [];
  const failed = [];
  const messages = [];
  const errors = [];
  tab.on("requestfinished", (request) => {
    const { origin, pathname } = new URL(request.url());
    requests.push({ method: request.method(), origin, path: pathname, status: request.response()?.status() });
  });
  tab.on("requestfailed", (request) => failed.push(`${request.url()}: ${request.failure()?.errorText}`));
  tab.on("console", (message) => messages.push(message.text()));
  tab.on("pageerror", (error) => errors.push(error.message));
  const responded = tab.waitForResponse((it) => it.request().method() === "POST");
  await tab.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "load" });
  await responded;
  await tab.evaluate(() => window.settle());
  for (const button of ["#check-out", "#import", "#synchronize", "#close-day"]) {
    await tab.click(button);
  }
  const left = await tab.evaluate(() => window.leave());
  // Pending requests complete.
  await tab.waitForNetworkIdle({ idleTime: 500, timeout: 30_000 });
  console.log(JSON.stringify({ left, requests, failed, messages, errors }));
} finally {
  await browser.close();
  server.close();
}

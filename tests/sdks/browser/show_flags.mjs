// Opens a page with flags in a headless browser. OFREP_ENDPOINT and API_KEY configure the provider,
// CHROMIUM is the browser. Each line of standard input is a command for the page. Prints a line per
// command; for `end`, the messages of the browser.

import { createServer } from "node:http";
import { createInterface } from "node:readline";

import { build } from "esbuild";
import puppeteer from "puppeteer-core";

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Flags</title>
<script>
window.endpoint = ${JSON.stringify(process.env.OFREP_ENDPOINT)};
window.key = ${JSON.stringify(process.env.API_KEY)};
</script>
<script src="/show_flags.js"></script>
</html>`;

const bundled = await build({
  entryPoints: ["show_flags.js"], bundle: true, format: "iife", write: false, logLevel: "error",
});
const files = {
  "/": ["text/html; charset=utf-8", page],
  "/show_flags.js": ["text/javascript", bundled.outputFiles[0].text],
};
const server = createServer(({ url }, response) => {
  const [type, content] = files[url] ?? ["text/plain", ""];
  response.writeHead(content ? 200 : 404, { "content-type": type }).end(content);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

// Chromium's sandbox needs permissions that containers lack.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args });
const messages = [];
try {
  const tab = await browser.newPage();
  tab.on("console", (message) => messages.push(message.text()));
  tab.on("pageerror", (error) => messages.push(error.message));
  tab.on("requestfailed", (request) => messages.push(`${request.url()}: ${request.failure()?.errorText}`));
  await tab.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "load" });
  for await (const line of createInterface({ input: process.stdin })) {
    const { command, ...options } = JSON.parse(line);
    if (command === "end") break;
    const result = await tab.evaluate((command, options) => window.commands[command](options), command, options);
    console.log(JSON.stringify(result));
  }
} finally {
  await browser.close();
  server.close();
}
// The test kills this program once it answers, so Chromium ends before.
console.log(JSON.stringify({ messages }));

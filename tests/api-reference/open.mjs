// Opens a page in a headless browser, and prints its content and errors as JSON:
// node open.mjs URL CHROMIUM
import puppeteer from "puppeteer-core";

const [url, executablePath] = process.argv.slice(2);
// Chromium's sandbox needs permissions that containers lack.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath, args });
try {
  const page = await browser.newPage();
  const faults = [];
  const requests = [];
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("requestfailed", (request) => faults.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(url, { waitUntil: "networkidle0", timeout: 30_000 });
  await page.waitForSelector(".opblock", { timeout: 30_000 });
  const operations = await page.$$eval(".opblock-summary", (all) => all.map((it) => it.innerText));
  // Opens one operation, which is rendered like the others.
  await page.click(".opblock-summary-control");
  await page.waitForSelector(".opblock-body .responses-table", { timeout: 30_000 });
  const loaded = requests.filter((it) => !it.startsWith("data:"));
  console.log(JSON.stringify({ faults, loaded, operations }));
} finally {
  await browser.close();
}

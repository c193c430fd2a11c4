// Sign-in, sessions, members, invitations, API keys, projects and the audit log.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Api } from "../data.mjs";
import { faultsOf, Visitor } from "../visitor.mjs";

const OWNER = "owner@example.com";
const ADMIN = "admin@example.com";
const VIEWER = "viewer@example.com";
/** A removed member's sessions and keys stop working within 60 seconds; the rest is for requests. */
const REMOVAL_MS = 65_000;

export const people = ({ browser, base, project, other, axe, api, foreignKey, ownerToken }) => {
  const signInPath = (token) => `/sign-in#token=${token}`;

  /** Returns the emails to an address, newest first. */
  const emailsTo = async (address) => {
    const response = await fetch(`${base}/mail`, { headers: { accept: "application/json" } });
    return (await response.json()).filter((it) => it.to === address);
  };
  /** Waits for an email with a sign-in link after the first `known` ones. */
  const signInEmail = async (visitor, address, known) => {
    let token;
    let code;
    await visitor.until(`an email to ${address} arrives`, async () => {
      const emails = await emailsTo(address);
      const newest = emails.slice(0, emails.length - known).find((it) => it.text.includes("/console/sign-in#token="));
      token = newest && /\/console\/sign-in#token=([\w.-]+)/.exec(newest.text)[1];
      code = newest && /Code: (\d{3}) ?(\d{3})/.exec(newest.text)?.slice(1).join("");
      return token;
    });
    return { token, code };
  };
  const finishSignIn = async (visitor) => {
    await visitor.click("Sign in");
    await visitor.see(".side nav a");
    await visitor.settle();
  };
  const signIn = async (token) => {
    const visitor = await Visitor.arrive(browser, base, signInPath(token));
    await finishSignIn(visitor);
    return visitor;
  };

  let owner;
  /** The removed member's tab and key. */
  let removed;
  /** Returns the tab of the owner, who signs in once. */
  const asOwner = async (path = "") => {
    owner ??= await signIn(ownerToken);
    await owner.open(path);
    return owner;
  };
  const dialog = async (visitor, action) => {
    await visitor.page.$$eval("dialog button", (all, name) => all.find((it) => it.innerText === name).click(), action);
    await visitor.until("the dialog is closed", async () => (await visitor.page.$("dialog")) === null);
    await visitor.settle();
  };
  const invite = async (visitor, email, role) => {
    const known = (await emailsTo(email)).length;
    await visitor.open("/members");
    await visitor.click("Invite");
    await visitor.type("Email address", email);
    await visitor.page.$$eval("dialog label.check", (all, name) => all.find((it) => it.innerText.startsWith(name)).click(), role);
    await dialog(visitor, "Send invitation");
    await visitor.until("the invitation is listed", async () => (await visitor.text("main")).includes(email));
    return (await signInEmail(visitor, email, known)).token;
  };
  /** Returns the cells of the row that names `text`. */
  const row = (visitor, text) =>
    visitor.page.$$eval("main tbody tr", (all, it) => [...(all.find((one) => one.innerText.includes(it))?.cells ?? [])].map((cell) => cell.innerText), text);
  const evaluate = (apiKey) =>
    fetch(`${base}/v0/project/${project}/ofrep/v1/evaluate/flags/people`, {
      method: "POST",
      headers: { "x-api-key": apiKey, "content-type": "application/json" },
      body: JSON.stringify({ context: { targetingKey: "ana" } }),
    });

  return {
    async "an opened link signs in only after a click, and only once"() {
      const visitor = await Visitor.arrive(browser, base, signInPath("x".repeat(43)));
      assert.equal(visitor.page.url(), `${base}/console/sign-in`);
      await visitor.see("::-p-aria(Sign in)");
      assert.deepEqual(visitor.requests.filter((it) => it.includes("/complete")), []);
      await visitor.click("Sign in");
      await visitor.until("the link is refused", async () => /no longer works/.test(await visitor.text("h1")));
      await visitor.see("::-p-aria(Email address)");
      await visitor.leave();
      // The owner's link works, and no script can read its session.
      const tab = await asOwner();
      assert.doesNotMatch(await tab.page.evaluate(() => document.cookie), /waymark/);
      const cookie = (await tab.context.cookies()).find((it) => it.name.endsWith("waymark"));
      assert.ok(cookie.httpOnly && cookie.sameSite === "Lax", JSON.stringify(cookie));
      const again = await Visitor.arrive(browser, base, signInPath(ownerToken));
      await again.click("Sign in");
      await again.until("the used link is refused", async () => /no longer works/.test(await again.text("h1")));
      await again.leave();
    },

    async "a member joins by invitation, creates a key, and is removed"() {
      const flag = { key: "people", name: "People", type: "boolean", enabled: true };
      await api.send("POST", `/v0/project/${project}/feature-flags`, flag).catch(() => {});
      const tab = await asOwner();
      const admin = await signIn(await invite(tab, ADMIN, "Admin"));
      assert.match(await admin.text(".account summary"), new RegExp(ADMIN));

      await admin.open("/keys?new=1");
      await admin.click("Create key");
      await admin.see(".field-error");
      assert.equal(await admin.text(".field-error"), "Enter a name.");
      await admin.type("Name", "Checkout");
      await admin.click("Evaluate flags");
      await admin.click("Create key");
      const secret = await (await admin.see(".code pre")).evaluate((it) => it.innerText);
      assert.match(secret, /^wm_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/);
      await admin.click("Done");
      await admin.until("the key is listed", async () => (await row(admin, "Checkout")).length > 0);
      assert.ok(!(await admin.page.content()).includes(secret), "the secret is shown twice");
      assert.equal((await evaluate(secret)).status, 200);

      await tab.open("/members");
      await tab.click(`Remove ${ADMIN}`);
      await dialog(tab, "Remove");
      await tab.until("the member is gone", async () => (await row(tab, ADMIN)).length === 0);
      removed = { admin, secret, at: Date.now() };
      await tab.open("/audit");
      const entries = await tab.texts("main tbody tr");
      for (const [action, name] of [["Removed member", ADMIN], ["Created API key", "Checkout"], ["Invited", ADMIN]]) {
        assert.ok(entries.some((it) => it.includes(action) && it.includes(name)), `${action} ${name}: ${entries}`);
      }
    },

    async "the email's link signs in the browser that asked, and its waiting tab"() {
      const tab = await asOwner();
      const viewer = await signIn(await invite(tab, VIEWER, "Viewer"));
      await viewer.click("Account: viewer@example.com");
      await viewer.page.$$eval(".account-menu button", (all) => all.find((it) => it.innerText === "Sign out").click());
      await viewer.see("#sign-in-email");
      const known = (await emailsTo(VIEWER)).length;
      await viewer.type("Email address", "viewer");
      await viewer.click("Email me a link");
      await viewer.until("the address is refused", async () => /valid email/.test(await viewer.text("form")));
      await viewer.type("Email address", VIEWER);
      await viewer.click("Email me a link");
      await viewer.until("the page says so", async () => /Check your email/.test(await viewer.text("main")));
      const { token } = await signInEmail(viewer, VIEWER, known);
      const second = await viewer.openTab(signInPath(token));
      await finishSignIn(second);
      await viewer.page.bringToFront();
      await viewer.see(".side nav a");

      // A viewer sees neither pages nor controls of admins.
      await viewer.open("/members");
      assert.deepEqual(await viewer.texts("nav[aria-label=Settings] a"), ["General", "Members", "Source maps"]);
      assert.equal(await viewer.page.$("main .row-actions"), null);
      await viewer.open("/keys");
      assert.match(await viewer.text("main"), /role can’t open/);
      await viewer.leave();
    },

    async "another browser needs the code of the email"() {
      const asks = await Visitor.arrive(browser, base, "");
      const known = (await emailsTo(VIEWER)).length;
      await asks.type("Email address", VIEWER);
      await asks.click("Email me a link");
      const { token, code } = await signInEmail(asks, VIEWER, known);
      const elsewhere = await Visitor.arrive(browser, base, signInPath(token));
      await elsewhere.click("Sign in");
      await elsewhere.type("Code", code === "000000" ? "111111" : "000000");
      await elsewhere.click("Sign in");
      await elsewhere.until("the code is refused", async () => /code/i.test(String(await elsewhere.texts(".field-error"))));
      await elsewhere.type("Code", code);
      await finishSignIn(elsewhere);
      assert.equal(await asks.page.$(".side nav a"), null, "the browser that asked is signed in");
      await asks.leave();
      await elsewhere.leave();
    },

    async "signing out everywhere closes the other tabs"() {
      const tab = await asOwner();
      const first = await signIn(await invite(tab, "everywhere@example.com", "Member"));
      const second = await first.openTab("/errors");
      // Chromium does not draw tabs in the background.
      await first.page.bringToFront();
      await first.open("/settings");
      await first.click("Sign out everywhere");
      await dialog(first, "Sign out everywhere");
      await first.see("#sign-in-email");
      await second.page.bringToFront();
      await second.see("#sign-in-email");
      await first.page.bringToFront();
      await first.page.reload();
      await first.see("#sign-in-email");
      await first.leave();
    },

    async "an invitation switches the organization, and blocks tabs of the other one"() {
      await new Api(base, foreignKey).send("POST", "/v0/invitations", { email: OWNER, role: "viewer" });
      const tab = await asOwner("/members");
      const home = await tab.page.$eval(".account-menu small bdi", (it) => it.textContent);
      await tab.see(".invitations");
      const invited = await tab.text(".invitations b");
      const waiting = await tab.openTab("/members");
      await tab.page.bringToFront();
      await tab.click("Accept");
      await tab.until("the user has joined", async () => String(await tab.texts(".toast")).includes(`You joined ${invited}`));
      await tab.settle();
      assert.equal(await tab.page.$(".invitations"), null);
      await waiting.page.bringToFront();
      await waiting.see("dialog");
      assert.match(await waiting.text("dialog"), new RegExp(`now in ${invited}`));
      await Promise.all([waiting.page.waitForNavigation(), waiting.click(`Open ${invited}`)]);
      await waiting.settle();
      assert.equal(await waiting.page.$("dialog"), null);
      await waiting.page.close();
      await tab.page.bringToFront();
      await tab.page.$eval(".account summary", (it) => it.click());
      await tab.click(home);
      await tab.until("the first organization is back", async () => String(await tab.texts(".toast")).includes(`now in ${home}`));
      await tab.open("/members");
      assert.ok((await row(tab, OWNER)).length > 0);
    },

    async "the last owner stays, and projects are deleted by their slug"() {
      const tab = await asOwner("/members");
      await tab.click(`Leave ${OWNER}`);
      await dialog(tab, "Leave");
      await tab.see(".toast.is-error");
      assert.ok((await row(tab, OWNER)).length > 0);

      await tab.open("/projects?new=1");
      await tab.type("Name", "Über Shop");
      assert.equal(await tab.page.$eval("#project-slug", (it) => it.value), "uber-shop");
      await tab.type("Slug", other);
      await tab.click("Create project");
      await tab.until("the slug is refused", async () => (await tab.page.$("#project-slug[aria-invalid=true]")) !== null);
      await tab.type("Slug", "uber-shop");
      await dialog(tab, "Create project");
      await tab.until("the project is listed", async () => (await row(tab, "uber-shop")).length > 0);
      await tab.until("the switch lists the project", async () => (await tab.text(".project-switch")).includes("Über Shop"));
      await tab.click("Delete Über Shop");
      const isDisabled = () => tab.page.$eval("dialog button[type=submit]", (it) => it.disabled);
      await tab.type("Type uber-shop to confirm", "uber");
      assert.equal(await isDisabled(), true);
      await tab.type("Type uber-shop to confirm", "uber-shop");
      assert.equal(await isDisabled(), false);
      await dialog(tab, "Delete project");
      await tab.until("the project is gone", async () => (await row(tab, "uber-shop")).length === 0);
    },

    async "a removed member's key and session stop working within a minute"() {
      const { admin, secret, at } = removed;
      while ((await evaluate(secret)).status !== 401) {
        assert.ok(Date.now() - at < REMOVAL_MS, "the key of a removed member still works");
        await new Promise((resume) => setTimeout(resume, 1_000));
      }
      await admin.page.bringToFront();
      await admin.until("the session ends", async () => {
        await admin.open("/members");
        return (await admin.page.$("#sign-in-email")) !== null;
      });
      await admin.leave();
    },

    async "another site cannot use the session"() {
      const tab = await asOwner();
      const cookies = await tab.context.cookies();
      const header = cookies.map((it) => `${it.name}=${it.value}`).join("; ");
      const headers = { cookie: header, "content-type": "application/json", "sec-fetch-site": "cross-site" };
      const body = JSON.stringify({ email: "evil@example.com", role: "owner" });
      const response = await fetch(`${base}/v0/invitations`, { method: "POST", headers, body });
      assert.deepEqual([response.status, (await response.json()).code], [403, "cross_site_request"]);
      // A page of another site in the same browser: a form, and a request with credentials.
      const page = `<form method="post" enctype="text/plain" action="${base}/v0/sign-out"></form>`;
      const site = createServer((_, reply) => reply.setHeader("content-type", "text/html").end(page));
      await new Promise((resume) => site.listen(0, "127.0.0.1", resume));
      const evil = await tab.context.newPage();
      await evil.goto(`http://localhost:${site.address().port}/`);
      const request = { method: "POST", mode: "no-cors", credentials: "include", body };
      await evil.evaluate((url, it) => fetch(url, it).catch(() => {}), `${base}/v0/invitations`, request);
      await Promise.all([evil.waitForNavigation(), evil.evaluate(() => document.forms[0].submit())]);
      await evil.close();
      site.close();
      await tab.page.bringToFront();
      await tab.open("/members");
      assert.doesNotMatch(await tab.text("main"), /evil@example.com/);
      assert.ok((await row(tab, OWNER)).length > 0, "the form signed the owner out");
    },

    async "pages for people are accessible and fit narrow windows"() {
      const found = [];
      const tab = await asOwner();
      for (const path of ["/members", "/keys", "/keys?new=1", "/projects", "/source-maps", "/audit", "/settings"]) {
        await tab.open(path);
        found.push(...(await faultsOf(axe, tab, path)));
      }
      await tab.leave();
      owner = undefined;
      assert.deepEqual(found, []);
    },
  };
};

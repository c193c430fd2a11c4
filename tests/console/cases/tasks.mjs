// The twelve tasks of users, each with its most steps: clicks, choices, typed texts and key presses.
// Comments name the steps that skilled users of Sentry or LaunchDarkly need for the same.

import assert from "node:assert/strict";
import { violationsOf, Visitor } from "../visitor.mjs";

/** Maximum time until a waiting page shows an event that arrived: 5 seconds, and as much for a busy machine. */
const MAX_FIRST_EVENT_MS = 10_000;

/** Counts what the user does. A text is one step. */
class User {
  constructor(visitor) {
    this.visitor = visitor;
    this.steps = 0;
  }

  async click(name) {
    this.steps++;
    await this.visitor.click(name);
  }

  async clickOn(selector) {
    this.steps++;
    await (await this.visitor.see(selector)).click();
  }

  async type(label, text) {
    this.steps++;
    await this.visitor.type(label, text);
  }

  async typeIn(selector, text) {
    this.steps++;
    await (await this.visitor.see(selector)).type(text);
  }

  async choose(selector, value) {
    this.steps++;
    await this.visitor.choose(selector, value);
  }

  async press(...keys) {
    for (const key of keys) {
      this.steps++;
      await this.visitor.page.keyboard.press(key);
    }
  }

  async write(text) {
    this.steps++;
    await this.visitor.page.keyboard.type(text);
  }
}

export const tasks = ({ browser, base, project, key, known, api, axe, measured, listErrors }) => {
  const { error } = known;
  const flags = `/v0/project/${project}/feature-flags`;
  const insights = `/v0/projects/${project}/replay-insights`;
  const parameter = (visitor, name) => new URL(visitor.page.url()).searchParams.get(name);
  measured.steps = {};

  /** Runs a task from a page, and checks that it takes at most `maxSteps`. */
  const task = (name, path, maxSteps, run) => [
    `task: ${name} takes at most ${maxSteps} steps`,
    async () => {
      const visitor = await Visitor.enter(browser, base, key, path);
      const user = new User(visitor);
      await run(visitor, user);
      measured.steps[name] = user.steps;
      assert.ok(user.steps <= maxSteps, `${user.steps} steps`);
      await visitor.leave();
    },
  ];

  const statusOf = async () => (await listErrors()).find((it) => it.errorId === error.errorId).status;
  const pointsOf = (count, first) =>
    Array.from({ length: count }, (_, index) => ({
      id: `00000000-0000-4000-8000-00000000${first + index}`, sessionId: `task-${index}`, userId: null, occurredAt: new Date().toISOString(), title: `Point ${index}`, excerpt: "",
    }));

  return Object.fromEntries([
    // Sentry: 2 (Issues, the first one).
    task("find what broke", "", 1, async (visitor, user) => {
      await user.clickOn(".rows a.row[href*='/error?']");
      await visitor.see(".exception");
    }),

    // Sentry: 2 (open a tag's values, one of them).
    task("see release and browser of an error", `/error?id=${error.errorId}`, 1, async (visitor, user) => {
      await visitor.see(".shares");
      assert.match(await visitor.text(".facts"), /shop@2\.4\.\d/);
      assert.match(await visitor.text(".shares"), /Release[\s\S]*Browser[\s\S]*Chrome/);
      await user.clickOn(".shares button::-p-text(Chrome)");
      await visitor.until("the page is filtered", () => parameter(visitor, "f") === "browser.is.Chrome");
      assert.match(await visitor.text(".filtered"), /Filtered: Chrome · Show all/);
    }),

    // Sentry: 3 (the issue, an older event, copy its link).
    task("open an event and share it", `/errors`, 3, async (visitor, user) => {
      await visitor.context.overridePermissions(base, ["clipboard-read", "clipboard-sanitized-write"]);
      await user.clickOn(".errors-table .title::-p-text(TypeError)");
      await visitor.see(".stepper");
      assert.match(await visitor.text(".stepper"), /Event 1 of \d+/);
      await user.click("Older");
      await visitor.until("the older event is shown", async () => /Event 2 of/.test(await visitor.text(".stepper")));
      await user.click("Copy link to this event");
      const link = await visitor.page.evaluate(() => navigator.clipboard.readText());
      const other = await Visitor.enter(browser, base, key, link.slice(`${base}/console`.length));
      await other.see(".stepper");
      assert.match(await other.text(".stepper"), /Event 2 of/);
      await other.leave();
    }),

    // Sentry: 4 (j, x, the button Resolve, Undo).
    task("triage by keyboard", "/errors?sort=count", 3, async (visitor, user) => {
      await visitor.see(".errors-table .title");
      await user.press("j", "e");
      await visitor.see(".toast button.link");
      await visitor.until("the error is resolved", async () => (await statusOf()) === "resolved");
      await user.press("z");
      await visitor.until("the error is open again", async () => (await statusOf()) === "open");
    }),

    // Sentry: 9 (a key, an operator and a value for each of two filters, the period, the text, Enter).
    task("filter in words", "/errors?range=90d", 3, async (visitor, user) => {
      await user.press("/");
      await user.write("unhandled payments in chrome since yesterday");
      await visitor.see(".preview");
      const preview = await visitor.text(".preview");
      assert.match(preview, /Unhandled/);
      assert.match(preview, /Browser is Chrome/);
      assert.match(preview, /Search titles for “payments”/);
      assert.ok(!visitor.page.url().includes("f="), "nothing changes before Enter");
      await user.press("Enter");
      await visitor.until("the filters apply", () => new URL(visitor.page.url()).searchParams.getAll("f").length === 2);
      assert.ok(parameter(visitor, "from") && !parameter(visitor, "range"), "the range is set");
      assert.deepEqual(await visitor.texts(".ignored-word"), ["payments"]);
    }),

    // Sentry: 4 (the search box, the key, the operator, the value).
    task("add a filter with the keyboard", "/errors", 4, async (visitor, user) => {
      await user.clickOn(".chips > .add-chip > button");
      await visitor.see("[role=combobox]");
      await user.write("browser");
      await user.press("Enter");
      assert.ok(!visitor.page.url().includes("f="), "nothing applies until a value is chosen");
      await user.press("Enter");
      await visitor.until("a filter applies", () => /^browser\.is\./.test(parameter(visitor, "f") ?? ""));
    }),

    // LaunchDarkly: 9 (Segments, Create segment, name, Create, Add rule, attribute, operator, values, Save).
    task("create a segment", "/segments", 7, async (visitor, user) => {
      await user.click("New segment");
      await visitor.see("form");
      await user.write("task-staff");
      await user.type("Name", "Task staff");
      await user.type("Attribute of condition 1", "email");
      await user.choose('[aria-label="Operator of condition 1"]', "ends_with");
      await user.type("Values of condition 1", "@shop.example");
      await user.click("Create segment");
      await visitor.until("the segment is created", () => parameter(visitor, "key") === "task-staff");
    }),

    // LaunchDarkly: 19 (Create flag, name, Create; Add rule, kind, segment, variation; edit the default,
    // percentage, weight; toggle, Review, Save; for the test: context, key, attribute, value, Evaluate;
    // History) and the same edits again, because no version can be restored.
    task("flag with rollout, segment, test, history and restore", "/flags", 16, async (visitor, user) => {
      const flag = () => api.send("GET", `${flags}/task-rollout`);
      await user.click("New flag");
      await visitor.see("form");
      await user.write("task-rollout");
      await user.type("Name", "Task rollout");
      await user.click("Add rule");
      await user.choose('[aria-label="Operator of condition 1"]', "in_segment");
      await user.choose('[aria-label="Segment of condition 1"]', "task-staff");
      await user.choose('[aria-label="Everyone else gets"]', "rollout");
      await user.type("Everyone else gets: weight of on", "10");
      await user.click("Create flag");
      await visitor.until("the flag is created", () => parameter(visitor, "key") === "task-rollout");
      assert.deepEqual((await flag()).fallthrough.rollout, [{ variant: "on", weight: 10 }, { variant: "off", weight: 90 }]);
      // The flag is off, and the test shows what it would serve.
      await user.click("Add attribute");
      await user.type("Attribute 1", "email");
      await user.type("Value 1", "ana@shop.example");
      await user.click("Evaluate");
      await visitor.see(".outcome");
      assert.match(await visitor.text(".outcome"), /Would serve on[\s\S]*rule 1/);
      await user.click("task-rollout");
      await visitor.until("the flag is on", async () => (await flag()).enabled);
      // The new entry moves the button down.
      await visitor.until("the history has the change", async () => (await visitor.text(".history")).includes("version 2"));
      await user.click("Restore version 1");
      await visitor.see("dialog .differences");
      await user.click("Restore");
      await visitor.until("version 1 is restored", async () => !(await flag()).enabled);
      await api.send("PATCH", `${flags}/task-rollout`, { archived: true });
      await api.send("DELETE", `${flags}/task-rollout`);
      await api.send("DELETE", `/v0/project/${project}/segments/task-staff`);
    }),

    // Sentry: 9 (two checkboxes, Merge, Confirm; the issue, Merged Issues, a checkbox, Unmerge, Confirm).
    task("merge, split and undo insights", "/insights", 8, async (visitor, user) => {
      const one = await api.send("POST", insights, { title: "Task one", painPoints: pointsOf(2, 1001) });
      const other = await api.send("POST", insights, { title: "Task other", painPoints: pointsOf(2, 1101) });
      const read = (it) => api.send("GET", `${insights}/${it.id}`);
      await visitor.open(`/insight?id=${one.id}`);
      await user.click("Merge into…");
      await user.click("Task other");
      assert.match(await visitor.text("dialog"), /2 pain points[\s\S]*then has 4 pain points[\s\S]*undo/);
      await user.clickOn("dialog button.danger");
      await visitor.until("they are merged", async () => (await read(one)).status === "merged");
      await user.click("Undo");
      await visitor.until("the merge is undone", async () => (await read(other)).occurrences === 2);
      await visitor.open(`/insight?id=${other.id}`);
      await user.clickOn(".table tbody input");
      await user.click("Split off…");
      await visitor.see("dialog form");
      await user.press("Enter");
      await visitor.until("a pain point is split off", async () => (await read(other)).occurrences === 1);
      await user.click("Undo");
      await visitor.until("the split is undone", async () => (await read(other)).occurrences === 2);
    }),

    // Grafana: 4 (Ctrl and a click on the plot, the text, a tag, Save). Sentry has releases only.
    task("add a marker", "", 3, async (visitor, user) => {
      await user.click("Markers");
      await user.type("Title", "Task marker");
      await user.press("Enter");
      await visitor.until("the marker is listed", async () => (await visitor.texts(".row-title")).some((it) => it.startsWith("Task marker")));
    }),

    // Sentry: 5 (the account, User settings, Notifications, the type, its choice) and 2 for an address.
    task("change email settings", "/settings", 3, async (visitor, user) => {
      const digest = async () => (await api.send("GET", "/v0/notifications/email-preferences")).find((it) => it.type === "weekly_digest").emailEnabled;
      const before = await digest();
      await user.typeIn("#email", "task@shop.example");
      await user.press("Enter");
      await visitor.until("the address awaits its confirmation", async () => (await api.send("GET", "/v0/notifications/email-address")).pendingEmail === "task@shop.example");
      await user.clickOn('[aria-labelledby="type-weekly_digest"]');
      await visitor.until("the digest is switched", async () => (await digest()) !== before);
    }),

    // LaunchDarkly: 3 (Ctrl and K, the name, Enter).
    task("go to a flag", "/errors", 3, async (visitor, user) => {
      await visitor.page.keyboard.down("Control");
      await user.press("k");
      await visitor.page.keyboard.up("Control");
      await visitor.see("dialog [role=combobox]");
      await user.write("hostile");
      await visitor.until("the flag is found", async () => (await visitor.texts("dialog [role=option]")).join().includes("hostile"));
      await user.press("Enter");
      await visitor.until("the flag is open", () => visitor.page.url().includes("/flag?"));
    }),

    // Sentry: 1 (the browser's address has everything).
    task("send a link", "/errors?f=browser.is.Chrome", 1, async (visitor, user) => {
      await visitor.see(".errors-table .title");
      await user.clickOn(".errors-table tbody tr td.number");
      await visitor.see(".filtered");
      // The address has all that another user needs.
      const other = await Visitor.enter(browser, base, key, visitor.page.url().slice(`${base}/console`.length));
      assert.match(await other.text(".filtered"), /Chrome/);
      await other.click("Show all");
      await other.until("all events are shown", () => parameter(other, "f") === null);
      await other.leave();
    }),

    // Sentry: 3 (the platform, Send a test event, the event).
    task("onboard from nothing", "", 2, async (visitor, user) => {
      await visitor.mock("/errors/categories", () => ({ body: [] }));
      await visitor.mock("/timeseries/query", () => ({ body: [] }));
      await visitor.mock("/errors/query", () => ({ body: { items: [], nextCursor: null } }));
      await visitor.open("");
      await visitor.see(".onboarding");
      assert.match(await visitor.text(".onboarding"), /npm install @sentry\/browser[\s\S]*release[\s\S]*environment/);
      assert.deepEqual(await violationsOf(axe, visitor, "onboarding"), []);
      // Other tests send events to the project, too.
      await visitor.mock("/errors/query", async (request) => {
        const body = { ...JSON.parse(await request.fetchPostData()), searchQuery: "Test event from the console" };
        return { body: await api.send("POST", new URL(request.url()).pathname, body) };
      });
      const received = visitor.page.waitForResponse((it) => it.url().endsWith("/store/"));
      await user.click("Send a test event");
      await received;
      const arrived = performance.now();
      await visitor.see(".first-event a");
      measured.firstEventMs = Math.round(performance.now() - arrived);
      assert.ok(measured.firstEventMs <= MAX_FIRST_EVENT_MS, `the first event shows after ${measured.firstEventMs} ms`);
      await user.clickOn(".first-event a");
      await visitor.see(".exception");
    }),
  ]);
};

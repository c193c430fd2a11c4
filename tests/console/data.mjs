// Test data, sent through the API as an application would.

export class Api {
  constructor(base, key, store) {
    this.base = base;
    this.key = key;
    this.store = store;
  }

  async send(method, path, body) {
    const response = await fetch(this.base + path, {
      method,
      headers: { "x-api-key": this.key, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }
}

// Texts that cause damage if the page interprets them.
export const HOSTILE = [
  "<script>window.pwned = 1</script>",
  '<img src=x onerror="window.pwned = 2">',
  '"><svg onload=window.pwned=3>',
  "javascript:window.pwned=4",
  "{{constructor.constructor('window.pwned = 5')()}}",
  "${window.pwned = 6}",
  "<style>body { display: none }</style>",
  "</title></textarea></select><iframe srcdoc='<script>parent.pwned = 7</script>'>",
  "\u202Egnitset\u2066 مرحبا بالعالم \u0007",
  `long ${"x".repeat(1000)}`,
];

const DAY = 86_400_000;
const id = (number) => number.toString(16).padStart(32, "0");
const uuid = (number) => `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;

function event(number, at, type, value, more = {}) {
  return {
    event_id: id(number),
    timestamp: at / 1000,
    platform: "javascript",
    environment: number % 5 ? "production" : "staging",
    release: number % 2 ? "shop@2.4.0" : "shop@2.4.1",
    transaction: "/checkout",
    user: { id: `user-${number % 7}` },
    contexts: { browser: { name: number % 3 ? "Chrome" : "Firefox", version: "140" } },
    exception: {
      values: [
        {
          type,
          value,
          mechanism: { handled: number % 4 === 0 },
          stacktrace: {
            frames: [
              { filename: "node_modules/react-dom/client.js", function: "dispatch", lineno: 9, in_app: false },
              { filename: "src/checkout.ts", function: type, lineno: 41, in_app: true, pre_context: ["a"], context_line: "throw it", post_context: ["b"] },
            ],
          },
        },
      ],
    },
    breadcrumbs: { values: [{ timestamp: at / 1000 - 3, category: "ui.click", message: "button" }] },
    ...more,
  };
}

/** Sends events, two at a time. All events of an error have the same title, so their order does not matter. */
async function sendAll(api, events) {
  const left = [...events];
  const sender = async () => {
    for (let it = left.shift(); it; it = left.shift()) await api.send("POST", api.store, it);
  };
  await Promise.all([sender(), sender()]);
}

/** Fills the second project with a few errors. */
export async function fillOther(api) {
  const now = Date.now();
  const events = Array.from({ length: 5 }, (_, number) => event(500 + number, now - number * DAY, "StockError", "none left"));
  await sendAll(api, events);
}

/** Two errors that differ only in their ids. */
export const TWINS = "TwinError";

/** Fills a project. Returns the resources that tests use. */
export async function fill(api, project) {
  const now = Date.now();
  const events = [];
  for (let number = 1; number <= 24; number++) {
    const [type, value] = number % 3 ? ["TypeError", "cart is undefined"] : ["TimeoutError", "no answer in 2 s"];
    events.push(event(number, now - (number / 4) * DAY, type, value));
  }
  for (let number = 300; number < 307; number++) {
    const fingerprint = [number < 305 ? "one" : "other"];
    events.push(event(number, now - (number - 299) * 7_200_000, TWINS, "which one", { fingerprint }));
  }
  HOSTILE.forEach((text, index) => {
    const number = 100 + index;
    events.push(
      event(number, now - (index + 1) * 3_600_000, `Hostile${index}`, text, {
        transaction: text,
        environment: text.slice(0, 60),
        tags: { [text.slice(0, 30)]: text },
        user: { id: text },
        breadcrumbs: { values: [{ category: text, message: text, level: "error", data: { [text.slice(0, 20)]: text } }] },
      }),
    );
  });
  await sendAll(api, events);

  const collection = await api.send("POST", `/v0/projects/${project}/event-marker-collections`, { name: HOSTILE[1], description: HOSTILE[0] });
  const markers = HOSTILE.map((name, index) => ({
    name: name.replace("\u0007", "").slice(0, 200),
    description: name,
    occurredAt: new Date(now - (index / 2 + 0.5) * DAY).toISOString(),
    attributes: { [name.slice(0, 90)]: name.slice(0, 1000) },
  }));
  await api.send("POST", `/v0/projects/${project}/event-marker-collections/${collection.id}/events`, { events: markers });

  const points = Array.from({ length: 10 }, (_, number) => ({
    id: uuid(number + 1),
    sessionId: HOSTILE[number % 6],
    userId: `user-${number}`,
    occurredAt: new Date(now - number * 3_600_000).toISOString(),
    title: `Clicked ${number + 1} times`,
    excerpt: HOSTILE[number % HOSTILE.length].slice(0, 1000),
  }));
  const insight = await api.send("POST", `/v0/projects/${project}/replay-insights`, { title: HOSTILE[2], description: HOSTILE[0], painPoints: points });
  await api.send("POST", `/v0/project/${project}/segments`, {
    key: "hostile",
    name: HOSTILE[1],
    conditions: [{ attribute: HOSTILE[2], operator: "equals", values: HOSTILE.slice(0, 6) }],
  });
  await api.send("POST", `/v0/project/${project}/feature-flags`, {
    key: "hostile",
    name: HOSTILE[1],
    type: "string",
    description: HOSTILE.join("\n").slice(0, 2000),
    variants: [{ key: "one", name: HOSTILE[0], value: HOSTILE[2] }],
    rules: [{ name: HOSTILE[5], conditions: [{ attribute: HOSTILE[2], operator: "equals", values: HOSTILE.slice(0, 6) }], serve: { variant: "one" } }],
  });
  const { items } = await api.send("GET", `/v0/projects/${project}/errors?limit=100`);
  // No test deletes this error, so concurrent tests can open it.
  const error = items.find((it) => it.type === "TypeError");
  return { error, insight: insight.id, collection: collection.id };
}

/** Names the browser of a `user-agent` header: “Chrome on macOS”. */

// Later entries contain the tokens of earlier ones, so the most specific comes first.
const BROWSERS: [token: RegExp, name: string][] = [
  [/Edg(e|A|iOS)?\//, "Edge"],
  [/OPR\//, "Opera"],
  [/(Firefox|FxiOS)\//, "Firefox"],
  [/(Chrome|Chromium|CriOS)\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: [token: RegExp, name: string][] = [
  [/iPhone|iPad/, "iOS"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "macOS"],
  [/Linux|X11/, "Linux"],
];

const nameIn = (all: [RegExp, string][], text: string) =>
  all.find(([token]) => token.test(text))?.[1];

/** Returns `null` without a header, and the start of the header for programs. */
export function browserOf(userAgent: string | null): string | null {
  if (!userAgent) return null;
  const browser = nameIn(BROWSERS, userAgent);
  const system = nameIn(SYSTEMS, userAgent);
  if (!browser) return userAgent.split(" ")[0] ?? null;
  return system ? `${browser} on ${system}` : browser;
}

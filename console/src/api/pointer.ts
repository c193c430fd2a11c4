/** Returns the path of a violation for people: `/rules/0/conditions/1` is “rule 1, condition 2”. */
export function describePointer(pointer: string): string {
  const words: string[] = [];
  for (const part of pointer.split("/").slice(1)) {
    const last = words.at(-1);
    if (/^\d+$/.test(part) && last) {
      words[words.length - 1] = `${last.replace(/s$/, "")} ${Number(part) + 1}`;
    } else words.push(part.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
  }
  return words.join(", ") || pointer.replace(/^\w+:/, "") || "request";
}

const EMPTY = /^(required|too_short|too_few_items)$/;

/** Fields whose violations have a shorter text in a form than in the API. */
const FIELD_MESSAGES: [pointer: RegExp, code: RegExp, message: string][] = [
  [/^\/name$/, EMPTY, "Enter a name."],
  [/^\/events\/\d+\/name$/, EMPTY, "Enter a title."],
  [/\/key$/, EMPTY, "Enter a key."],
  [/\/attribute$/, EMPTY, "Enter an attribute."],
  [/\/values$/, EMPTY, "Enter a value."],
  [/\/conditions$/, EMPTY, "Add a condition."],
  [/^\/email$/, /^(required|too_short|invalid_format)$/, "Enter a valid email address."],
];

/** Returns the text that a form shows for a violation. */
export function fieldMessage(violation: {
  pointer: string;
  code: string;
  message: string;
}): string {
  const { pointer, code, message } = violation;
  const found = FIELD_MESSAGES.find(([field, codes]) => field.test(pointer) && codes.test(code));
  return found?.[2] ?? message;
}

/** Returns the value at a JSON pointer, or `undefined`. */
function valueAt(body: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .reduce<unknown>((value, name) => {
      const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
      return typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined;
    }, body);
}

/** `true` if the value at a pointer has changed since `sent`. */
export function isChangedAt(pointer: string, sent: unknown, now: unknown): boolean {
  return JSON.stringify(valueAt(sent, pointer)) !== JSON.stringify(valueAt(now, pointer));
}

/** Returns the value under a name from outside; `constructor` and other inherited names have none. */
export function own<T>(values: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

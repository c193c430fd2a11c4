/** Returns an object's own value at a key. A key such as `toString` finds nothing inherited. */
export function own<T>(all: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(all, key) ? all[key] : undefined;
}

/** The errors that were listed last, for moving to the next one by key. */

let listed: readonly string[] = [];

export function setListed(ids: readonly string[]): void {
  listed = ids;
}

/** Returns the error `step` rows after another, if both were listed. */
export function neighbor(id: string, step: number): string | undefined {
  const index = listed.indexOf(id);
  return index < 0 ? undefined : listed[index + step];
}

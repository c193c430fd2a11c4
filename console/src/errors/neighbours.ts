/** The errors that were listed last, so that from one the next is a key away. */

let listed: readonly string[] = [];

export function rememberListed(ids: readonly string[]): void {
  listed = ids;
}

/** The error so many rows after one, if both were listed. */
export function neighbour(id: string, step: number): string | undefined {
  const index = listed.indexOf(id);
  return index < 0 ? undefined : listed[index + step];
}

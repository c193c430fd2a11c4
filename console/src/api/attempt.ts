/** The attempts at one form: what is sent again, after nobody knows what, is carried out once. */

import { useState } from "preact/hooks";

export interface KeyHeader {
  "Idempotency-Key": string;
}

export class Attempts {
  #last: { content: string; key: string } | null = null;

  /** The key for this content: the same until it succeeded or something else is sent. */
  keyFor(...content: unknown[]): KeyHeader {
    const text = JSON.stringify(content);
    if (this.#last?.content !== text) this.#last = { content: text, key: crypto.randomUUID() };
    return { "Idempotency-Key": this.#last.key };
  }

  /** What is sent next is meant anew, even if it is the same. */
  succeeded(): void {
    this.#last = null;
  }
}

export function useAttempts(): Attempts {
  return useState(() => new Attempts())[0];
}

/**
 * Idempotency keys of a form: a request that is sent again after a lost response is applied once.
 */

import { useState } from "preact/hooks";

export interface KeyHeader {
  "Idempotency-Key": string;
}

export class Attempts {
  #last: { content: string; key: string } | null = null;

  /**
   * Returns the key for this content: the last one until a request succeeds or the content changes.
   */
  keyFor(...content: unknown[]): KeyHeader {
    const text = JSON.stringify(content);
    if (this.#last?.content !== text) this.#last = { content: text, key: crypto.randomUUID() };
    return { "Idempotency-Key": this.#last.key };
  }

  /** Ends the attempt: the next request gets a new key, even with the same content. */
  succeeded(): void {
    this.#last = null;
  }
}

export function useAttempts(): Attempts {
  return useState(() => new Attempts())[0];
}

/** A value outside of components, such as the messages of the page. Components show it live. */

import { useLayoutEffect, useState } from "preact/hooks";

export class Store<T> {
  #value: T;
  #watchers = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    for (const watcher of this.#watchers) watcher(value);
  }

  /** Calls `watcher` with each new value. Returns a function that ends this. */
  watch(watcher: (value: T) => void): () => void {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
    };
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, set] = useState(store.value);
  useLayoutEffect(() => {
    // The value can have changed before the effect.
    set(() => store.value);
    return store.watch((it) => set(() => it));
  }, [store]);
  return value;
}

// This browser keeps these values for the page. Where it refuses storage (private windows), the page keeps them as long
// as it is open.

export type Kept = Pick<Storage, "getItem" | "setItem" | "removeItem">;

function whileOpen(): Kept {
  const memory = new Map<string, string>();
  return {
    getItem: (key) => memory.get(key) ?? null,
    setItem: (key, value) => void memory.set(key, value),
    removeItem: (key) => void memory.delete(key),
  };
}

const pageMemory = whileOpen();
const tabMemory = whileOpen();

function browserStorage(): Kept {
  try {
    return window.localStorage;
  } catch {
    return pageMemory;
  }
}

/** Returns the storage of this tab alone; it survives a reload. */
export function tabStorage(): Kept {
  try {
    return window.sessionStorage;
  } catch {
    return tabMemory;
  }
}

export function read(key: string, storage: Kept = browserStorage()): string | undefined {
  return storage.getItem(`holdfast.${key}`) ?? undefined;
}

export function keep(key: string, value: string | undefined, storage: Kept = browserStorage()): void {
  try {
    if (value === undefined) storage.removeItem(`holdfast.${key}`);
    else storage.setItem(`holdfast.${key}`, value);
  } catch {
    // The quota is exhausted: the page works on without storage.
  }
}

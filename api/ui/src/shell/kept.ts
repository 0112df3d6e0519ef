// What this browser keeps for the page. Where storage is refused (private windows, full disks), nothing is kept and nothing breaks.

export type Kept = Pick<Storage, "getItem" | "setItem" | "removeItem">;

const nothing: Kept = { getItem: () => null, setItem: () => {}, removeItem: () => {} };

function browserStorage(): Kept {
  try {
    return window.localStorage;
  } catch {
    return nothing;
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
    // The quota is used up: the page works on without it.
  }
}

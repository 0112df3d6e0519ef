// This file describes a file in short.

/** Returns 1.4 MB, for example. */
export function sizeOf(bytes: number): string {
  const units = ["B", "KB", "MB", "GB"];
  let [size, unit] = [bytes, 0];
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 || size >= 9.95 ? Math.round(size) : Math.round(size * 10) / 10} ${units[unit]}`;
}

/** Returns the type of a file for a reader: the ending of its name, or the second half of its media type. */
export function kindOf({ name, mediaType }: { name: string; mediaType: string }): string {
  const ending = /\.([A-Za-z0-9]{1,5})$/.exec(name)?.[1];
  return (ending ?? mediaType.split("/").at(-1)?.split(/[.+;-]/).at(-1) ?? "").toUpperCase();
}

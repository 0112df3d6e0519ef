// A sent picture is still in this browser, so the page shows it without the server, also while the server is away.

/** Older pictures come from the server. */
const MOST = 20;

const previews = new Map<string, string>();

export function keepPreview(id: string, address: string): void {
  previews.set(id, address);
  for (const [oldest, address] of previews) {
    if (previews.size <= MOST) return;
    previews.delete(oldest);
    URL.revokeObjectURL(address);
  }
}

export function previewOf(id: string): string | undefined {
  return previews.get(id);
}

/** Pictures belong to their reader. */
export function forgetPreviews(): void {
  previews.forEach((address) => URL.revokeObjectURL(address));
  previews.clear();
}

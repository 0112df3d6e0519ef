// The browser saves bytes that the page has fetched.

export function save(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(bytes);
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  // The browser has the bytes by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

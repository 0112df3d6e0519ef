// The form in which a message is said differently: what it begins with, for as long as it is open.

/** When the message says this, and that could not be said instead of it. */
export function formAfter(form: string | undefined, text: string, unsent: string | undefined): string | undefined {
  // It can be mended in its place, whatever is said elsewhere meanwhile.
  if (unsent !== undefined) return unsent;
  // It was sent again from elsewhere, or has arrived after all.
  return form === text ? undefined : form;
}

// The writer edits a message in this form; this file decides its initial text, for as long as it is open.

/** Returns the form's text for a message with this text and this unsent edit. */
export function formAfter(form: string | undefined, text: string, unsent: string | undefined): string | undefined {
  // The writer can correct the edit in its place, even during other messages.
  if (unsent !== undefined) return unsent;
  // Another component has sent the edit again, or it has arrived.
  return form === text ? undefined : form;
}

// Tells a click on Stop from the second click of a double click on Send, whose place Stop takes.

/** Systems count two clicks within this time as a double click, unless their user has chosen another time. */
const DOUBLE_CLICK_MS = 500;

type Click = Pick<UIEvent, "detail" | "timeStamp">;

/** Whether the click belongs to the click on Send at `sentAt`. A key press is a click without a count. */
export function isOfSend({ detail, timeStamp }: Click, sentAt: number): boolean {
  return detail === 2 || (detail > 0 && timeStamp - sentAt < DOUBLE_CLICK_MS);
}

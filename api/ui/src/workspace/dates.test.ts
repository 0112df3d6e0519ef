import { expect, test } from "vitest";

import { dayOf, dayText, isPassed, today } from "./dates";

const now = new Date(2026, 10, 26, 23, 30);

test("a day is the day of its time in UTC", () => {
  expect([dayOf("2026-12-01T00:00:00.000Z"), dayOf(null), dayOf(undefined)]).toEqual(["2026-12-01", "", ""]);
});

test("a day of another year shows the year", () => {
  expect(dayText("2026-12-01T00:00:00.000Z", "en", now)).toBe("Dec 1");
  expect(dayText("2027-01-02T00:00:00.000Z", "en", now)).toBe("Jan 2, 2027");
  expect(dayText("soon", "en", now)).toBe("soon");
});

test("today is the reader's day", () => {
  expect([today(now), today(now, 7)]).toEqual(["2026-11-26", "2026-12-03"]);
});

test("a day has passed when the next one has begun", () => {
  expect([isPassed("2026-11-25T00:00:00Z", now), isPassed("2026-11-26T00:00:00Z", now), isPassed(null, now)]).toEqual([true, false, false]);
});

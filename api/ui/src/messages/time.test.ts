import { expect, test } from "vitest";

import { en } from "../i18n/en";
import { durationIn } from "./duration";
import { agoTime, fullTime, shortTime } from "./time";

const now = new Date(2026, 10, 22, 9, 30);
const short = (at: Date, language = "en-GB") => shortTime(at, now, language, "yesterday");

const ago = (ms: number, language = "en-GB") => agoTime(new Date(now.getTime() - ms), now, language, { now: "now", yesterday: "yesterday" });
const MINUTE = 60_000;

test.each([
  [0, "now"],
  [59_999, "now"],
  [-5 * MINUTE, "now"],
  [MINUTE, "1 min ago"],
  [59 * MINUTE, "59 min ago"],
  [60 * MINUTE, "1 hr ago"],
  [9 * 60 * MINUTE, "9 hr ago"],
  [10 * 60 * MINUTE, "yesterday 23:30"],
  [72 * 60 * MINUTE, "19 Nov 09:30"],
])("%d ms before half past nine is %s", (ms, text) => expect(ago(ms)).toBe(text));
test("half an hour ago is not yesterday", () => {
  const [at, then] = [new Date(2026, 10, 21, 23, 50), new Date(2026, 10, 22, 0, 20)];
  expect(agoTime(at, then, "en-GB", { now: "now", yesterday: "yesterday" })).toBe("30 min ago");
});
test("Chinese has its own words", () => expect(ago(5 * MINUTE, "zh")).toBe("5分钟前"));

test("a time of today is a clock time", () => expect(short(new Date(2026, 10, 22, 8, 5))).toBe("08:05"));
test("yesterday has its name, however few hours ago", () => expect(short(new Date(2026, 10, 21, 23, 59))).toBe("yesterday 23:59"));
test("older days have their date", () => expect(short(new Date(2026, 10, 19, 8, 5))).toBe("19 Nov 08:05"));
test("other years have their year", () => expect(short(new Date(2025, 10, 19, 8, 5))).toBe("19 Nov 2025 08:05"));
test("the clock is the language's", () => expect(short(new Date(2026, 10, 19, 8, 5), "zh")).toBe("11月19日 08:05"));
test("the tooltip has everything", () => expect(fullTime(now, "en-GB")).toContain("22 November 2026"));

test.each([
  [0, "0 ms"],
  [12.4, "12 ms"],
  [1_000, "1 s"],
  [1_449, "1.4 s"],
  [9_949, "9.9 s"],
  [9_960, "10 s"],
  [59_400, "59 s"],
  [59_600, "1 min 0 s"],
  [125_000, "2 min 5 s"],
  [3_780_000, "1 h 3 min"],
])("%d ms are %s", (ms, text) => expect(durationIn(en.duration, ms)).toBe(text));

import { expect, test } from "vitest";

import { en } from "../i18n/en";
import { durationIn } from "./duration";
import { fullTime, shortTime } from "./time";

const now = new Date(2026, 10, 22, 9, 30);
const short = (at: Date, language = "en-GB") => shortTime(at, now, language, "yesterday");

test("today is told by the clock", () => expect(short(new Date(2026, 10, 22, 8, 5))).toBe("08:05"));
test("yesterday is named, however few hours ago", () => expect(short(new Date(2026, 10, 21, 23, 59))).toBe("yesterday 23:59"));
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

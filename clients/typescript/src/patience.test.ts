import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Waiting, patiently } from "./patience.js";
import { Problem, UNREACHABLE } from "./problem.js";
import { SILENCE_MS } from "./watchdog.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("a sleeping computer does not count as waiting", () => {
  const waiting = new Waiting();
  vi.setSystemTime(Date.now() + 30_000);
  expect(waiting.after(SILENCE_MS)).toBe(30_000);
  vi.setSystemTime(Date.now() + 600_000);
  expect(waiting.after(SILENCE_MS)).toBe(30_000 + SILENCE_MS);
  waiting.restart();
  expect(waiting.after(SILENCE_MS)).toBe(0);
});

const away = new Problem(0, UNREACHABLE, "It is away.");
const { signal } = new AbortController();

it("a computer that slept asks again", async () => {
  const ask = vi.fn().mockResolvedValue("there").mockImplementationOnce(async () => {
    vi.setSystemTime(Date.now() + 600_000);
    throw away;
  });
  const outcome = patiently(ask, { signal });
  await vi.runAllTimersAsync();
  expect(await outcome).toBe("there");
});

it("an endless caller keeps asking a server that is away, and its tries become rare", async () => {
  const waits: number[] = [];
  const ask = vi.fn().mockRejectedValue(away);
  const gone = new AbortController();
  const onTrouble = (wait: number) => void (waits.push(wait) === 400 && gone.abort(new Error("gone")));
  const outcome = expect(patiently(ask, { signal: gone.signal, isEndless: true, onTrouble })).rejects.toThrow("gone");
  await vi.runAllTimersAsync();
  await outcome;
  expect(Math.max(...waits.slice(0, 100))).toBeLessThanOrEqual(1_500);
  expect(Math.min(...waits.slice(-50))).toBeGreaterThanOrEqual(15_000);
});

it("an endless caller gives up on a server that responds and fails", async () => {
  const broken = new Problem(500, "internal_error", "It is broken.");
  const outcome = expect(patiently(vi.fn().mockRejectedValue(broken), { signal, isEndless: true })).rejects.toBe(broken);
  await vi.runAllTimersAsync();
  await outcome;
});

it("a caller gives up at its deadline", async () => {
  const ask = vi.fn().mockRejectedValue(away);
  const outcome = expect(patiently(ask, { signal, patience: 60_000 })).rejects.toBe(away);
  await vi.runAllTimersAsync();
  await outcome;
  expect(ask.mock.calls.length).toBeGreaterThan(5);
});

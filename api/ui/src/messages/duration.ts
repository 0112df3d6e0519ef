// This file formats durations in words.

export type DurationWords = {
  milliseconds(n: number): string;
  seconds(n: string): string;
  minutes(m: number, s: number): string;
  hours(h: number, m: number): string;
};

/** The precision suits a reader: 12 ms, 1.4 s, 23 s, 2 min 5 s, 1 h 3 min. */
export function durationIn(words: DurationWords, ms: number): string {
  if (ms < 1_000) return words.milliseconds(Math.round(ms));
  if (ms < 9_950) return words.seconds((Math.round(ms / 100) / 10).toString());
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return words.seconds(seconds.toString());
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return words.minutes(minutes, seconds % 60);
  return words.hours(Math.floor(minutes / 60), minutes % 60);
}

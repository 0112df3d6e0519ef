import { describe, expect, it } from "vitest";

import { FrameReader, type Frame, LONGEST_EVENT } from "./sse.js";

const bytes = (text: string) => new TextEncoder().encode(text);

const STREAM = [
  'retry: 1000\n\nid: 1-1\ndata: {"a":1}\n\n',
  ": hb\ndata: grüße 你好 🙂\n\r\n",
  "event: x\r\ndata:first\rdata: second\r\n\r\n",
  "data\n\nid: 2\0\ndata:  two\n\n",
].join("");

const FRAMES: Frame[] = [
  { id: "1-1", event: undefined, data: '{"a":1}' },
  { id: undefined, event: undefined, data: "grüße 你好 🙂" },
  { id: undefined, event: "x", data: "first\nsecond" },
  { id: undefined, event: undefined, data: "" },
  { id: undefined, event: undefined, data: " two" },
];

describe("the frame reader", () => {
  it("returns equal frames however the network splits the stream", () => {
    const whole = bytes(STREAM);
    for (let size = 1; size <= whole.length; size += 1) {
      const reader = new FrameReader();
      const frames: Frame[] = [];
      for (let at = 0; at < whole.length; at += size) frames.push(...reader.read(whole.subarray(at, at + size)));
      expect(frames, `pieces of ${size} bytes`).toEqual(FRAMES);
    }
  });

  it("returns no incomplete frame", () => {
    expect(new FrameReader().read(bytes('data: {"a":1}\n\ndata: {"b"'))).toHaveLength(1);
    expect(new FrameReader().read(bytes("data: a\n"))).toEqual([]);
  });

  it("reads a line of many pieces in linear time", () => {
    const reader = new FrameReader();
    const piece = bytes("x".repeat(100));
    expect(reader.read(bytes("data: "))).toEqual([]);
    // A reader that searched the whole line at each piece would look through 5 GB.
    for (let n = 0; n < 10_000; n += 1) reader.read(piece);
    expect(reader.read(bytes("\n\n"))[0]?.data).toHaveLength(1_000_000);
  });

  it("throws after an event that no server sends", () => {
    const reader = new FrameReader();
    expect(reader.read(bytes(`data: ${"x".repeat(LONGEST_EVENT - 100)}\n\n`))).toHaveLength(1);
    reader.read(bytes(`data: ${"x".repeat(LONGEST_EVENT)}`));
    expect(() => reader.read(bytes("x"))).toThrow("buffer");
  });

  it("accepts a byte order mark", () => {
    expect(new FrameReader().read(bytes("\uFEFFdata: a\n\n"))[0]?.data).toBe("a");
  });
});

import { afterEach, expect, it } from "vitest";

import { zoneOf } from "./address.js";

const own = process.env.TZ;
afterEach(() => {
  if (own === undefined) delete process.env.TZ;
  else process.env.TZ = own;
});

it("a request has the zone of its options, or else that of the machine", () => {
  process.env.TZ = "Europe/Copenhagen";
  expect(zoneOf({})).toEqual({ "time-zone": "Europe/Copenhagen" });
  expect(zoneOf({ timeZone: "Asia/Tokyo" })).toEqual({ "time-zone": "Asia/Tokyo" });
  expect(zoneOf({ timeZone: "" })).toEqual({});
});

it("a machine in UTC sends no zone", () => {
  for (const zone of ["UTC", "Etc/UTC"]) {
    process.env.TZ = zone;
    expect(zoneOf({})).toEqual({});
  }
});

import assert from "node:assert/strict";
import test from "node:test";

import { HeardClock, Latencies } from "../cantata_web/static/talk/latencies.js";

test("latencies count from when the microphone heard the last of the speech", () => {
  const clock = new HeardClock();
  clock.advance(1, 101);
  clock.advance(0.5, 101.7); // the page was busy for 0.2 s
  const latencies = new Latencies(clock.when(0.75)); // heard at 100.75
  latencies.note("text", 101.25);
  latencies.note("text", 109);
  latencies.note("sound", 101.75);
  assert.deepEqual({ ...latencies }, { noticed: null, text: 0.5, sound: 1 });
});

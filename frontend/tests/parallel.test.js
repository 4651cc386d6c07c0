import assert from "node:assert/strict";
import test from "node:test";

import { Listener, quantile } from "../cantata_web/static/parallel/listener.js";
import { connectAll } from "../cantata_web/static/parallel/stream.js";

test("sound that comes in time is heard without a gap", () => {
  const listener = new Listener();
  listener.receive(0.1, 0.08);
  listener.receive(0.15, 0.08);
  listener.receive(0.2, 0.5);
  assert.equal(listener.firstAt, 0.1);
  assert.equal(listener.underruns, 0);
  assert.ok(Math.abs(listener.endsAt - 0.76) < 1e-9);
});

test("a chunk that is late is a gap, as long as the listener waited", () => {
  const listener = new Listener();
  listener.receive(0.1, 0.1);
  listener.receive(0.5, 0.1);
  assert.equal(listener.underruns, 1);
  assert.ok(Math.abs(listener.gapSeconds - 0.3) < 1e-9);
});

test("quantiles are values that were measured", () => {
  assert.equal(quantile([], 0.5), null);
  assert.equal(quantile([3, 1, 2], 0.5), 2);
  assert.equal(quantile([3, 1, 2], 0.95), 3);
});

test("all streams are connected, and only a few at a time", async () => {
  let [connecting, most, connected] = [0, 0, 0];
  const connect = async (config) => {
    assert.deepEqual(config, { voice: "ben" });
    connecting += 1;
    most = Math.max(most, connecting);
    await new Promise((resolve) => setImmediate(resolve));
    connecting -= 1;
    connected += 1;
  };
  const streams = Array.from({ length: 20 }, () => ({ connect }));
  await connectAll(streams, { voice: "ben" });
  assert.equal(connected, 20);
  assert.equal(most, 6);
});

import assert from "node:assert/strict";
import test from "node:test";

import { SampleRing } from "../cantata_web/static/ring.js";

function read(ring, count) {
  const target = new Float32Array(count);
  const taken = ring.read(target, count);
  return [...target.subarray(0, taken)].map((value) => Math.round(value * 32768));
}

test("samples come out in the order they went in, across the wrap", () => {
  const ring = new SampleRing(8);
  ring.write(Int16Array.of(1, 2, 3, 4, 5, 6));
  assert.deepEqual(read(ring, 5), [1, 2, 3, 4, 5]);
  ring.write(Int16Array.of(7, 8, 9, 10, 11));
  assert.equal(ring.samples.length, 8);
  assert.deepEqual(read(ring, 16), [6, 7, 8, 9, 10, 11]);
  assert.equal(ring.length, 0);
});

test("it grows without losing what is wrapped", () => {
  const ring = new SampleRing(4);
  ring.write(Int16Array.of(1, 2, 3));
  read(ring, 2);
  ring.write(Int16Array.of(4, 5, 6));
  ring.write(Int16Array.of(7, 8, 9));
  assert.ok(ring.samples.length >= 7);
  assert.deepEqual(read(ring, 16), [3, 4, 5, 6, 7, 8, 9]);
});

test("every 16-bit value survives the way through a float", () => {
  const ring = new SampleRing();
  const all = Int16Array.from({ length: 65536 }, (_, i) => i - 32768);
  ring.write(all);
  assert.deepEqual(read(ring, all.length), [...all]);
});

test("random writes and reads lose and invent nothing", () => {
  const ring = new SampleRing(16);
  let state = 7;
  const draw = (limit) => (state = (state * 48271) % 2147483647) % limit;
  const heard = [];
  let said = 0;
  for (let round = 0; round < 2000; round += 1) {
    const size = draw(40);
    ring.write(Int16Array.from({ length: size }, () => said++ % 30000));
    heard.push(...read(ring, draw(45)));
  }
  heard.push(...read(ring, said));
  assert.equal(heard.length, said);
  assert.ok(heard.every((value, i) => value === i % 30000));
});

test("peek shows the next sample and takes nothing", () => {
  const ring = new SampleRing(4);
  assert.equal(ring.peek(), 0);
  ring.write(Int16Array.of(16384));
  assert.equal(ring.peek(), 0.5);
  assert.equal(ring.length, 1);
});

import assert from "node:assert/strict";
import test from "node:test";

import { SampleQueue } from "../cantata_web/static/player/queue.js";

function read(queue, count) {
  const targets = Array.from({ length: queue.channels }, () => new Float32Array(count));
  const taken = queue.read(targets, count);
  return targets.map((target) => [...target.subarray(0, taken)].map((v) => Math.round(v * 32768)));
}

test("samples come out in the order they went in, across chunks", () => {
  const queue = new SampleQueue();
  queue.write(Int16Array.of(1, 2, 3));
  queue.write(Int16Array.of());
  queue.write(Int16Array.of(4, 5));
  assert.deepEqual(read(queue, 4), [[1, 2, 3, 4]]);
  queue.write(Int16Array.of(6));
  assert.deepEqual(read(queue, 16), [[5, 6]]);
  assert.equal(queue.frames, 0);
});

test("every 16-bit value survives the way through a float", () => {
  const queue = new SampleQueue();
  const all = Int16Array.from({ length: 65536 }, (_, i) => i - 32768);
  queue.write(all);
  assert.deepEqual(read(queue, all.length), [[...all]]);
});

test("interleaved channels are taken apart, also where a chunk ends inside a frame", () => {
  const queue = new SampleQueue(2);
  queue.write(Int16Array.of(1, -1, 2));
  assert.equal(queue.frames, 1);
  queue.write(Int16Array.of(-2, 3, -3));
  assert.deepEqual(read(queue, 8), [[1, 2, 3], [-1, -2, -3]]);
});

test("random writes and reads lose and invent nothing", () => {
  const queue = new SampleQueue();
  let state = 7;
  const draw = (limit) => (state = (state * 48271) % 2147483647) % limit;
  const heard = [];
  let said = 0;
  for (let round = 0; round < 2000; round += 1) {
    const size = draw(40);
    queue.write(Int16Array.from({ length: size }, () => said++ % 30000));
    heard.push(...read(queue, draw(45))[0]);
  }
  heard.push(...read(queue, said)[0]);
  assert.equal(heard.length, said);
  assert.ok(heard.every((value, i) => value === i % 30000));
});

test("a text that arrives far ahead of its playback is kept whole, round after round", () => {
  const queue = new SampleQueue();
  let said = 0;
  const say = (count) => {
    for (let i = 0; i < count; i += 1) queue.write(Int16Array.of((said += 1)));
  };
  say(50);
  assert.equal(read(queue, 40)[0].length, 40);
  say(60); // past the ring's end, and full
  say(500);
  const heard = read(queue, said)[0];
  assert.deepEqual(heard, Array.from({ length: said - 40 }, (_, i) => i + 41));
  say(3);
  queue.clear();
  say(2);
  assert.deepEqual(read(queue, 8)[0], [said - 1, said]);
});

test("peek shows the next frame and takes nothing", () => {
  const queue = new SampleQueue(2);
  assert.equal(queue.peek(), 0);
  queue.write(Int16Array.of(16384, -16384));
  assert.equal(queue.peek(0), 0.5);
  assert.equal(queue.peek(1), -0.5);
  assert.equal(queue.frames, 1);
});

import assert from "node:assert/strict";
import test from "node:test";

import { decodePcm, encodePcm } from "../cantata_web/static/talk/base64.js";
import { Capture, PACKET_FRAMES, TALK_RATE } from "../cantata_web/static/talk/capture.js";

const QUANTUM = 128;
const HERTZ = 440;

function captured(contextRate, seconds, level) {
  const packets = [];
  const capture = new Capture(contextRate, (samples) => packets.push(samples));
  for (let from = 0; from < seconds * contextRate; from += QUANTUM) {
    capture.push(Float32Array.from({ length: QUANTUM }, (_, i) => level((from + i) / contextRate)));
  }
  assert.ok(packets.every(({ length }) => length === PACKET_FRAMES));
  return packets.flatMap((packet) => [...packet]);
}

for (const contextRate of [8_000, 16_000, 24_000, 44_100, 48_000, 96_000, 192_000]) {
  test(`a tone at ${contextRate} Hz comes out as the same tone, on time`, () => {
    const samples = captured(contextRate, 1, (at) => 0.5 * Math.sin(2 * Math.PI * HERTZ * at));
    // All but the packet under way, and what the resampler holds.
    assert.ok(samples.length > 0.85 * TALK_RATE && samples.length <= TALK_RATE);
    const settled = samples.slice(PACKET_FRAMES);
    const wrong = settled.filter((sample, i) => {
      const at = (i + PACKET_FRAMES) / TALK_RATE;
      return Math.abs(sample / 32767 - 0.5 * Math.sin(2 * Math.PI * HERTZ * at)) > 0.01;
    });
    assert.equal(wrong.length, 0);
  });
}

test("what is too loud is clipped and does not wrap around", () => {
  const samples = captured(48_000, 0.5, () => 1.5).slice(PACKET_FRAMES);
  assert.ok(samples.length > 0 && samples.every((sample) => sample === 32767));
});

test("PCM goes through base64 unchanged", () => {
  const samples = Int16Array.from({ length: 20_001 }, (_, i) => (i * 7919) % 65_536 - 32_768);
  const part = samples.subarray(1);
  assert.deepEqual(decodePcm(encodePcm(part)), part.slice());
  const known = Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString("base64");
  assert.equal(encodePcm(part), known);
});

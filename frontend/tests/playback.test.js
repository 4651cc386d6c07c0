import assert from "node:assert/strict";
import test from "node:test";

import { nextReserveSeconds, Phase, Playback } from "../cantata_web/static/player/playback.js";

const BLOCK = 128;
const RATE = 16384; // frames and seconds convert without rounding

function make({ reserveFrames = 256, fadeFrames = 256 } = {}) {
  return new Playback({
    sampleRate: RATE,
    reserveSeconds: reserveFrames / RATE,
    fadeSeconds: fadeFrames / RATE,
  });
}

/** Renders `count` blocks; returns the utterance's samples and all that went out. */
function render(playback, count = 1) {
  const played = [];
  const out = [];
  for (let i = 0; i < count; i += 1) {
    const block = new Float32Array(BLOCK);
    const taken = playback.render([block]);
    played.push(...block.subarray(0, taken));
    out.push(...block);
  }
  return { played: played.map((value) => Math.round(value * 32768)), out };
}

const ramp = (length, from = 1) => Int16Array.from({ length }, (_, i) => from + i);
const level = (length, value) => new Int16Array(length).fill(value);

test("silence goes out until the reserve is there, and does not count as starvation", () => {
  const playback = make();
  playback.write(ramp(255));
  assert.deepEqual(render(playback, 3).played, []);
  assert.equal(playback.phase, Phase.FILLING);
  playback.write(ramp(1, 256));
  assert.deepEqual(render(playback).played, [...ramp(BLOCK)]);
  assert.equal(playback.starvedFrames, 0);
});

test("an utterance shorter than the reserve is played at its end", () => {
  const playback = make();
  playback.write(ramp(100));
  playback.end();
  const { played, out } = render(playback);
  assert.deepEqual(played, [...ramp(100)]);
  assert.equal(out.length, BLOCK);
  assert.equal(playback.phase, Phase.ENDED);
  assert.equal(playback.underruns, 0);
});

test("an utterance in pieces comes out whole", () => {
  const playback = make();
  const heard = [];
  for (let i = 0; i < 20; i += 1) {
    playback.write(ramp(300, 1 + i * 300));
    heard.push(...render(playback, 2).played);
  }
  playback.end();
  heard.push(...render(playback, 60).played);
  assert.deepEqual(heard, [...ramp(6000)]);
  assert.equal(playback.playedFrames, 6000);
  assert.equal(playback.starvedFrames, 0);
});

test("an underrun is counted, bridged without a jump, and loses no sample", () => {
  const playback = make();
  playback.write(level(300, 16000));
  const before = render(playback, 5);
  assert.equal(playback.phase, Phase.STARVED);
  assert.equal(playback.underruns, 1);
  playback.write(level(300, -16000));
  playback.end();
  const after = render(playback, 5);
  assert.deepEqual(before.played, [...level(300, 16000)]);
  assert.deepEqual(after.played, [...level(300, -16000)]);
  assert.equal(playback.starvedFrames, 5 * BLOCK - 300 + BLOCK);
  const out = [...before.out, ...after.out].slice(0, 5 * BLOCK + BLOCK + 300);
  const jumps = out.slice(1).map((value, i) => Math.abs(value - out[i]));
  assert.ok(Math.max(...jumps) < 0.02, `a jump of ${Math.max(...jumps)}`);
});

test("after an underrun twice the reserve is collected", () => {
  const playback = make();
  playback.write(ramp(256));
  render(playback, 3);
  playback.write(ramp(511));
  assert.deepEqual(render(playback, 2).played, []);
  playback.write(ramp(1));
  assert.equal(render(playback, 2).played.length, BLOCK); // one block glides in, one plays
});

test("an end that is announced after the last sample has been played is no underrun", () => {
  const playback = make();
  playback.write(ramp(300));
  render(playback, 6);
  assert.equal(playback.underruns, 1);
  playback.end();
  assert.equal(playback.phase, Phase.ENDED);
  assert.equal(playback.underruns, 0);
  assert.equal(playback.starvedFrames, 0);
});

test("stop fades to silence within the fade and plays nothing after it", () => {
  const playback = make();
  playback.write(level(4800, 16000));
  render(playback);
  playback.stop();
  const { played } = render(playback, 4);
  assert.equal(playback.phase, Phase.ENDED);
  assert.equal(played.length, 256);
  assert.ok(played.every((value, i) => i === 0 || value <= played[i - 1]));
  assert.ok(played.at(-1) < 100);
});

test("stop before any sound ends at once", () => {
  const playback = make();
  playback.write(ramp(10));
  playback.stop();
  assert.deepEqual(render(playback).played, []);
  assert.equal(playback.phase, Phase.ENDED);
});

test("silence at the head of an utterance is not yet audible", () => {
  const playback = make({ reserveFrames: BLOCK });
  playback.write(level(BLOCK, 3));
  render(playback);
  assert.equal(playback.audible, false);
  playback.write(level(BLOCK, 300));
  render(playback, 2);
  assert.equal(playback.audible, true);
});

test("the reserve doubles after an underrun, shrinks after none, and stays in bounds", () => {
  assert.equal(nextReserveSeconds(0.08, 1), 0.16);
  assert.equal(nextReserveSeconds(0.08, 3), 0.64);
  assert.equal(nextReserveSeconds(1.28, 3), 1.28);
  assert.equal(nextReserveSeconds(0.16, 0), 0.12);
  assert.equal(nextReserveSeconds(0.08, 0), 0.08);
});

test("between two utterances silence is no underrun, and the next one is played whole", () => {
  const playback = make();
  playback.write(ramp(300));
  playback.rest();
  const first = render(playback, 20);
  assert.equal(playback.phase, Phase.RESTING);
  playback.wake();
  playback.write(ramp(400, 301));
  const second = render(playback, 20);
  assert.deepEqual([...first.played, ...second.played], [...ramp(700)]);
  assert.equal(playback.underruns, 1, "the second one was not complete when it ran dry");
  playback.end();
  assert.equal(playback.underruns, 0);
  assert.equal(playback.starvedFrames, 0);
  assert.equal(playback.phase, Phase.ENDED);
});

test("an utterance that is complete after it ran dry rests and was not starved", () => {
  const playback = make();
  playback.write(ramp(300));
  render(playback, 6);
  assert.equal(playback.phase, Phase.STARVED);
  playback.rest();
  assert.equal(playback.phase, Phase.RESTING);
  assert.equal(playback.underruns, 0);
  assert.equal(playback.starvedFrames, 0);
});

test("stereo plays both channels and stops both in a fade", () => {
  const playback = new Playback({
    sampleRate: RATE, channels: 2, reserveSeconds: 0, fadeSeconds: BLOCK / RATE,
  });
  playback.write(Int16Array.from({ length: 1024 }, (_, i) => (i % 2 ? -8192 : 16384)));
  const block = [new Float32Array(BLOCK), new Float32Array(BLOCK)];
  assert.equal(playback.render(block), BLOCK);
  assert.ok(block[0].every((value) => value === 0.5));
  assert.ok(block[1].every((value) => value === -0.25));
  playback.stop();
  playback.render(block);
  assert.ok(block[0].at(-1) > 0 && block[0].at(-1) < 0.01);
  assert.ok(block[1].at(-1) < 0 && block[1].at(-1) > -0.01);
  playback.render(block);
  assert.equal(playback.phase, Phase.ENDED);
});

test("a stream that broke is played to its end, and the silence after it is no underrun", () => {
  const playback = make();
  playback.write(ramp(200)); // less than the reserve
  playback.halt();
  assert.deepEqual(render(playback, 20).played, [...ramp(200)]);
  assert.equal(playback.phase, Phase.RESTING);
  assert.deepEqual(playback.gaps, []);
  playback.wake();
  playback.write(ramp(300, 201));
  playback.end();
  assert.deepEqual(render(playback, 20).played, [...ramp(300, 201)]);
  assert.deepEqual(playback.gaps, []);
  assert.equal(playback.phase, Phase.ENDED);
});

test("what was waited for before a stream broke stays counted", () => {
  const playback = make();
  playback.write(level(300, 1));
  render(playback, 6);
  playback.halt();
  assert.equal(playback.phase, Phase.RESTING);
  assert.deepEqual(playback.gaps, [{ atFrame: 300, frames: 6 * BLOCK - 300 }]);
});

import assert from "node:assert/strict";
import test from "node:test";

import { Stretch } from "../cantata_web/static/player/stretch.js";

const RATE = 24_000;
const BLOCK = 128;

/** What is heard of `sound` (a function of the frame) in `seconds`. */
function stretch(sound, rate, seconds, channels = 1) {
  const stretched = new Stretch(RATE, channels);
  stretched.rate = rate;
  let asked = 0;
  const source = (blocks) => {
    blocks.forEach((block, channel) => block.forEach((_, i) => (block[i] = sound(asked + i, channel))));
    asked += blocks[0].length;
  };
  const heard = Array.from({ length: channels }, () => []);
  while (heard[0].length < seconds * RATE) {
    const blocks = Array.from({ length: channels }, () => new Float32Array(BLOCK));
    stretched.render(blocks, source);
    blocks.forEach((block, channel) => heard[channel].push(...block));
  }
  return { heard, asked };
}

const tone = (hertz) => (frame) => 0.5 * Math.sin((2 * Math.PI * hertz * frame) / RATE);

/** Hz, by the upward zero crossings. */
function pitchOf(signal) {
  const crossings = signal.flatMap((value, i) => (i > 0 && signal[i - 1] < 0 && value >= 0 ? [i] : []));
  return ((crossings.length - 1) * RATE) / (crossings.at(-1) - crossings[0]);
}

/** The largest step from one sample to the next. */
const roughest = (signal) => Math.max(...signal.slice(1).map((value, i) => Math.abs(value - signal[i])));

for (const rate of [0.75, 1.25, 1.5, 2]) {
  test(`at ${rate} times the speed a tone keeps its pitch, and no seam is heard`, () => {
    const { heard, asked } = stretch(tone(220), rate, 2);
    const [signal] = heard;
    assert.ok(Math.abs(asked / signal.length - rate) < 0.05 * rate, `${asked / signal.length}`);
    assert.ok(Math.abs(pitchOf(signal) - 220) < 2, `${pitchOf(signal)} Hz`);
    assert.ok(roughest(signal) < 1.5 * roughest(Array.from({ length: RATE }, (_, i) => tone(220)(i))));
    const levels = Array.from({ length: 40 }, (_, i) => signal.slice(i * 1_000, (i + 1) * 1_000));
    for (const level of levels) assert.ok(Math.abs(Math.max(...level) - 0.5) < 0.06);
  });
}

test("at the usual speed the sound is what it was", () => {
  // A pattern without a period within reach.
  const sound = (frame) => 0.3 * Math.sin(frame * frame * 1e-7) + 0.2 * Math.sin(frame / 17);
  const [signal] = stretch(sound, 1, 1).heard;
  signal.forEach((value, i) => assert.ok(Math.abs(value - sound(i)) < 1e-4, `frame ${i}`));
});

test("silence and a sudden start stay what they are", () => {
  const [signal] = stretch((frame) => (frame < RATE ? 0 : tone(150)(frame)), 1.5, 1.5).heard;
  const starts = signal.findIndex((value) => Math.abs(value) > 0.1);
  assert.ok(Math.abs(starts - RATE / 1.5) < 0.05 * RATE, `${starts}`);
});

test("both channels are cut at the same places", () => {
  const sound = (frame, channel) => (channel === 0 ? 1 : -1) * tone(180)(frame);
  const [left, right] = stretch(sound, 1.75, 1, 2).heard;
  left.forEach((value, i) => assert.ok(Math.abs(value + right[i]) < 1e-6));
});

test("the speed may change at any time", () => {
  const stretched = new Stretch(RATE, 1);
  let asked = 0;
  const source = ([block]) => block.forEach((_, i) => (block[i] = tone(220)(asked++)));
  const block = [new Float32Array(BLOCK)];
  const heard = [];
  for (const rate of [1, 2, 0.75, 1, 1.5]) {
    stretched.rate = rate;
    for (let i = 0; i < 60; i += 1) {
      stretched.render(block, source);
      heard.push(...block[0]);
    }
  }
  assert.ok(Math.abs(pitchOf(heard) - 220) < 3);
  assert.ok(roughest(heard) < 0.06);
});

import assert from "node:assert/strict";
import test from "node:test";

import { Renderer } from "../cantata_web/static/player/renderer.js";

const BLOCK = 128;

/** Plays `samples` on a device of `deviceRate`; returns its left channel and what was captured. */
function play(samples, { sampleRate, deviceRate, channels = 1, rate }) {
  const reports = [];
  const renderer = new Renderer((message) => reports.push(message), deviceRate);
  const begin = { type: "begin", turn: 1, reserveSeconds: 0, fadeSeconds: 0.02 };
  renderer.receive({ ...begin, sampleRate, channels, rate });
  renderer.receive({ type: "pcm", turn: 1, samples: samples.slice() });
  renderer.receive({ type: "end", turn: 1 });
  const out = [];
  for (let i = 0; !reports.at(-1)?.ended; i += 1) {
    const block = [new Float32Array(BLOCK), new Float32Array(BLOCK)];
    renderer.render(block, (i * BLOCK) / deviceRate);
    out.push(block);
  }
  const captured = reports.flatMap(({ played }) => [...(played ?? [])]);
  return { out, captured, reports };
}

const tone = (hertz, rate, count) =>
  Int16Array.from({ length: count }, (_, i) =>
    Math.round(16000 * Math.sin((2 * Math.PI * hertz * i) / rate)),
  );

test("at the sound's own rate the captured samples are the sent ones, on both speakers", () => {
  const samples = tone(440, 24000, 5000);
  const { out, captured } = play(samples, { sampleRate: 24000, deviceRate: 24000 });
  assert.deepEqual(captured, [...samples]);
  assert.ok(out.every(([left, right]) => left.every((value, i) => value === right[i])));
});

for (const [sampleRate, deviceRate] of [[24000, 48000], [24000, 44100], [48000, 16000]]) {
  test(`a tone at ${sampleRate} Hz is the same tone on a device of ${deviceRate} Hz`, () => {
    const samples = tone(1000, sampleRate, sampleRate);
    const { out, captured } = play(samples, { sampleRate, deviceRate });
    assert.deepEqual(captured, [...samples]);
    const heard = out.flatMap(([left]) => [...left]);
    assert.ok(Math.abs(heard.length - deviceRate) < deviceRate / 100, `${heard.length} frames`);
    assert.ok(noiseBelowTone(heard.slice(2000, -2000), 1000, deviceRate) > 70);
  });
}

for (const deviceRate of [24000, 48000]) {
  test(`at twice the speed a second lasts half of one on a device of ${deviceRate} Hz, and nothing is lost`, () => {
    const samples = tone(220, 24000, 24000);
    const { out, captured } = play(samples, { sampleRate: 24000, deviceRate, rate: 2 });
    assert.deepEqual(captured, [...samples]);
    const seconds = (out.length * BLOCK) / deviceRate;
    assert.ok(seconds > 0.4 && seconds < 0.6, `${seconds} s`);
  });
}

test("what a slower device cannot carry is taken out and not folded back", () => {
  const samples = tone(11000, 48000, 48000);
  const { out } = play(samples, { sampleRate: 48000, deviceRate: 16000 });
  const heard = out.flatMap(([left]) => [...left]).slice(500, -500);
  assert.ok(Math.max(...heard.map(Math.abs)) < 0.005);
});

test("a message of an older turn is dropped", () => {
  const reports = [];
  const renderer = new Renderer((message) => reports.push(message), 24000);
  const begin = { type: "begin", turn: 2, sampleRate: 24000, channels: 1 };
  renderer.receive({ ...begin, reserveSeconds: 0, fadeSeconds: 0 });
  renderer.receive({ type: "pcm", turn: 1, samples: Int16Array.of(9) });
  renderer.receive({ type: "end", turn: 2 });
  renderer.render([new Float32Array(BLOCK)], 0);
  assert.equal(reports.at(-1).playedFrames, 0);
});

/** dB between a tone and everything that is not it (least squares on sine and cosine). */
function noiseBelowTone(signal, hertz, rate) {
  const angle = (i) => (2 * Math.PI * hertz * i) / rate;
  const product = (wave) => signal.reduce((sum, v, i) => sum + v * wave(angle(i)), 0);
  const project = (wave) => (2 * product(wave)) / signal.length;
  const [a, b] = [project(Math.sin), project(Math.cos)];
  const power = (values) => values.reduce((sum, value) => sum + value * value, 0);
  const rest = signal.map((v, i) => v - a * Math.sin(angle(i)) - b * Math.cos(angle(i)));
  return 10 * Math.log10(power(signal) / power(rest));
}

test("the first sound is reported at the frame where it is", () => {
  const samples = new Int16Array(5000).fill(2); // below -60 dBFS
  samples[1000] = 3000;
  const { reports } = play(samples, { sampleRate: 24000, deviceRate: 24000 });
  const audible = reports.filter(({ type }) => type === "audible");
  assert.deepEqual(audible.map(({ contextTime }) => Math.round(contextTime * 24000)), [1000]);
});

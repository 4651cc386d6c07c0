import assert from "node:assert/strict";
import test from "node:test";

import { passagesOf } from "../cantata_web/static/speech/captions.js";
import { planReserve, restOf, slowRate } from "../cantata_web/static/speech/pace.js";
import { nameFile } from "../cantata_web/static/views/save.js";

const RATE = 24_000;

test("only a stream that has come for a while and is slower than speech is slow", () => {
  const after = (seconds, receivingSeconds) =>
    slowRate({ receivedFrames: seconds * RATE, sampleRate: RATE, receivingSeconds });
  assert.equal(after(0.2, 0.5), null);
  assert.equal(after(5, 4), null);
  assert.equal(after(2, null), null);
  assert.equal(after(2, 4), 0.5);
});

test("the rest of a text is as long as its words so far tell", () => {
  const words = [{ to: 4, end: 1 }, { to: 10, end: 2 }];
  assert.equal(restOf("x".repeat(50), words, 3), 7);
  assert.equal(restOf("x".repeat(50), [], 3), null);
  assert.equal(restOf("x".repeat(10), words, 3), 0);
});

test("what is collected lasts until the rest has come", () => {
  for (const rate of [0.3, 0.5, 0.9]) {
    const rest = 20;
    const { reserveSeconds, waitSeconds } = planReserve(rest, rate);
    const comes = (rest - reserveSeconds) / rate; // after the sound has begun
    assert.ok(comes <= rest, "all of it has come before its end");
    assert.ok(reserveSeconds + rate * comes >= comes, "and what is there lasts until then");
    assert.ok(Math.abs(waitSeconds - reserveSeconds / rate) < 1e-9);
  }
  assert.ok(planReserve(10_000, 0.5).waitSeconds <= 60.001);
});

test("subtitles are sentences with their marks, and long ones are cut", () => {
  const text = "“Tea,” she said. It rained; " + "very ".repeat(20) + "long.";
  const words = [...text.matchAll(/\p{L}+/gu)].map(({ 0: { length }, index }, place) => ({
    from: index,
    to: index + length,
    start: place / 2,
    end: place / 2 + 0.4,
  }));
  const passages = passagesOf(text, words);
  assert.equal(passages[0].text.trim(), "“Tea,” she said.");
  assert.deepEqual([passages[0].start, passages[0].end], [0, 1.4]);
  assert.equal(passages.map((passage) => passage.text).join(""), text);
  assert.ok(passages.every((passage) => passage.text.length <= 90));
});

test("files are named by the first words of their text", () => {
  assert.equal(nameFile("  It rained, all night! "), "It rained all night");
  assert.equal(nameFile("Über die Brücke: größer"), "Über die Brücke größer");
  assert.equal(nameFile("../../etc/passwd"), "etc passwd");
  assert.equal(nameFile("…"), "cantata");
  assert.equal(nameFile("a".repeat(200)).length, 48);
  assert.ok(nameFile("word ".repeat(50)).length <= 48);
});

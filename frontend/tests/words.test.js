import assert from "node:assert/strict";
import test from "node:test";

import { WordTrack } from "../cantata_web/static/speech/words.js";

const WORDS = [
  { start: 0.1, end: 0.4, text_start: 0, text_end: 5 },
  { start: 0.5, end: 0.9, text_start: 6, text_end: 11 },
];

test("the word is the one that is heard, and stays until the next", () => {
  const track = new WordTrack();
  track.add(WORDS, { sent: "Hello world", base: 0, atSeconds: 0 });
  assert.equal(track.at(0.05), null);
  assert.equal(track.at(0.1).text, "Hello");
  assert.equal(track.at(0.45).text, "Hello");
  assert.equal(track.at(0.5).text, "world");
  assert.equal(track.at(99).text, "world");
});

test("a later utterance's words are late and stand behind the earlier ones", () => {
  const track = new WordTrack();
  track.add(WORDS, { sent: "Hello world", base: 0, atSeconds: 0 });
  track.add(WORDS, { sent: "Hello moons", base: 12, atSeconds: 2 });
  const { from, to, text } = track.at(2.6);
  assert.deepEqual([from, to, text], [18, 23, "moons"]);
});

test("offsets in code points become places in a JavaScript string", () => {
  const track = new WordTrack();
  const sent = "🎵🎵 song";
  track.add([{ start: 0, end: 1, text_start: 3, text_end: 7 }], { sent, base: 0, atSeconds: 0 });
  const { from, to, text } = track.at(0);
  assert.equal(text, "song");
  assert.equal(sent.slice(from, to), "song");
});

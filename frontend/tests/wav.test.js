import assert from "node:assert/strict";
import test from "node:test";

import { encodeWav } from "../cantata_web/static/player/wav.js";

test("the header says what the samples are", () => {
  const wav = encodeWav(Int16Array.of(0, 1, -1, 32767, -32768), 24000);
  const view = new DataView(wav.buffer);
  const tag = (at) => String.fromCharCode(...wav.subarray(at, at + 4));
  assert.deepEqual([tag(0), tag(8), tag(12), tag(36)], ["RIFF", "WAVE", "fmt ", "data"]);
  assert.equal(view.getUint32(4, true), wav.length - 8);
  assert.equal(view.getUint32(24, true), 24000);
  assert.equal(view.getUint32(28, true), 48000);
  assert.equal(view.getUint32(40, true), 10);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((i) => view.getInt16(44 + 2 * i, true)),
    [0, 1, -1, 32767, -32768],
  );
});

test("stereo says so, and how many bytes a second has", () => {
  const view = new DataView(encodeWav(Int16Array.of(1, 2, 3, 4), 48000, 2).buffer);
  assert.equal(view.getUint16(22, true), 2);
  assert.equal(view.getUint32(28, true), 192000);
  assert.equal(view.getUint16(32, true), 4);
});

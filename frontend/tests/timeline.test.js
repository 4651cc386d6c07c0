import assert from "node:assert/strict";
import test from "node:test";

import { columns, Peaks, soundBefore, withGaps } from "../cantata_web/static/views/timeline.js";

test("gaps stand between the peaks before and after them", () => {
  const gaps = [{ at: 0.2, seconds: 0.2 }, { at: 0.3, seconds: 0.01 }];
  const cells = withGaps([1, 2, 3, 4], gaps, 0.1);
  assert.deepEqual(cells, [1, 2, null, null, 3, null, 4]);
});

test("a gap after the last peak that has come is drawn at the end", () => {
  assert.deepEqual(withGaps([1], [{ at: 0.1, seconds: 0.1 }], 0.1), [1, null]);
});

test("columns merge cells, keep their loudest, and show any gap among them", () => {
  const drawn = columns([[1, 4], [3, 2], [2, 2], null, [5, 0], [4, 1]], 2, 3);
  assert.deepEqual(drawn, [
    { peaks: [3, 4], waited: false, played: true },
    { peaks: [2, 2], waited: true, played: true },
    { peaks: [5, 1], waited: false, played: false },
  ]);
});

test("a place in the drawing is a time of the sound: waiting takes none", () => {
  const cells = [1, 2, null, null, 3];
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((place) => soundBefore(cells, place)), [0, 1, 2, 2, 2, 3]);
});

const loud = 32768 / 2;

test("each channel of stereo has peaks of its own, however its samples are cut", () => {
  const sound = [loud, 0, 0, -loud / 2, 0, loud, 0, 0, 9, 9]; // two cells of two frames, and a part
  for (const cut of [0, 1, 3, 4, 9]) {
    const peaks = new Peaks(100, 2, 0.02);
    peaks.append(sound.slice(0, cut));
    peaks.append(sound.slice(cut));
    assert.deepEqual(peaks.cells, [[0.5, 0.25], [0, 0.5]]);
  }
});

test("a single channel has the same peaks on both sides", () => {
  const peaks = new Peaks(100, 1, 0.02);
  peaks.append([0, loud, -loud / 2, 0, 7]);
  assert.deepEqual(peaks.cells, [[0.5, 0.5], [0.25, 0.25]]);
});

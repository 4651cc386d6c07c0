import assert from "node:assert/strict";
import test from "node:test";

import { columns, withGaps } from "../cantata_web/static/views/timeline.js";

test("gaps stand between the peaks before and after them", () => {
  const gaps = [{ at: 0.2, seconds: 0.2 }, { at: 0.3, seconds: 0.01 }];
  const cells = withGaps([1, 2, 3, 4], gaps, 0.1);
  assert.deepEqual(cells, [1, 2, null, null, 3, null, 4]);
});

test("a gap after the last peak that has come is drawn at the end", () => {
  assert.deepEqual(withGaps([1], [{ at: 0.1, seconds: 0.1 }], 0.1), [1, null]);
});

test("columns merge cells, keep their loudest, and show any gap among them", () => {
  const drawn = columns([1, 3, 2, null, 5, 4], 2, 3);
  assert.deepEqual(drawn, [
    { peak: 3, waited: false, played: true },
    { peak: 2, waited: true, played: true },
    { peak: 5, waited: false, played: false },
  ]);
});

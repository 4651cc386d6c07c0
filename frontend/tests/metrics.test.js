import assert from "node:assert/strict";
import test from "node:test";

import { niceCeiling } from "../cantata_web/static/metrics/charts.js";
import { buckets, parseMetrics, total } from "../cantata_web/static/metrics/parse.js";

const TEXT = `# HELP ttfp_seconds From asking to sound.
# TYPE ttfp_seconds histogram
ttfp_seconds_bucket{le="0.1",model="a"} 2.0
ttfp_seconds_bucket{le="0.5",model="a"} 5.0
ttfp_seconds_bucket{le="+Inf",model="a"} 6.0
ttfp_seconds_bucket{le="0.1",model="b"} 1.0
ttfp_seconds_bucket{le="0.5",model="b"} 1.0
ttfp_seconds_bucket{le="+Inf",model="b"} 1.0
running{model="a"} 2.0
running{model="b"} 3.0
odd{name="a \\"b\\", c\\nd"} 1e+06
bare 4
`;

test("samples are read with their labels, escapes and exponents included", () => {
  const samples = parseMetrics(TEXT);
  const [odd] = samples.get("odd");
  assert.deepEqual(odd, { labels: { name: 'a "b", c\nd' }, value: 1e6 });
  assert.equal(total(samples, "running"), 5);
  assert.equal(total(samples, "bare"), 4);
  assert.equal(total(samples, "nothing"), 0);
});

test("buckets count what lies between two bounds, of all models together", () => {
  assert.deepEqual(buckets(parseMetrics(TEXT), "ttfp_seconds"), [
    { to: 0.1, count: 3 },
    { to: 0.5, count: 3 },
    { to: Infinity, count: 1 },
  ]);
});

test("an axis ends at a round number", () => {
  assert.deepEqual([1, 3, 7, 12, 450].map(niceCeiling), [1, 4, 10, 20, 600]);
});

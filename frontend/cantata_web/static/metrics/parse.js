// Prometheus' text format, as far as the server uses it.

/**
 * @param {string} text
 * @returns {Map<string, {labels: object, value: number}[]>} samples by name
 */
export function parseMetrics(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (found === null) continue;
    const [, name, labels = "", value] = found;
    if (!samples.has(name)) samples.set(name, []);
    samples.get(name).push({ labels: parseLabels(labels), value: numberOf(value) });
  }
  return samples;
}

/** The sum over all labels; 0 where there is no such metric yet. */
export function total(samples, name) {
  return (samples.get(name) ?? []).reduce((sum, { value }) => sum + value, 0);
}

/**
 * A histogram's buckets, all models together.
 * @returns {{to: number, count: number}[]} counts between a bound and the one before it
 */
export function buckets(samples, name) {
  const upTo = new Map();
  for (const { labels, value } of samples.get(`${name}_bucket`) ?? []) {
    const bound = numberOf(labels.le);
    upTo.set(bound, (upTo.get(bound) ?? 0) + value);
  }
  const bounds = [...upTo.keys()].sort((a, b) => a - b);
  return bounds.map((to, i) => ({ to, count: upTo.get(to) - (i ? upTo.get(bounds[i - 1]) : 0) }));
}

function parseLabels(text) {
  const pairs = text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g);
  const unescaped = (value) =>
    value.replace(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character));
  return Object.fromEntries([...pairs].map(([, name, value]) => [name, unescaped(value)]));
}

function numberOf(text) {
  if (text === "+Inf") return Infinity;
  return text === "-Inf" ? -Infinity : Number(text);
}

// Two kinds of drawings in SVG, coloured by the page's style: lines over time and a histogram.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 320;
const HEIGHT = 120;
const LEFT = 38;
const BOTTOM = 18;
const TOP = 8;

/**
 * @param {{label, values: number[]}[]} lines oldest value first, the newest at the right edge
 * @param {{places: number, least: number, format(value)}} axis `places` values fit into the width;
 *   it reaches up to `least` at least
 */
export function lineChart(title, lines, { places, least, format }) {
  const most = niceCeiling(Math.max(least, ...lines.flatMap(({ values }) => values)));
  const x = (age) => WIDTH - (age / (places - 1)) * (WIDTH - LEFT);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const paths = lines.map(({ values }, i) => {
    const points = values.map((value, at) => `${x(values.length - 1 - at)},${y(value)}`);
    return shape("polyline", { points: points.join(" "), class: `line line-${i}` });
  });
  const latest = lines.map(({ label, values }) => `${label} ${format(values.at(-1) ?? 0)}`);
  return figure(title, latest, [...grid(most, y, format), ...paths], latest.join(", "));
}

/** @param {{to: number, count: number}[]} bars */
export function histogram(title, bars, { format, summary }) {
  const most = niceCeiling(Math.max(2, ...bars.map(({ count }) => count)));
  const wide = (WIDTH - LEFT) / bars.length;
  const y = (count) => HEIGHT - BOTTOM - (count / most) * (HEIGHT - BOTTOM - TOP);
  const parts = bars.flatMap(({ to, count }, i) => {
    const x = LEFT + i * wide;
    const size = { width: wide - 3, height: HEIGHT - BOTTOM - y(count), rx: 1.5 };
    const bar = shape("rect", { x: x + 1.5, y: y(count), ...size, class: "bar" });
    const bound = label(x + wide / 2, HEIGHT - 5, to === Infinity ? "∞" : format(to), "middle");
    return [bar, bound];
  });
  return figure(title, [summary], [...grid(most, y, String), ...parts], summary);
}

function figure(title, notes, shapes, description) {
  const element = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const name = document.createElement("strong");
  name.textContent = title;
  caption.append(name, ...notes.map((note, i) => noteOf(note, i)));
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  drawing.setAttribute("aria-label", `${title}: ${description}`);
  drawing.append(...shapes);
  element.append(caption, drawing);
  return element;
}

function noteOf(text, index) {
  const note = document.createElement("span");
  note.className = `note note-${index}`;
  note.textContent = text;
  return note;
}

function grid(most, y, format) {
  return [0, most / 2, most].flatMap((value) => [
    shape("line", { x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value), class: "grid" }),
    label(LEFT - 5, y(value) + 3, format(value), "end"),
  ]);
}

function label(x, y, text, anchor) {
  const element = shape("text", { x, y, "text-anchor": anchor });
  element.textContent = text;
  return element;
}

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** The next of 1, 2, 4, 6, 10, 20, ... that is not below `value`. */
export function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 10].map((step) => step * power).find((step) => step >= value);
}

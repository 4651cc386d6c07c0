// Two kinds of drawings in SVG, coloured by the page's style: lines over time and a histogram. They
// are drawn as wide as they are shown, so that their text keeps its size.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 132;
const LEFT = 44;
const BOTTOM = 20;
const TOP = 10;
const CHARACTER = 7.5; // pixels that one takes at most

/**
 * @param {{label, values: number[]}[]} lines oldest value first, the newest at the right edge
 * @param {{width: number, places: number, least: number, format(value)}} axis `width` in pixels, into
 *   which `places` values fit; it reaches up to `least` at least
 */
export function lineChart(title, lines, { width, places, least, format }) {
  const most = niceCeiling(Math.max(least, ...lines.flatMap(({ values }) => values)));
  const x = (age) => width - (age / (places - 1)) * (width - LEFT);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const paths = lines.map(({ values }, i) => {
    const points = values.map((value, at) => `${x(values.length - 1 - at)},${y(value)}`);
    return shape("polyline", { points: points.join(" "), class: `line line-${i}` });
  });
  const latest = lines.map(({ label, values }) => `${label} ${format(values.at(-1) ?? 0)}`);
  const shapes = [...grid(width, most, y, format), ...paths];
  return figure(title, latest, { width, shapes, description: latest.join(", ") });
}

/** @param {{to: number, count: number}[]} bars */
export function histogram(title, bars, { width, format, summary }) {
  const most = niceCeiling(Math.max(2, ...bars.map(({ count }) => count)));
  const wide = (width - LEFT) / bars.length;
  const bounds = bars.map(({ to }) => (to === Infinity ? "∞" : format(to)));
  // Where they would touch, only every so many bounds are written.
  const longest = Math.max(...bounds.map(({ length }) => length)) + 1;
  const every = Math.ceil((longest * CHARACTER) / wide);
  const y = (count) => HEIGHT - BOTTOM - (count / most) * (HEIGHT - BOTTOM - TOP);
  const parts = bars.flatMap(({ count }, i) => {
    const x = LEFT + i * wide;
    const size = { width: wide - 3, height: HEIGHT - BOTTOM - y(count), rx: 1.5 };
    const bar = shape("rect", { x: x + 1.5, y: y(count), ...size, class: "bar" });
    if ((bars.length - 1 - i) % every !== 0) return [bar];
    return [bar, label(x + wide / 2, HEIGHT - 5, bounds[i], "middle")];
  });
  const shapes = [...grid(width, most, y, String), ...parts];
  return figure(title, [summary], { width, shapes, description: summary });
}

function figure(title, notes, { width, shapes, description }) {
  const element = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const name = document.createElement("strong");
  name.textContent = title;
  caption.append(name, ...notes.map((note, i) => noteOf(note, i)));
  const drawing = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
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

function grid(width, most, y, format) {
  return [0, most / 2, most].flatMap((value) => [
    shape("line", { x1: LEFT, x2: width, y1: y(value), y2: y(value), class: "grid" }),
    label(LEFT - 5, y(value) + 4, format(value), "end"),
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

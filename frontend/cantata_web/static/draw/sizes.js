// Which sizes a model draws, in pixels, from its limits in /v1/models. No DOM here.

import { t } from "../texts.js";

export const AUTO = "auto"; // the model's own choice, which may follow a picture that is edited

const SHAPES = [
  [t("Square"), 1, 1],
  [t("Landscape 4:3"), 4, 3],
  [t("Landscape 16:9"), 16, 9],
  [t("Portrait 3:4"), 3, 4],
  [t("Portrait 9:16"), 9, 16],
];
const SMALLER = 1 / 2; // of the sides: drawn sooner

/**
 * Sizes to choose from, of about the default one's area, and a smaller square.
 * @param {object} limits `images` of a model
 * @returns {{value, label}[]} the first is `auto`
 */
export function offeredSizes(limits) {
  const [width, height] = sidesOf(limits.default_size);
  const side = Math.sqrt(width * height);
  const shapes = SHAPES.map(([name, across, down]) => {
    const stretch = Math.sqrt(across / down);
    return [name, side * stretch, side / stretch];
  });
  shapes.push([t("Small square"), side * SMALLER, side * SMALLER]);
  const offered = [{ value: AUTO, label: t("The model's choice") }];
  for (const [name, ...sides] of shapes) {
    const [w, h] = sides.map((length) => rounded(length, limits));
    const value = `${w}x${h}`;
    if (whyNotSize(w, h, limits) !== null || offered.some((one) => one.value === value)) continue;
    offered.push({ value, label: `${name}, ${w} × ${h}` });
  }
  return offered;
}

/** A sentence that says why the model cannot draw this size; null if it can. */
export function whyNotSize(width, height, { multiple, min_side: least, max_pixels: most }) {
  const whole = width % multiple === 0 && height % multiple === 0;
  if (whole && Math.min(width, height) >= least && width * height <= most) return null;
  const side = Math.floor(Math.sqrt(most));
  return t(
    "Width and height must be multiples of {multiple}, at least {least}, and together at most " +
      "{most} pixels, as {side} × {side}.",
    { multiple, least: String(least), most: String(most), side: String(side) },
  );
}

/** Width and height of `WIDTHxHEIGHT`. */
export function sidesOf(size) {
  return size.split("x").map(Number);
}

function rounded(length, { multiple, min_side: least }) {
  const lowest = Math.ceil(least / multiple) * multiple;
  return Math.max(lowest, Math.round(length / multiple) * multiple);
}

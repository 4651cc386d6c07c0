// The controls of a picture's size: a menu of the model's, and fields for any other.

import { SpeechError } from "../api/errors.js";
import { AUTO, offeredSizes, sidesOf, whyNotSize } from "../draw/sizes.js";
import { t } from "../texts.js";
import { fillMenu } from "./choices.js";

const OWN = "own";

export class PictureSize {
  #menu;
  #width;
  #height;
  #sides;
  #limits = null;

  constructor(root) {
    const control = (name) => root.querySelector(`#cantata-${name}`);
    this.#menu = control("size");
    this.#width = control("width");
    this.#height = control("height");
    this.#sides = root.querySelector("[data-role='sides']");
    this.#menu.addEventListener("change", () => this.#unfold());
  }

  /** Offers what a model of these limits draws. */
  offer(limits) {
    this.#limits = limits;
    fillMenu(this.#menu, [...offeredSizes(limits), { value: OWN, label: t("Other…") }], []);
    const [width, height] = sidesOf(limits.default_size);
    for (const [field, side] of [[this.#width, width], [this.#height, height]]) {
      field.min = String(limits.min_side);
      field.step = String(limits.multiple);
      if (field.value === "") field.value = String(side);
    }
    this.#unfold();
  }

  /** `WIDTHxHEIGHT` or `auto`; throws a SpeechError if the model does not draw what was entered. */
  get value() {
    if (this.#menu.value !== OWN) return this.#menu.value;
    const [width, height] = [this.#width, this.#height].map((field) => Number(field.value));
    const problem = whyNotSize(width, height, this.#limits);
    if (problem === null) return `${width}x${height}`;
    this.#width.focus();
    throw new SpeechError(problem);
  }

  set value(size) {
    this.#menu.value = size;
    if (this.#menu.value !== size) {
      this.#menu.value = OWN;
      [this.#width.value, this.#height.value] = sidesOf(size).map(String);
    }
    this.#unfold();
  }

  focus() {
    this.#menu.focus();
  }

  #unfold() {
    this.#sides.hidden = this.#menu.value !== OWN;
    if (this.#menu.value === "") this.#menu.value = AUTO;
  }
}

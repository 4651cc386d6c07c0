// Where a player is, and where to go: a slider between the time so far and the time in all.

import { shortClock } from "../listen/clock.js";
import { t } from "../texts.js";

const STEPS = 1_000; // of the slider

export class SeekBar {
  #slider;
  #at;
  #total;
  #seconds = 0; // in all
  #seeking = false;

  /**
   * @param {{slider, at, total}} elements
   * @param {(share: number) => void} seek the listener wants to go there; 0 to 1
   */
  constructor({ slider, at, total }, seek) {
    this.#slider = slider;
    this.#at = at;
    this.#total = total;
    slider.addEventListener("input", () => {
      this.#seeking = true;
      this.#tell(this.#share);
    });
    slider.addEventListener("change", () => {
      this.#seeking = false;
      seek(this.#share);
    });
  }

  /** @param {number} seconds in all */
  show(share, seconds) {
    this.#seconds = seconds;
    if (this.#seeking) return;
    this.#slider.value = String(Math.round(share * STEPS));
    this.#tell(share);
  }

  get #share() {
    return Number(this.#slider.value) / STEPS;
  }

  #tell(share) {
    const [part, whole] = [shortClock(share * this.#seconds), shortClock(this.#seconds)];
    if (this.#at.textContent !== part) this.#at.textContent = part;
    if (this.#total.textContent !== whole) this.#total.textContent = whole;
    this.#slider.setAttribute("aria-valuetext", t("{part} of {whole}", { part, whole }));
  }
}

// The reader's player bar: time, place, speed, volume and voice.

import { shortClock } from "../listen/clock.js";
import { Reading } from "../read/narrator.js";
import { fillVoices } from "./choices.js";

const STEPS = 1_000; // of the slider
const KEPT = "reading";

export class ReadBar {
  speed = 1;
  #narrator;
  #find;
  #store;
  #seeking = false;

  /** @param {(place) => void} seek the reader wants to go there */
  constructor(find, { narrator, settings, choices, store, seek }) {
    this.#narrator = narrator;
    this.#find = find;
    this.#store = store;
    this.#restore();
    const slider = find("read-seek");
    const placeOf = () => Math.floor((Number(slider.value) / STEPS) * (narrator.book.length - 1));
    slider.addEventListener("input", () => {
      this.#seeking = true;
      this.#showTime(Number(slider.value) / STEPS);
    });
    slider.addEventListener("change", () => {
      this.#seeking = false;
      seek(narrator.book.wordAt(placeOf()));
    });
    find("read-speed").addEventListener("change", () => {
      this.speed = Number(find("read-speed").value);
      this.#keep();
      narrator.change();
      this.refresh();
    });
    find("read-volume").addEventListener("input", () => {
      narrator.volume = Number(find("read-volume").value);
      this.#keep();
    });
    this.#offerVoices(settings, choices);
    for (const type of ["state", "place"]) narrator.addEventListener(type, () => this.refresh());
  }

  refresh() {
    const { state, going, book, place } = this.#narrator;
    this.#find("read-play").textContent = going ? "Pause" : "Play";
    if (book === null || this.#seeking) return;
    const share = state === Reading.DONE ? 1 : place / Math.max(1, book.length);
    this.#find("read-seek").value = String(Math.round(share * STEPS));
    this.#showTime(share);
  }

  #showTime(share) {
    const { total } = this.#narrator.time;
    const [at, all] = [shortClock(share * total), shortClock(total)];
    this.#find("read-time").textContent = at;
    this.#find("read-total").textContent = all;
    this.#find("read-seek").setAttribute("aria-valuetext", `${at} of ${all}`);
  }

  #offerVoices(settings, choices) {
    const menu = this.#find("read-voice");
    const fill = () => {
      fillVoices(menu, settings.voices, [settings.voice?.id]);
      if (settings.voice !== undefined) menu.value = settings.voice.id;
    };
    menu.addEventListener("change", () => settings.pickVoice(menu.value));
    choices.addEventListener("change", fill);
    let chosen = settings.voice?.id;
    settings.addEventListener("voice", () => {
      fill();
      if (settings.voice?.id !== chosen) this.#narrator.change();
      chosen = settings.voice?.id;
    });
    fill();
  }

  #restore() {
    const { speed, volume } = this.#store.get(KEPT, {});
    const menu = this.#find("read-speed");
    menu.value = String(speed ?? 1);
    if (menu.value === "") menu.value = "1";
    this.speed = Number(menu.value);
    const loud = Number(volume ?? 1);
    this.#find("read-volume").value = String(loud);
    this.#narrator.volume = Number(this.#find("read-volume").value);
  }

  #keep() {
    const volume = Number(this.#find("read-volume").value);
    this.#store.set(KEPT, { speed: this.speed, volume });
  }
}

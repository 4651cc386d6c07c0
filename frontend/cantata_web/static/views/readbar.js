// The reader's player bar: time, place, speed, volume and voice.

import { Reading } from "../read/narrator.js";
import { t } from "../texts.js";
import { fillVoices } from "./choices.js";
import { SeekBar } from "./seekbar.js";

const KEPT = "reading";

export class ReadBar {
  speed = 1;
  #narrator;
  #find;
  #store;
  #seek;

  /** @param {(place) => void} seek the reader wants to go there */
  constructor(find, { narrator, settings, choices, store, seek }) {
    this.#narrator = narrator;
    this.#find = find;
    this.#store = store;
    this.#restore();
    this.#seek = new SeekBar(
      { slider: find("read-seek"), at: find("read-time"), total: find("read-total") },
      (share) => seek(narrator.book.wordAt(Math.floor(share * (narrator.book.length - 1)))),
    );
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
    this.#find("read-play").textContent = going ? t("Pause") : t("Play");
    if (book === null) return;
    const share = state === Reading.DONE ? 1 : place / Math.max(1, book.length);
    this.#seek.show(share, this.#narrator.time.total);
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

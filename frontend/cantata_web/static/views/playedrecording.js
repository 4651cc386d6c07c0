// A recording in the browser's own player, from any of its words.

import { Animation } from "./animation.js";

/** Dispatches "play" when it begins, "time" while it moves, "change" when more is known of it. */
export class PlayedRecording extends EventTarget {
  #audio;
  #seconds = null;
  #animation = new Animation(() => this.#tell());

  /** @param {HTMLAudioElement} audio */
  constructor(audio) {
    super();
    this.#audio = audio;
    audio.addEventListener("play", () => {
      this.dispatchEvent(new Event("play"));
      this.#animation.start();
    });
    for (const moved of ["seeked", "pause", "ended"]) {
      audio.addEventListener(moved, () => this.#animation.start());
    }
    for (const known of ["durationchange", "error"]) {
      audio.addEventListener(known, () => this.dispatchEvent(new Event("change")));
    }
  }

  /** @param {Blob | null} sound @param {number | null} seconds its length, if it is known */
  show(sound, seconds = null) {
    const { src } = this.#audio;
    this.#audio.pause();
    this.#seconds = seconds;
    if (sound === null) this.#audio.removeAttribute("src");
    else this.#audio.src = URL.createObjectURL(sound);
    if (src !== "") URL.revokeObjectURL(src);
  }

  /** Call it from the click. */
  playFrom(seconds) {
    this.#audio.currentTime = seconds;
    // Fails if the browser cannot read the file, or another one follows at once.
    this.#audio.play().catch(() => {});
  }

  pause() {
    this.#audio.pause();
  }

  get playing() {
    return !this.#audio.paused;
  }

  /** Where it is. */
  get seconds() {
    return this.#audio.currentTime;
  }

  /** Its length in seconds; null while that is unknown. */
  get duration() {
    const { duration } = this.#audio;
    return Number.isFinite(duration) ? duration : this.#seconds;
  }

  /** Whether the browser has failed to read it. */
  get broken() {
    return this.#audio.error !== null;
  }

  #tell() {
    this.dispatchEvent(new Event("time"));
    return this.playing;
  }
}

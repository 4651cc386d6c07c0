// The reader at the system's media controls: a headset's buttons, a keyboard's, a lock screen.

import { t } from "../texts.js";
import { holdControls } from "./nowplaying.js";

const ACTIONS = ["play", "pause", "stop", "previoustrack", "nexttrack", "seekbackward", "seekforward"];

export class MediaKeys {
  #narrator;
  #handlers;
  #describe;
  #title = document.title;
  #held = false;

  /** @param {{describe(), play(), step(by)}} reader `describe` gives {title, voice} */
  constructor(narrator, { describe, play, step }) {
    this.#narrator = narrator;
    this.#describe = describe;
    const back = () => step(-1);
    const on = () => step(1);
    const pause = () => narrator.pause();
    this.#handlers = [play, pause, pause, back, on, back, on];
    narrator.addEventListener("state", () => this.#follow());
  }

  #follow() {
    const { going, state } = this.#narrator;
    if (going && !this.#held) this.#take();
    if (going) document.title = t("Reading · {title}", { title: this.#title });
    else if (this.#held) document.title = this.#title;
    const session = navigator.mediaSession;
    if (session !== undefined && this.#held) {
      session.playbackState = going ? "playing" : state === "paused" ? "paused" : "none";
      holdControls(going);
    }
    this.#held = going;
  }

  #take() {
    const session = navigator.mediaSession;
    if (session === undefined) return;
    const { title, voice } = this.#describe();
    session.metadata = new MediaMetadata({ title, artist: voice, album: this.#title });
    ACTIONS.forEach((action, i) => session.setActionHandler(action, this.#handlers[i]));
  }
}

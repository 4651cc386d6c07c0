// What the browser shows of the speech outside the page: the tab's title and icon, and the media
// controls of the system, such as a headphone's buttons.

import { encodeWav } from "../player/wav.js";
import { State } from "../speech/states.js";
import { t } from "../texts.js";

const TITLE_CHARACTERS = 60;
const SKIP_SECONDS = 10;
const SILENCE_RATE = 8_000;
const SILENCE_SECONDS = 10; // media of less than five get no controls
const SPEAKING_ICON =
  "data:image/svg+xml," +
  encodeURIComponent(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7"' +
      ' fill="#0f2620"/><g stroke="#f2b632" stroke-width="4" stroke-linecap="round">' +
      '<path d="M7 13v6M13 8v16M19 11v10M25 14v4"/></g></svg>',
  );

export class NowPlaying {
  #speaker;
  #describe;
  #title = document.title;
  #icon = document.querySelector("link[rel~='icon']");
  #iconHref = this.#icon?.href;

  /** @param {() => {text: string, voice: string}} describe what is being spoken */
  constructor(speaker, describe) {
    this.#speaker = speaker;
    this.#describe = describe;
    speaker.addEventListener("begin", () => this.#begin());
    speaker.addEventListener("state", () => this.#follow());
  }

  #begin() {
    if (navigator.mediaSession === undefined) return;
    const session = navigator.mediaSession;
    session.setActionHandler("play", () => this.#play());
    session.setActionHandler("pause", () => this.#speaker.pause());
    session.setActionHandler("stop", () => this.#speaker.stop());
    const seek = (by) => this.#speaker.seek(Math.max(0, this.#speaker.playedSeconds + by));
    session.setActionHandler("seekbackward", () => seek(-SKIP_SECONDS));
    session.setActionHandler("seekforward", () => seek(SKIP_SECONDS));
    session.setActionHandler("seekto", ({ seekTime }) => this.#speaker.seek(seekTime));
    const { text, voice } = this.#describe();
    const short = text.length > TITLE_CHARACTERS ? `${text.slice(0, TITLE_CHARACTERS)}…` : text;
    session.metadata = new MediaMetadata({
      title: short.trim(),
      artist: voice,
      album: this.#title,
    });
  }

  #play() {
    const speaker = this.#speaker;
    if (speaker.state === State.PAUSED) speaker.unpause();
    else if (speaker.resumable) speaker.resume();
    else if (!speaker.busy && speaker.metrics.playedFrames > 0) speaker.replay();
  }

  #follow() {
    const { sounding, state } = this.#speaker;
    document.title = sounding
      ? t("Speaking · {title}", { title: this.#title })
      : this.#title;
    if (this.#icon) {
      this.#icon.type = sounding ? "image/svg+xml" : "image/png";
      this.#icon.href = sounding ? SPEAKING_ICON : this.#iconHref;
    }
    if (navigator.mediaSession === undefined) return;
    const paused = state === State.PAUSED ? "paused" : "none";
    navigator.mediaSession.playbackState = sounding ? "playing" : paused;
    holdControls(sounding);
  }
}

let silence = null;

/** Systems offer their controls only for media elements that play, so one plays silence. */
export function holdControls(sounding) {
  if (sounding) {
    silence ??= silentLoop();
    // Where a browser refuses, only the system's buttons are missing.
    silence.play().catch(() => {});
  } else {
    silence?.pause();
  }
}

function silentLoop() {
  const silence = new Int16Array(SILENCE_SECONDS * SILENCE_RATE);
  const file = new Blob([encodeWav(silence, SILENCE_RATE)], { type: "audio/wav" });
  const audio = new Audio(URL.createObjectURL(file));
  audio.loop = true;
  return audio;
}

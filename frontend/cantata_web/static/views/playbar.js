// The player bar of what is spoken: play and pause, time, place, speed and volume.

import { restOf } from "../speech/pace.js";
import { State } from "../speech/states.js";
import { t } from "../texts.js";
import { SeekBar } from "./seekbar.js";

const KEPT = "playing";

export class PlayBar {
  #find;
  #speaker;
  #store;
  #heardText;
  #seek;

  /**
   * @param {BrowserStore} store keeps speed and volume
   * @param {() => string} heardText what is spoken, or was last
   */
  constructor(find, { speaker, store, heardText }) {
    this.#find = find;
    this.#speaker = speaker;
    this.#store = store;
    this.#heardText = heardText;
    this.#seek = new SeekBar(
      { slider: find("seek"), at: find("time"), total: find("total") },
      (share) => speaker.seek(share * this.#totalSeconds),
    );
    find("play").addEventListener("click", () => this.#toggle());
    find("rate").addEventListener("change", () => this.#follow());
    find("volume").addEventListener("input", () => this.#follow());
    for (const type of ["begin", "state", "metrics"]) {
      speaker.addEventListener(type, () => this.refresh());
    }
    this.#restore();
  }

  /** Somebody clicked on the waveform there. */
  seek(seconds) {
    if (seconds < this.#totalSeconds) this.#speaker.seek(seconds);
  }

  refresh() {
    const { state, busy, sounding, metrics, playedSeconds } = this.#speaker;
    const paused = state === State.PAUSED;
    const heard = !busy && metrics.playedFrames > 0;
    const play = this.#find("play");
    const resting = heard ? t("Replay") : t("Play");
    const name = paused ? t("Continue") : busy ? t("Pause") : resting;
    if (play.textContent !== name) play.textContent = name;
    play.disabled = !paused && !sounding && !heard;
    this.#find("seek").disabled = metrics.receivedFrames === 0;
    const total = this.#totalSeconds;
    const share = state === State.DONE ? 1 : Math.min(1, playedSeconds / Math.max(total, 0.001));
    this.#seek.show(share, total);
  }

  // While more is coming: by the pace of the words so far.
  get #totalSeconds() {
    const { metrics, busy, replaying, words } = this.#speaker;
    const { receivedFrames, playedFrames, sampleRate, server } = metrics;
    const received = receivedFrames / sampleRate;
    if (!busy && !replaying) return playedFrames / sampleRate;
    if (replaying || server !== null) return received;
    return received + (restOf(this.#heardText(), words.all, received) ?? 0);
  }

  #toggle() {
    const speaker = this.#speaker;
    if (speaker.state === State.PAUSED) speaker.unpause();
    else if (speaker.sounding) speaker.pause();
    else speaker.replay();
  }

  #follow() {
    const [rate, volume] = [this.#find("rate"), this.#find("volume")].map(({ value }) => Number(value));
    this.#speaker.rate = rate;
    this.#speaker.volume = volume;
    this.#store.set(KEPT, { rate, volume });
  }

  #restore() {
    const { rate, volume } = this.#store.get(KEPT, {});
    const menu = this.#find("rate");
    menu.value = String(rate ?? 1);
    if (menu.value === "") menu.value = "1";
    this.#find("volume").value = String(volume ?? 1);
    this.#speaker.rate = Number(menu.value);
    this.#speaker.volume = Number(this.#find("volume").value);
  }
}

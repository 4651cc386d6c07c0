// The moving parts beneath the text: the waveform, the word that is heard, and how soon sound came.

import { State } from "../speech/states.js";
import { decimal, t } from "../texts.js";
import { Animation } from "./animation.js";

const MARKED = new Set([State.PLAYING, State.STARVED, State.PAUSED]); // the word heard last stays

export class Meters {
  #speaker;
  #waveform;
  #highlight;
  #summary;
  #animation = new Animation(() => this.#frame());

  constructor(find, speaker, waveform, highlight) {
    this.#speaker = speaker;
    this.#waveform = waveform;
    this.#highlight = highlight;
    this.#summary = find("figures").querySelector("summary");
    speaker.addEventListener("begin", () => waveform.clear());
    speaker.addEventListener("state", () => this.#follow());
    speaker.addEventListener("samples", ({ detail }) => {
      const { sampleRate, channels } = speaker.metrics;
      waveform.append(detail, sampleRate, channels);
    });
    speaker.addEventListener("metrics", () => this.#tell());
  }

  #follow() {
    this.#tell();
    this.#animation.start();
  }

  #frame() {
    const speaker = this.#speaker;
    const { gaps, sampleRate } = speaker.metrics;
    this.#waveform.draw(speaker.playedSeconds, inSeconds(gaps, sampleRate));
    const speaks = MARKED.has(speaker.state);
    this.#highlight.show(speaks ? speaker.words.at(speaker.heardSeconds) : null);
    return speaker.busy;
  }

  #tell() {
    const { audibleSeconds } = this.#speaker.metrics;
    const told = audibleSeconds === null
      ? t("Figures")
      : t("First sound after {seconds} s", { seconds: decimal(audibleSeconds, 2) });
    if (this.#summary.textContent !== told) this.#summary.textContent = told;
  }
}

function inSeconds(gaps, sampleRate) {
  return gaps.map(({ atFrame, frames }) => ({
    at: atFrame / sampleRate,
    seconds: frames / sampleRate,
  }));
}

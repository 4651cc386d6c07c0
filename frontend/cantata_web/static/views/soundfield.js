// One recording in a form: made here or taken from a file, played back, and checked.

import { SpeechError } from "../api/errors.js";
import { problemOf } from "../clone/check.js";
import { GONE } from "../clone/microphone.js";
import { Recorder } from "../clone/recorder.js";
import { decimal, t } from "../texts.js";
import { LevelLine } from "./levelline.js";
import { statusLine } from "./status.js";

const TOO_LOUD = 0.98;
const GOOD = t("The recording is good.");

/** Dispatches "recording" (detail: whether it records). */
export class SoundField extends EventTarget {
  #box;
  #maxSeconds;
  #recorder;
  #line;
  #say;
  #label;
  #sample = null; // a Blob
  #problem = null; // promise of what is wrong with it, or of null
  #tooLoud = false;

  /** @param {number} maxSeconds after which a recording ends by itself */
  constructor(box, maxSeconds) {
    super();
    this.#box = box;
    this.#maxSeconds = maxSeconds;
    this.#recorder = new Recorder(maxSeconds);
    this.#line = new LevelLine(this.#find("record-level"));
    this.#say = statusLine(this.#find("verdict"));
    this.#label = this.#find("record").querySelector("span");
    this.#recorder.addEventListener("level", ({ detail }) => this.#showLevel(detail));
    const starts = this.#label.textContent;
    this.#find("record").addEventListener("click", () => void this.#record(starts));
    this.#file.addEventListener("change", () => void this.#take(this.#file.files[0] ?? null));
  }

  /** Resolves with the recording; rejects with a SpeechError that says why there is none. */
  async checked() {
    if (this.#recorder.recording) throw new SpeechError(t("Stop the recording first."));
    if (this.#sample === null) throw new SpeechError(t("Record something, or choose a file."));
    const problem = await this.#problem;
    if (problem !== null) throw new SpeechError(problem);
    return this.#sample;
  }

  focus() {
    this.#find("record").focus();
  }

  /** As at the beginning. */
  clear() {
    this.#file.value = "";
    this.#line.clear();
    this.#find("record-clock").textContent = `${decimal(0, 1)} s`;
    void this.#take(null);
  }

  get #file() {
    return this.#box.querySelector("input[type='file']");
  }

  #find(role) {
    return this.#box.querySelector(`[data-role="${role}"]`);
  }

  async #record(starts) {
    if (this.#recorder.recording) {
      this.#recorder.stop();
      return;
    }
    this.clear();
    try {
      await this.#recorder.start();
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#say(error.message, true);
      return;
    }
    this.#tooLoud = false;
    this.#showRecording(true, t("Stop recording"));
    this.#say(t("Recording. Read the sentence, then stop."));
    const sample = await this.#recorder.untilStopped();
    this.#showRecording(false, starts);
    await this.#take(sample);
    // Beside it only what can be used matters: it may well be too short.
    if (!this.#recorder.gone || sample !== this.#sample) return;
    this.#say((await this.#problem) === null ? `${GONE} ${GOOD}` : GONE, true);
  }

  #showRecording(recording, label) {
    this.#find("record").setAttribute("aria-pressed", String(recording));
    this.#label.textContent = label;
    this.#file.disabled = recording;
    this.dispatchEvent(new CustomEvent("recording", { detail: recording }));
  }

  #showLevel({ seconds, peak }) {
    this.#line.append(peak, seconds / this.#maxSeconds);
    this.#find("record-clock").textContent = `${decimal(seconds, 1)} s`;
    if (peak < TOO_LOUD || this.#tooLoud) return;
    this.#tooLoud = true;
    this.#say(t("Too loud. Go further away from the microphone."), true);
  }

  async #take(sample) {
    const player = this.#find("reference");
    if (player.src) URL.revokeObjectURL(player.src);
    this.#sample = sample;
    this.#say("");
    player.hidden = sample === null;
    if (sample === null) {
      player.removeAttribute("src");
      return;
    }
    player.src = URL.createObjectURL(sample);
    this.#say(t("Checking the recording…"));
    this.#problem = problemOf(sample);
    const problem = await this.#problem;
    if (sample === this.#sample) this.#say(problem ?? GOOD, problem !== null);
  }
}

// The recording of a new voice: made here or taken from a file, played back, and checked.

import { SpeechError } from "../api/errors.js";
import { problemOf } from "../clone/check.js";
import { Recorder } from "../clone/recorder.js";
import { SENTENCES } from "../clone/sentences.js";
import { LevelLine } from "./levelline.js";
import { statusLine } from "./status.js";

const MAX_SECONDS = 14.5; // the server uses 15, and a transcript has to fit what it uses
const TOO_LOUD = 0.98;

export class Recording {
  #root;
  #recorder = new Recorder(MAX_SECONDS);
  #line;
  #say;
  #sample = null; // a Blob
  #problem = null; // promise of what is wrong with it, or of null
  #sentence = 0;
  #tooLoud = false;

  constructor(root) {
    this.#root = root;
    this.#line = new LevelLine(this.#find("record-level"));
    this.#say = statusLine(this.#find("verdict"));
    this.#recorder.addEventListener("level", ({ detail }) => this.#showLevel(detail));
    const on = (role, act) => this.#find(role).addEventListener("click", act);
    on("record", () => void this.#record());
    on("other-sentence", () => this.#offer(this.#sentence + 1));
    on("said-it", () => (this.#said.value = SENTENCES[this.#sentence]));
    this.#file.addEventListener("change", () => void this.#take(this.#file.files[0] ?? null));
    this.#offer(0);
  }

  /** Resolves with the recording; rejects with a SpeechError that says why there is none. */
  async checked() {
    if (this.#recorder.recording) throw new SpeechError("Stop the recording first.");
    if (this.#sample === null) throw new SpeechError("Record something, or choose a file.");
    const problem = await this.#problem;
    if (problem !== null) throw new SpeechError(problem);
    return this.#sample;
  }

  /** What is said in it; may be empty. */
  get said() {
    return this.#said.value.trim();
  }

  focus() {
    this.#find("record").focus();
  }

  /** As at the beginning. */
  clear() {
    this.#said.value = "";
    this.#clearSound();
  }

  get #file() {
    return this.#root.querySelector("#cantata-sample");
  }

  get #said() {
    return this.#root.querySelector("#cantata-said");
  }

  #find(role) {
    return this.#root.querySelector(`[data-role="${role}"]`);
  }

  #offer(number) {
    this.#sentence = number % SENTENCES.length;
    this.#find("read").textContent = SENTENCES[this.#sentence];
  }

  #clearSound() {
    this.#file.value = "";
    this.#line.clear();
    this.#find("record-clock").textContent = "0.0 s";
    void this.#take(null);
  }

  async #record() {
    if (this.#recorder.recording) {
      this.#recorder.stop();
      return;
    }
    this.#clearSound();
    try {
      await this.#recorder.start();
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#say(error.message, true);
      return;
    }
    this.#tooLoud = false;
    this.#showRecording(true);
    this.#say("Recording. Read the sentence, then stop.");
    const sample = await this.#recorder.untilStopped();
    this.#showRecording(false);
    await this.#take(sample);
  }

  #showRecording(recording) {
    const button = this.#find("record");
    button.setAttribute("aria-pressed", String(recording));
    button.querySelector("span").textContent = recording ? "Stop recording" : "Record";
    for (const control of [this.#file, this.#find("other-sentence")]) control.disabled = recording;
  }

  #showLevel({ seconds, peak }) {
    this.#line.append(peak, seconds / MAX_SECONDS);
    this.#find("record-clock").textContent = `${seconds.toFixed(1)} s`;
    if (peak < TOO_LOUD || this.#tooLoud) return;
    this.#tooLoud = true;
    this.#say("Too loud. Go further away from the microphone.", true);
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
    this.#say("Checking the recording…");
    this.#problem = problemOf(sample);
    const problem = await this.#problem;
    if (sample === this.#sample) this.#say(problem ?? "The recording is good.", problem !== null);
  }
}

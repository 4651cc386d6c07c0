// Where a recording comes from: a file that is chosen or dropped, or the microphone.

import { SpeechError } from "../api/errors.js";
import { Recorder } from "../clone/recorder.js";
import { shortClock } from "../listen/clock.js";
import { t } from "../texts.js";
import { LevelLine } from "./levelline.js";
import { firstOf } from "./strays.js";

const TAKEN = "WAV, FLAC, Ogg, MP3, AAC, M4A, WebM";
const MAX_SECONDS = 30 * 60;
const LINE_SECONDS = 15; // that the loudness line is long; then it begins anew

/**
 * Dispatches "take" (detail: {sound: Blob, name, seconds: number | null, gone: whether the
 * microphone vanished}) for a recording, "record" when the microphone has been opened, "refused" (detail: a sentence).
 */
export class SoundSource extends EventTarget {
  #find;
  #box;
  #field;
  #recorder = new Recorder(MAX_SECONDS);
  #line;
  #seconds = 0; // of what is being recorded
  #opening = false;

  constructor(root) {
    super();
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#box = this.#find("listen-drop");
    this.#field = this.#box.querySelector("input");
    this.#line = new LevelLine(this.#find("listen-level"));
    this.#recorder.addEventListener("level", ({ detail }) => this.#showLevel(detail));
    this.#find("listen-record").addEventListener("click", () => void this.#record());
    this.#field.addEventListener("change", () => this.#takeFile(this.#field.files[0]));
    // So that the same file can be chosen again.
    this.#field.addEventListener("click", () => (this.#field.value = ""));
    this.#takeDropped(root);
  }

  // The whole tab takes them; the box shows it.
  #takeDropped(root) {
    root.addEventListener("dragover", (event) => {
      if (!this.#takesFiles || !event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      this.#box.dataset.over = "true";
    });
    root.addEventListener("dragleave", ({ relatedTarget }) => {
      if (!root.contains(relatedTarget)) delete this.#box.dataset.over;
    });
    root.addEventListener("drop", (event) => {
      delete this.#box.dataset.over;
      if (!this.#takesFiles) return;
      event.preventDefault();
      this.#field.value = "";
      const { file, isFolder } = firstOf(event.dataTransfer);
      if (isFolder) {
        this.#refuse(t("This is a folder. Drop one file of it: {taken}.", { taken: TAKEN }));
      } else {
        this.#takeFile(file);
      }
    });
  }

  get #takesFiles() {
    return !this.#field.disabled && this.#field.checkVisibility();
  }

  #takeFile(file) {
    if (file === undefined) return;
    this.#take({ sound: file, name: file.name, seconds: null, gone: false });
  }

  #refuse(detail) {
    this.dispatchEvent(new CustomEvent("refused", { detail }));
  }

  #take(detail) {
    this.dispatchEvent(new CustomEvent("take", { detail }));
  }

  async #record() {
    if (this.#recorder.recording) {
      this.#recorder.stop();
      return;
    }
    if (this.#opening) return;
    this.#opening = true;
    try {
      await this.#recorder.start();
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#refuse(error.message);
      return;
    } finally {
      this.#opening = false;
    }
    this.#field.value = "";
    this.dispatchEvent(new Event("record"));
    this.#show(true);
    const sound = await this.#recorder.untilStopped();
    this.#show(false);
    const { gone } = this.#recorder;
    this.#take({ sound, name: t("recording"), seconds: this.#seconds, gone });
  }

  #show(recording) {
    const button = this.#find("listen-record");
    button.setAttribute("aria-pressed", String(recording));
    button.querySelector("span").textContent = recording ? t("Stop recording") : t("Record");
    this.#field.disabled = recording;
  }

  #showLevel({ seconds, peak }) {
    const turns = (time) => Math.floor(time / LINE_SECONDS);
    if (seconds < this.#seconds || turns(seconds) > turns(this.#seconds)) this.#line.clear();
    this.#seconds = seconds;
    this.#line.append(peak, (seconds % LINE_SECONDS) / LINE_SECONDS);
    this.#find("listen-clock").textContent = shortClock(seconds);
  }
}

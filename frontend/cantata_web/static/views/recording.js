// The recording of a new voice, with a sentence to read and what is said in it.

import { SENTENCES } from "../clone/sentences.js";
import { SoundField } from "./soundfield.js";

const MAX_SECONDS = 14.5; // the server uses 15, and a transcript has to fit what it uses

export class Recording {
  #root;
  #sound;
  #sentence = 0;

  constructor(root) {
    this.#root = root;
    this.#sound = new SoundField(this.#find("sample"), MAX_SECONDS);
    const on = (role, act) => this.#find(role).addEventListener("click", act);
    on("other-sentence", () => this.#offer(this.#sentence + 1));
    on("said-it", () => (this.#said.value = SENTENCES[this.#sentence]));
    this.#sound.addEventListener("recording", ({ detail }) => {
      this.#find("other-sentence").disabled = detail;
    });
    this.#offer(0);
  }

  /** Resolves with the recording; rejects with a SpeechError that says why there is none. */
  checked() {
    return this.#sound.checked();
  }

  /** What is said in it; may be empty. */
  get said() {
    return this.#said.value.trim();
  }

  focus() {
    this.#sound.focus();
  }

  /** As at the beginning. */
  clear() {
    this.#said.value = "";
    this.#sound.clear();
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
}

// Speaking while the listener types.

import { TypedText } from "../speech/typing.js";
import { t } from "../texts.js";

const PAUSE_MS = 2_500; // without a keystroke: speak the text so far

/** Joins a text box to a speaker between `start` and `finish`. */
export class TypeAlong {
  #box;
  #speaker;
  #tell;
  #typed = null;
  #pause = null;
  #before = ""; // what stood in the box

  /** @param {(sentence, isError) => void} tell */
  constructor(box, speaker, tell) {
    this.#box = box;
    this.#speaker = speaker;
    this.#tell = tell;
    box.addEventListener("input", () => this.#follow());
  }

  get active() {
    return this.#typed !== null;
  }

  /** Empties the box. Call it from the click. */
  start(config) {
    this.#before = this.#box.value;
    this.#box.value = "";
    this.#typed = new TypedText({
      write: (text) => this.#speaker.write(text, this.#typed.base),
      commit: () => this.#speaker.commit(),
      changed: () => this.#tell(t("What was sent has been spoken; continue typing at the end."), false),
    });
    this.#speaker.listen(config);
  }

  /** Speaks the rest. */
  finish() {
    if (!this.active) return;
    this.#typed.flush();
    this.forget();
    this.#speaker.close();
    if (this.#box.value === "") this.#box.value = this.#before;
  }

  /** The turn is over, or another one replaced it. */
  forget() {
    clearTimeout(this.#pause);
    this.#typed = null;
  }

  #follow() {
    if (!this.active) return;
    this.#typed.update(this.#box.value);
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#typed.flush(), PAUSE_MS);
  }
}

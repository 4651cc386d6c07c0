// Speaks a text that comes whole, or grows until it is complete.

import { TypedText } from "../speech/typing.js";

export class Narration {
  #speaker;
  #typed = null; // a text under way that still grows
  #text = ""; // of it
  #given = null; // the text whose rest is not spoken, because it was stopped or failed

  constructor(speaker) {
    this.#speaker = speaker;
    speaker.addEventListener("state", () => {
      if (speaker.busy || this.#typed === null) return;
      this.#typed = null;
      this.#given = this.#text;
    });
  }

  /**
   * @param {{text, complete, request} | null} value the whole text so far; a text that does not
   *   begin with the last one replaces it, and null stops it
   * @param {object} request fields of every request; those of the value replace them
   */
  follow(value, request) {
    const { text = "", complete = true } = value || {};
    if (text === "") {
      this.#speaker.stop();
      return;
    }
    if (this.#given !== null) {
      const more = text.startsWith(this.#given);
      this.#given = more && !complete ? text : null;
      if (more) return;
    }
    if (this.#typed === null || !text.startsWith(this.#text)) {
      if (complete) this.#typed = null;
      const config = { ...request, ...value.request };
      if (complete) this.#speaker.speak({ text, ...config });
      else this.#begin(config);
    }
    if (this.#typed !== null) this.#extend(text, complete);
  }

  #begin(config) {
    this.#speaker.listen(config);
    this.#typed = new TypedText({
      write: (text) => this.#speaker.write(text, this.#typed.base),
      commit: () => this.#speaker.commit(),
      changed: () => {}, // a text that does not extend the last one begins anew
    });
  }

  #extend(text, complete) {
    const typed = this.#typed;
    this.#text = text;
    typed.update(text);
    if (!complete) return;
    typed.flush();
    this.#typed = null;
    this.#speaker.close();
  }
}

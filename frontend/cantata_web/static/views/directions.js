// What the chosen model takes beyond text, voice and speed, and what it does: directions in words,
// options of its own, and the facts about it.

import { speechFacts } from "../offer/words.js";
import { showFacts } from "./facts.js";
import { OwnOptions } from "./ownoptions.js";

export class Directions {
  #find;
  #words;
  #options;
  #can = null; // the model's capabilities

  constructor(root) {
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#words = root.querySelector("#cantata-instructions");
    this.#options = new OwnOptions(this.#find("speech-options"));
  }

  /**
   * Offers what a model takes.
   * @param {object | undefined} model an entry of /v1/audio/models
   * @param {object[]} voices the model's
   */
  offer(model, voices) {
    this.#can = model?.capabilities ?? null;
    this.#find("instructions-control").hidden = !this.#can?.instructions;
    this.#options.offer(this.#can?.options ?? {});
    this.#find("speech-does").hidden = model === undefined;
    if (model !== undefined) showFacts(this.#find("speech-facts"), speechFacts(model, voices));
  }

  /** Fields of a request. What is unset, not valid or without effect is left out. */
  get request() {
    const words = this.#words.value.trim();
    const followed = this.#can?.instructions && words !== "";
    return { ...this.#options.values, ...(followed && { instructions: words }) };
  }

  /** Sets them to those of an earlier request; all others are unset. */
  set request(request) {
    this.#words.value = request.instructions ?? "";
    this.#options.values = request;
  }

  /** Sets the directions in words, as a link asks; returns whether the model follows them. */
  followWords(words) {
    const followed = this.#can?.instructions === true;
    if (followed) this.#words.value = words;
    return followed;
  }

  /** What is wrong with the model's own options, a sentence; null if nothing is. */
  get problem() {
    return this.#options.problem?.sentence ?? null;
  }

  /** Goes to the option that is wrong. */
  focusProblem() {
    this.#options.focus(this.#options.problem.name);
  }

  /** Of a text of several speakers, as /v1/audio/models has it; empty if the model has one. */
  get speakerTag() {
    return this.#can?.speaker_tag ?? "";
  }
}

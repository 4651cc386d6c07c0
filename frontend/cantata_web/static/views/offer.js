// What the server offers, on the whole page: the line under its name, the tabs.

import { tagline } from "../offer/words.js";

const SPEECH_TABS = ["speak", "read", "voices", "clone"];

/** Follows the lists once both have come. Tabs of what no served model does are not there, but for
 *  the one that listens: it says how to get such a model. */
export class OfferView {
  #root;
  #catalogue;
  #choices;
  #tabs;

  constructor(root, { catalogue, choices, tabs }) {
    this.#root = root;
    this.#catalogue = catalogue;
    this.#choices = choices;
    this.#tabs = tabs;
  }

  show() {
    const { drawing, answering, hearing, listening } = this.#catalogue;
    const served = {
      speech: this.#choices.models.length > 0,
      answers: answering.length > 0,
      transcripts: listening.length > 0,
      pictures: drawing.length > 0,
    };
    this.#root.querySelector("[data-role='tagline']").textContent = tagline(served);
    this.#tabs.offer("draw", served.pictures);
    this.#tabs.offer("chat", served.answers);
    this.#tabs.offer("talk", served.speech || hearing.length > 0);
    for (const name of SPEECH_TABS) this.#tabs.offer(name, served.speech);
  }
}

// Who answers in a talk: the voice that is chosen on the page, or a model that hears for itself.

import { fillMenu, fillVoices } from "./choices.js";

const CHOSEN_VOICE = "voice";

/** Dispatches "change" when another one is chosen. */
export class Answerer extends EventTarget {
  #find;
  #menu;
  #voices;
  #settings;

  /**
   * @param {Settings} settings hold the voice, the same as on the page's other tabs
   * @param {Catalogue} catalogue lists the models that hear
   */
  constructor(root, { settings, catalogue }) {
    super();
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#menu = root.querySelector("#cantata-answerer");
    this.#voices = root.querySelector("#cantata-answer-voice");
    this.#settings = settings;
    settings.addEventListener("voice", () => this.#offer(catalogue));
    catalogue.addEventListener("change", () => this.#offer(catalogue));
    this.#menu.addEventListener("change", () => this.#show());
    this.#voices.addEventListener("change", () => settings.pickVoice(this.#voices.value));
  }

  /** Which model answers, and in which voice; what is absent is the server's choice. */
  get choice() {
    if (!this.#hears) return this.#settings.request;
    return { model: this.#menu.value };
  }

  get #hears() {
    return ![CHOSEN_VOICE, ""].includes(this.#menu.value);
  }

  #offer(catalogue) {
    const { voices, voice } = this.#settings;
    const spoken = voices.length > 0 ? [{ value: CHOSEN_VOICE, label: "The chosen voice" }] : [];
    const heard = catalogue.hearing.map(({ id }) => ({ value: id, label: id }));
    fillMenu(this.#menu, [...spoken, ...heard], []);
    this.#find("answerer-control").hidden = spoken.length + heard.length < 2;
    fillVoices(this.#voices, voices, []);
    this.#voices.value = voice?.id ?? "";
    this.#show();
  }

  #show() {
    this.#find("answer-voice-control").hidden = this.#hears;
    this.dispatchEvent(new Event("change"));
  }
}

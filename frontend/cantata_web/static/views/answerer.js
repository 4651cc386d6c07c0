// Who answers in a talk: the voice that is chosen on the page, or a model that hears for itself.

import { t } from "../texts.js";
import { fillMenu, fillVoices } from "./choices.js";

const CHOSEN_VOICE = "voice";

/** Dispatches "change" when another one is chosen. */
export class Answerer extends EventTarget {
  #find;
  #menu;
  #voices;
  #settings;
  #hearing = []; // ids of the models that hear for themselves

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
    const model = this.#menu.value;
    if (this.#hears) return { model };
    const { request } = this.#settings;
    return [CHOSEN_VOICE, ""].includes(model) ? request : { model, voice: request.voice };
  }

  get #hears() {
    return this.#hearing.includes(this.#menu.value);
  }

  #offer(catalogue) {
    const { voices, voice } = this.#settings;
    const spoken = voices.length > 0 ? [{ value: CHOSEN_VOICE, label: t("The chosen voice") }] : [];
    this.#hearing = catalogue.hearing.map(({ id }) => id);
    // A model that only reads answers in the chosen voice.
    const minds = catalogue.answering.filter(({ id, output_modalities: makes }) =>
      this.#hearing.includes(id) || (spoken.length > 0 && makes.every((one) => one === "text")));
    const named = minds.map(({ id }) => ({ value: id, label: id }));
    fillMenu(this.#menu, [...spoken, ...named], []);
    this.#find("answerer-control").hidden = spoken.length + named.length < 2;
    fillVoices(this.#voices, voices, []);
    this.#voices.value = voice?.id ?? "";
    this.#show();
  }

  #show() {
    this.#find("answer-voice-control").hidden = this.#hears;
    this.dispatchEvent(new Event("change"));
  }
}

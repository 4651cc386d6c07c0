// What the server offers, in menus: models, their voices and formats.

import { t } from "../texts.js";

/** Loads and holds the lists; dispatches "change" when they have been read again. */
export class Choices extends EventTarget {
  models = [];
  voices = [];
  #server;

  constructor(server) {
    super();
    this.#server = server;
  }

  async load() {
    const [{ models }, { voices }] = await Promise.all([
      this.#server.json("v1/audio/models"),
      this.#server.json("v1/audio/voices"),
    ]);
    this.models = models;
    this.voices = voices;
    this.dispatchEvent(new Event("change"));
  }

  model(id) {
    return this.models.find((model) => model.id === id);
  }

  voicesOf(model) {
    return this.voices.filter((voice) => voice.model === model);
  }

  /** Each uploaded voice once: the list has it once per model that supports it. */
  get uploaded() {
    const byId = new Map();
    for (const voice of this.voices) if (voice.kind === "uploaded") byId.set(voice.id, voice);
    return [...byId.values()];
  }

  get followsReferences() {
    return this.models.some((model) => model.capabilities.references);
  }
}

/** Fills a <select> and keeps its choice, or else makes the first one preferred that is offered. */
export function fillMenu(menu, entries, preferred) {
  const before = menu.value;
  menu.replaceChildren(...entries.map(({ value, label }) => new Option(label, value)));
  const offered = entries.map(({ value }) => value);
  const kept = [before, ...preferred].find((value) => offered.includes(value));
  if (kept !== undefined) menu.value = kept;
}

/** What menus call a voice. */
export function labelVoice({ name, kind }) {
  return kind === "uploaded" ? t("{name} (yours)", { name }) : name;
}

/** As `fillMenu`, with voices. */
export function fillVoices(menu, voices, preferred) {
  const entries = voices.map((voice) => ({ value: voice.id, label: labelVoice(voice) }));
  fillMenu(menu, entries, preferred);
}

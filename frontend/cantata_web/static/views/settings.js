// The controls of how to speak, and their values under the API's names. The browser keeps them.

import { decimal, t } from "../texts.js";
import { fillMenu, fillVoices, labelVoice } from "./choices.js";
import { Directions } from "./directions.js";
import { drawnSeed } from "./seed.js";

const KEPT = "settings";
const PLAYED = "wav"; // made from the played samples; other formats are requested from the server
const SUBTITLES = [
  { id: "srt", media_type: "application/x-subrip", label: t("Subtitles (SRT)") },
  { id: "vtt", media_type: "text/vtt", label: t("Subtitles (VTT)") },
];
const NAMES = {
  model: t("model"),
  voice: t("voice"),
  speed: t("speed"),
  seed: t("seed"),
  instructions: t("instructions"),
};

/** Dispatches "voice" when another one is chosen. */
export class Settings extends EventTarget {
  directions;
  #choices;
  #controls;
  #store;
  #wanted; // chosen last, even where the server does not offer it now

  /** @param {BrowserStore} store */
  constructor(root, { choices, store }) {
    super();
    const control = (name) => root.querySelector(`#cantata-${name}`);
    this.#choices = choices;
    this.#store = store;
    this.#wanted = store.get(KEPT, {});
    this.#controls = {
      model: control("model"),
      voice: control("voice"),
      speed: control("speed"),
      seed: control("seed"),
      format: control("format"),
      about: control("voice-about"),
      modelControl: root.querySelector("[data-role='model-control']"),
      seedControl: root.querySelector("[data-role='seed-control']"),
      shownSpeed: root.querySelector("[data-role='speed']"),
    };
    this.directions = new Directions(root);
    const { model, voice, speed, seed, format } = this.#controls;
    this.#restore(speed, "speed");
    this.#restore(seed, "seed");
    choices.addEventListener("change", () => this.#offer());
    model.addEventListener("change", () => this.#offerOfModel());
    voice.addEventListener("change", () => this.#describe());
    speed.addEventListener("input", () => this.#showSpeed());
    root.querySelector("[data-role='reseed']").addEventListener("click", () => {
      seed.value = String(drawnSeed());
      this.#keep();
    });
    for (const control of [model, voice, speed, seed, format]) {
      control.addEventListener("change", () => this.#keep());
    }
    this.#showSpeed();
  }

  /**
   * Fields of a request: model, voice, speed, seed and directions. What is unset or has no effect is
   * left out.
   */
  get request() {
    const { model, voice, speed, seed } = this.#controls;
    const request = { speed: Number(speed.value), ...this.directions.request };
    if (model.value !== "") request.model = model.value;
    if (voice.value !== "") request.voice = voice.value;
    if (this.#model?.sampled && seed.value !== "") request.seed = Number(seed.value);
    return request;
  }

  /** Of the download: {id, type}, and whether it is made of the played samples or words. */
  get format() {
    const { value } = this.#controls.format;
    const { id, media_type: type } = [...this.#formats, ...SUBTITLES].find(
      (format) => format.id === value,
    ) ?? { id: PLAYED, media_type: "audio/wav" };
    const isSubtitles = SUBTITLES.some((format) => format.id === id);
    return { id, type, isPlayed: id === PLAYED, isSubtitles };
  }

  get maxCharacters() {
    return this.#model?.max_input_characters ?? Infinity;
  }

  get voiceName() {
    return this.voice?.name ?? t("The default voice");
  }

  /** Those of the chosen model. */
  get voices() {
    return this.#choices.voicesOf(this.#controls.model.value);
  }

  /** The chosen voice; undefined until the lists have come. */
  get voice() {
    return this.voices.find(({ id }) => id === this.#controls.voice.value);
  }

  /** Chooses a voice, and a model that has it. */
  pickVoice(id) {
    if (!this.voices.some((voice) => voice.id === id)) {
      this.#controls.model.value = this.#choices.voices.find((voice) => voice.id === id)?.model;
      this.#offerOfModel();
    }
    this.#controls.voice.value = id;
    this.#describe();
    this.#keep();
  }

  /**
   * Sets what a link asks for, or a take was made with, as far as it is offered.
   * @param {{model?, voice?, speed?, seed?, instructions?}} asked strings or numbers
   * @returns {{name, value, valid}[]} what is not offered
   */
  follow(asked) {
    const problems = [];
    // As the menus call them: nobody knows an uploaded voice by its id.
    const shown = ({ id, name, kind }) => (kind === "uploaded" ? labelVoice({ name, kind }) : id);
    const names = (entries) => entries.map(shown).join(", ");
    const choose = (name, entries, apply) => {
      if (asked[name] === undefined) return;
      const value = String(asked[name]);
      const found = entries.find((entry) => namesOf(entry).includes(value.toLowerCase()));
      if (found) apply(found.id);
      else problems.push({ name: NAMES[name], value, valid: names(entries) });
    };
    choose("model", this.#choices.models, (id) => {
      this.#controls.model.value = id;
      this.#offerOfModel();
    });
    const voices = this.#choices.voicesOf(this.#controls.model.value);
    choose("voice", voices, (id) => (this.#controls.voice.value = id));
    for (const name of ["speed", "seed"]) {
      if (asked[name] === undefined) continue;
      const { [name]: control } = this.#controls;
      const value = String(asked[name]);
      if (fits(value, control)) control.value = value;
      else problems.push({ name: NAMES[name], value, valid: rangeOf(control) });
    }
    const { instructions: words } = asked;
    if (words !== undefined && !this.directions.followWords(words)) {
      const valid = t("none with this model");
      problems.push({ name: NAMES.instructions, value: words, valid });
    }
    this.#describe();
    this.#showSpeed();
    this.#keep();
    return problems;
  }

  #keep() {
    const { model, voice, speed, seed, format } = this.#controls;
    this.#wanted = {
      model: model.value || this.#wanted.model,
      voice: voice.value || this.#wanted.voice,
      format: format.value || this.#wanted.format,
      speed: speed.value,
      seed: seed.value,
    };
    this.#store.set(KEPT, this.#wanted);
  }

  #restore(control, name) {
    const value = String(this.#wanted[name] ?? "");
    if (fits(value, control)) control.value = value;
  }

  get #model() {
    return this.#choices.model(this.#controls.model.value);
  }

  get #formats() {
    return this.#model?.formats ?? [];
  }

  #offer() {
    const models = this.#choices.models.map(({ id, name }) => ({ value: id, label: name }));
    fillMenu(this.#controls.model, models, [this.#wanted.model]);
    this.#controls.modelControl.hidden = models.length === 1;
    this.#offerOfModel();
  }

  #offerOfModel() {
    const model = this.#model;
    this.#controls.seedControl.hidden = !model?.sampled;
    const voices = this.#choices.voicesOf(model?.id);
    this.directions.offer(model, voices);
    fillVoices(this.#controls.voice, voices, [this.#wanted.voice, model?.default_voice]);
    const formats = this.#formats.map(({ id }) => ({ id, label: id.toUpperCase() }));
    const entries = [...formats, ...SUBTITLES].map(({ id, label }) => ({ value: id, label }));
    fillMenu(this.#controls.format, entries, [this.#wanted.format, PLAYED]);
    this.#describe();
  }

  #describe() {
    this.#controls.about.textContent = this.voice?.description ?? "";
    this.dispatchEvent(new Event("voice"));
  }

  #showSpeed() {
    const { speed, shownSpeed } = this.#controls;
    shownSpeed.textContent = `${decimal(Number(speed.value), 2)}×`;
  }
}

function namesOf({ id, name, aliases = [] }) {
  return [id, name, ...aliases].map((one) => one.toLowerCase());
}

function rangeOf({ min, max, step }) {
  const [least, most, by] = [min, max, step].map(Number);
  return t("{least} to {most} in steps of {by}", { least, most, by });
}

function fits(value, { min, max, step }) {
  const number = Number(value);
  if (value.trim() === "" || !(Number(min) <= number && number <= Number(max))) return false;
  const steps = (number - Number(min)) / Number(step);
  return Math.abs(steps - Math.round(steps)) < 1e-6;
}

// The controls of how to speak, and their values under the API's names.

import { fillMenu } from "./choices.js";

const PLAYED = "wav"; // made from the played samples; other formats are requested from the server

export class Settings {
  #choices;
  #controls;

  constructor(root, choices) {
    const control = (name) => root.querySelector(`#cantata-${name}`);
    this.#choices = choices;
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
    const { model, voice, speed, seed } = this.#controls;
    choices.addEventListener("change", () => this.#offer());
    model.addEventListener("change", () => this.#offerOfModel());
    voice.addEventListener("change", () => this.#describe());
    speed.addEventListener("input", () => this.#showSpeed());
    root.querySelector("[data-role='reseed']").addEventListener("click", () => {
      seed.value = String(crypto.getRandomValues(new Uint32Array(1))[0] % 1_000_000);
    });
    this.#showSpeed();
  }

  /** Fields of a request: model, voice, speed and seed. What is unset or has no effect is left out. */
  get request() {
    const { model, voice, speed, seed } = this.#controls;
    const request = { speed: Number(speed.value) };
    if (model.value !== "") request.model = model.value;
    if (voice.value !== "") request.voice = voice.value;
    if (this.#model?.sampled && seed.value !== "") request.seed = Number(seed.value);
    return request;
  }

  get format() {
    const { id, media_type: type } = this.#formats.find(
      (format) => format.id === this.#controls.format.value,
    ) ?? { id: PLAYED, media_type: "audio/wav" };
    return { id, type, isPlayed: id === PLAYED };
  }

  get maxCharacters() {
    return this.#model?.max_input_characters ?? Infinity;
  }

  pickVoice(id) {
    this.#controls.voice.value = id;
    this.#describe();
  }

  get #model() {
    return this.#choices.model(this.#controls.model.value);
  }

  get #formats() {
    return this.#model?.formats ?? [];
  }

  #offer() {
    const models = this.#choices.models.map(({ id, name }) => ({ value: id, label: name }));
    fillMenu(this.#controls.model, models);
    this.#controls.modelControl.hidden = models.length === 1;
    this.#offerOfModel();
  }

  #offerOfModel() {
    const model = this.#model;
    this.#controls.seedControl.hidden = !model?.sampled;
    const voices = this.#choices.voicesOf(model?.id);
    const label = ({ name, kind }) => (kind === "uploaded" ? `${name} (yours)` : name);
    fillMenu(
      this.#controls.voice,
      voices.map((voice) => ({ value: voice.id, label: label(voice) })),
      model?.default_voice,
    );
    const formats = this.#formats.map(({ id }) => ({ value: id, label: id.toUpperCase() }));
    fillMenu(this.#controls.format, formats, PLAYED);
    this.#describe();
  }

  #describe() {
    const { model, voice, about } = this.#controls;
    const chosen = this.#choices.voicesOf(model.value).find(({ id }) => id === voice.value);
    about.textContent = chosen?.description ?? "";
  }

  #showSpeed() {
    const { speed, shownSpeed } = this.#controls;
    shownSpeed.textContent = `${Number(speed.value).toFixed(2)}×`;
  }
}

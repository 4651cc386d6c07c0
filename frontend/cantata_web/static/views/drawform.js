// The controls of what to draw, as a request under the API's names.

import { SpeechError } from "../api/errors.js";
import { pictureFacts } from "../offer/words.js";
import { t } from "../texts.js";
import { fillMenu } from "./choices.js";
import { unfold } from "./elements.js";
import { showFacts } from "./facts.js";
import { OwnOptions } from "./ownoptions.js";
import { PictureSize } from "./picturesize.js";
import { References } from "./references.js";
import { drawnSeed } from "./seed.js";

const NUMBERS = {
  seed: [t("First seed"), "picture-seed"],
  num_inference_steps: [t("Steps"), "steps"],
  true_cfg_scale: [t("Guidance"), "guidance"],
};

/** Dispatches "model" when another one is chosen. */
export class DrawForm extends EventTarget {
  references;
  #root;
  #painters;
  #size;
  #model;
  #options;

  constructor(root, painters) {
    super();
    this.#root = root;
    this.#painters = painters;
    this.#size = new PictureSize(root);
    this.references = new References(root);
    this.#options = new OwnOptions(root.querySelector("[data-role='picture-options']"));
    this.#model = this.#control("painter");
    this.#model.addEventListener("change", () => this.#offerOfModel());
    painters.addEventListener("change", () => this.#offer());
    root.querySelector("[data-role='dice']").addEventListener("click", () => {
      this.#control("picture-seed").value = String(drawnSeed());
    });
  }

  /** The chosen entry of /v1/models; undefined if none draws. */
  get model() {
    return this.#painters.model(this.#model.value);
  }

  /** How many pictures to draw; throws as `request` does. */
  get count() {
    return this.#number(t("Pictures"), "copies") ?? 1;
  }

  /** As `Studio.draw` takes it. Throws a SpeechError, with the control focused, if it is not valid. */
  get request() {
    const prompt = this.#control("prompt").value.trim();
    if (prompt === "") this.#refuse("prompt", t("Write what to draw."));
    const { images: limits, id: model } = this.model;
    const references = this.references.files;
    if (references.length < limits.min_references) {
      this.references.focus();
      throw new SpeechError(t("Choose a picture to edit."));
    }
    const request = { model, prompt, references, size: this.#size.value };
    for (const [field, [label, id]] of Object.entries(NUMBERS)) {
      request[field] = this.#number(label, id);
    }
    request.seed ??= drawnSeed();
    const negative = this.#control("negative").value.trim();
    if (limits.negative_prompt && negative !== "") request.negative_prompt = negative;
    const { problem } = this.#options;
    if (problem !== null) {
      this.#options.focus(problem.name);
      throw new SpeechError(problem.sentence);
    }
    return { ...request, options: this.#options.values };
  }

  /** Fills the controls with an earlier request. */
  set request(request) {
    this.#model.value = request.model;
    this.#offerOfModel();
    this.#control("prompt").value = request.prompt;
    this.#control("negative").value = request.negative_prompt ?? "";
    this.#size.value = request.size;
    this.#options.values = request.options;
    for (const [field, [, id]] of Object.entries(NUMBERS)) {
      this.#control(id).value = String(request[field] ?? "");
    }
    this.#control("prompt").focus();
  }

  /** Goes to the control of a field of the API. */
  focusField(field) {
    const others = { prompt: "prompt", negative_prompt: "negative", model: "painter", n: "copies" };
    const id = NUMBERS[field]?.[1] ?? others[field];
    if (field === "size") this.#size.focus();
    else if (field?.startsWith("image")) this.references.focus();
    else if (id !== undefined) this.#reach(id);
    else this.#options.focus(field);
  }

  #control(id) {
    return this.#root.querySelector(`#cantata-${id}`);
  }

  #offer() {
    const names = this.#painters.models.map(({ id }) => ({ value: id, label: id }));
    fillMenu(this.#model, names, []);
    this.#root.querySelector("[data-role='painter-control']").hidden = names.length < 2;
    this.#offerOfModel();
  }

  #offerOfModel() {
    if (this.model === undefined) return;
    const { images: limits } = this.model;
    this.#size.offer(limits);
    this.references.offer(limits);
    const [steps, guidance] = [this.#control("steps"), this.#control("guidance")];
    steps.max = String(limits.max_steps);
    steps.placeholder = String(limits.default_steps);
    guidance.max = String(limits.max_guidance);
    guidance.placeholder = String(limits.default_guidance);
    this.#root.querySelector("[data-role='guided']").hidden = limits.max_guidance <= 1;
    this.#root.querySelector("[data-role='negative-control']").hidden = !limits.negative_prompt;
    this.#options.offer(limits.options);
    showFacts(this.#root.querySelector("[data-role='picture-facts']"), pictureFacts(limits));
    this.dispatchEvent(new Event("model"));
  }

  #number(label, id) {
    const control = this.#control(id);
    if (!control.checkValidity()) {
      this.#refuse(id, t("{label} must be a number from {min} to {max}.", {
        label,
        min: control.min,
        max: control.max,
      }));
    }
    return control.value === "" ? undefined : Number(control.value);
  }

  #refuse(id, sentence) {
    this.#reach(id);
    throw new SpeechError(sentence);
  }

  #reach(id) {
    const control = this.#control(id);
    unfold(control);
    control.focus();
  }
}

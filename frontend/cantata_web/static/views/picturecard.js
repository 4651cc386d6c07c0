// One picture: how far it is, what it looks like, and what can be done with it.

import { DrawingState } from "../draw/drawing.js";
import { AUTO, sidesOf } from "../draw/sizes.js";
import { decimal, t } from "../texts.js";
import { button, element } from "./elements.js";
import { nameFile, save } from "./save.js";

export class PictureCard {
  element = element("li");
  #drawing;
  #frame = element("div");
  #picture = document.createElement("img");
  #progress = document.createElement("progress");
  #state = element("p");
  #made = element("p");
  #buttons;
  #shown = null; // the file that the picture shows

  /**
   * @param {Drawing} drawing
   * @param {{again(drawing), retry(drawing), edit(drawing), remove(drawing)}} act what the buttons do
   */
  constructor(drawing, act) {
    this.#drawing = drawing;
    const { prompt, seed } = drawing.request;
    const name = t("{prompt}, seed {seed}", { prompt, seed: String(seed) });
    const does = (text, what) => button(text, `${text}: ${name}`, what);
    this.#buttons = {
      cancel: does(t("Cancel"), () => drawing.cancel()),
      download: does(t("Download"), () => void this.#download()),
      again: does(t("Use again"), () => act.again(drawing)),
      edit: does(t("Edit this"), () => act.edit(drawing)),
      retry: does(t("Try again"), () => act.retry(drawing)),
      remove: does(t("Remove"), () => act.remove(drawing)),
    };
    this.#frame.className = "frame";
    this.#picture.hidden = true;
    this.#frame.append(this.#picture);
    this.#progress.setAttribute("aria-label", t("Progress: {name}", { name }));
    this.#state.className = "state";
    this.#made.className = "hint";
    const actions = element("div");
    actions.className = "actions";
    actions.append(...Object.values(this.#buttons));
    this.element.append(
      this.#frame, this.#progress, this.#state, element("q", prompt), this.#made, actions,
    );
    drawing.addEventListener("change", () => this.draw());
  }

  /** @param {boolean} edits whether the chosen model can edit it */
  draw(edits = !this.#buttons.edit.hidden) {
    const { state, error, over, step, steps } = this.#drawing;
    this.element.dataset.state = state;
    const done = state === DrawingState.DONE;
    this.#progress.hidden = over;
    // Without a value it shows that something goes on.
    if (steps === null) this.#progress.removeAttribute("value");
    else Object.assign(this.#progress, { max: steps, value: step });
    this.#state.textContent = over ? sentenceOf(state, error) : stepOf(state, step, steps);
    this.#state.hidden = done;
    this.#made.textContent = madeOf(this.#drawing);
    const { cancel, download, edit, retry, remove } = this.#buttons;
    remove.hidden = !over;
    // What has the focus must not vanish under it.
    if (over && cancel === document.activeElement) remove.focus();
    cancel.hidden = over;
    download.hidden = !done;
    edit.hidden = !done || !edits;
    retry.hidden = !over || done;
    this.#showPicture(done);
  }

  /** Frees what it shows. */
  close() {
    URL.revokeObjectURL(this.#picture.src);
  }

  #showPicture(done) {
    const { file, size, request, previews } = this.#drawing;
    if (size !== AUTO) this.#frame.style.aspectRatio = sidesOf(size).join(" / ");
    this.#picture.alt = done
      ? request.prompt
      : t("Preview {number}: {prompt}", { number: previews, prompt: request.prompt });
    if (file === null || file === this.#shown) return;
    this.close();
    this.#shown = file;
    this.#picture.src = URL.createObjectURL(file);
    this.#picture.hidden = false;
  }

  async #download() {
    const { file } = this.#drawing;
    const { request } = this.#drawing;
    save(await file.arrayBuffer(), file.type.split("/")[1], file.type, nameFile(request.prompt));
  }
}

function stepOf(state, step, steps) {
  if (state === DrawingState.WAITING) return t("Waits for the others.");
  return steps === null ? t("Begins…") : t("Step {step} of {steps}", { step, steps });
}

function sentenceOf(state, error) {
  return state === DrawingState.FAILED ? error.message : t("Cancelled.");
}

function madeOf({ request, size, steps, seconds }) {
  const parts = [t("Seed {seed}", { seed: String(request.seed) })];
  if (size !== AUTO) parts.push(sidesOf(size).join(" × "));
  if (steps !== null) parts.push(t({ one: "{count} step", other: "{count} steps" }, { count: steps }));
  if (seconds !== null) parts.push(`${decimal(seconds, 1)} s`);
  return parts.join(" · ");
}

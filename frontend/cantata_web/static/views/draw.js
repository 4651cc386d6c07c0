// The tab that draws.

import { SpeechError } from "../api/errors.js";
import { DrawingState } from "../draw/drawing.js";
import { t } from "../texts.js";
import { DrawForm } from "./drawform.js";
import { PictureCard } from "./picturecard.js";
import { statusLine } from "./status.js";

const UNAVAILABLE = 503;

export class DrawView {
  #find;
  #studio;
  #painters;
  #confirm;
  #form;
  #show;
  #cards = new Map(); // by drawing
  #looked = new WeakSet(); // errors
  #problem = null; // a sentence: what is wrong with what was asked for last

  /**
   * @param {Studio} studio
   * @param {Painters} painters
   * @param {(question) => Promise<boolean>} confirm asks before pictures are removed
   */
  constructor(root, { studio, painters, confirm }) {
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#studio = studio;
    this.#painters = painters;
    this.#confirm = confirm;
    this.#show = statusLine(this.#find("draw-status"));
    this.#form = new DrawForm(root, painters);
    this.#find("draw").addEventListener("click", () => this.draw());
    this.#find("cancel-all").addEventListener("click", () => studio.cancelAll());
    this.#find("clear-pictures").addEventListener("click", () => void this.#clear());
    studio.addEventListener("change", () => this.#refresh());
    studio.addEventListener("refused", ({ detail }) => this.#refuse(detail));
    painters.addEventListener("change", () => this.#note());
    this.#form.addEventListener("model", () => this.#note());
    this.#form.references.addEventListener("refused", ({ detail }) => this.#complain(detail));
  }

  draw() {
    if (this.#find("draw").disabled) return;
    try {
      const { request, count } = this.#form;
      this.#problem = null;
      this.#studio.draw(request, count);
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#complain(error.message);
    }
  }

  get #loading() {
    const { model } = this.#form;
    return model !== undefined && this.#painters.loading(model.id);
  }

  #note() {
    const { model } = this.#form;
    this.#find("draw-note").textContent = model?.images.note ?? "";
    this.#find("draw").disabled = model === undefined || this.#loading;
    this.#refresh();
  }

  #refresh() {
    const { drawings } = this.#studio;
    const [waiting, drawing] = [DrawingState.WAITING, DrawingState.DRAWING].map(
      (state) => this.#studio.having(state).length,
    );
    this.#find("cancel-all").disabled = waiting + drawing === 0;
    this.#find("clear-pictures").disabled = waiting + drawing === drawings.length;
    this.#find("no-pictures").hidden = drawings.length > 0;
    this.#list(drawings);
    const [sentence, isError] = this.#sentence(waiting, drawing);
    this.#show(sentence, isError);
    this.#lookAfter(drawings);
  }

  // A model that was not ready may be loading, which its stages tell.
  #lookAfter(drawings) {
    const fresh = drawings.filter(
      ({ error }) => error?.status === UNAVAILABLE && !this.#looked.has(error),
    );
    for (const { error } of fresh) this.#looked.add(error);
    if (fresh.length > 0) void this.#painters.look();
  }

  #sentence(waiting, drawing) {
    if (this.#loading) return [t("{id} is being loaded. It can draw in a moment.", this.#form.model)];
    if (this.#problem !== null) return [this.#problem, true];
    if (drawing > 0) {
      const numbers = { count: drawing, waiting };
      return [
        waiting > 0
          ? t({
              one: "Drawing {count} picture, {waiting} wait.",
              other: "Drawing {count} pictures, {waiting} wait.",
            }, numbers)
          : t({ one: "Drawing {count} picture.", other: "Drawing {count} pictures." }, numbers),
      ];
    }
    const [last] = this.#studio.drawings;
    if (last === undefined) return [t("Ready to draw.")];
    if (last.state === DrawingState.FAILED) return [last.error.message, true];
    return [last.state === DrawingState.DONE ? t("Done.") : t("Cancelled.")];
  }

  // Cards stay the elements that they are, so that the focus stays where it is.
  #list(drawings) {
    const list = this.#find("pictures");
    const edits = (this.#form.model?.images.max_references ?? 0) > 0;
    for (const [drawing, card] of this.#cards) {
      if (drawings.includes(drawing)) continue;
      card.close();
      card.element.remove();
      this.#cards.delete(drawing);
    }
    drawings.forEach((drawing, place) => {
      let card = this.#cards.get(drawing);
      if (card === undefined) {
        card = new PictureCard(drawing, this.#acts());
        this.#cards.set(drawing, card);
        list.insertBefore(card.element, list.children[place] ?? null);
      }
      card.draw(edits);
    });
  }

  #acts() {
    return {
      again: ({ request }) => (this.#form.request = request),
      retry: (drawing) => {
        this.#studio.remove(drawing);
        this.#studio.draw(drawing.request);
      },
      edit: ({ file, request }) => {
        this.#form.references.add(file, request.prompt);
        this.#form.focusField("prompt");
      },
      remove: (drawing) => {
        this.#studio.remove(drawing);
        this.#find("pictures-title").focus();
      },
    };
  }

  #complain(sentence) {
    this.#problem = sentence;
    this.#refresh();
  }

  #refuse(error) {
    this.#complain(error.message);
    this.#form.focusField(error.param);
  }

  async #clear() {
    const agreed = await this.#confirm({
      title: t("Clear the pictures?"),
      text: t("They are in this page only. This cannot be undone."),
      act: t("Clear"),
    });
    if (!agreed) return;
    this.#studio.clear();
    this.#find("pictures-title").focus();
  }
}

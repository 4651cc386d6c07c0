// A text of words that can be chosen, in a box that follows what is heard.

import { WordTrack } from "../speech/words.js";
import { cutText } from "../listen/pieces.js";

const READING_MS = 3_000; // after a reader has moved the text, it is left where it is
const NEAR_END_PX = 40;
const ROUNDING_SECONDS = 0.01; // of times: a word that was chosen must be the one that is marked

/** Dispatches "choose" (detail: a Part) for a click, or Enter or the space bar. */
export class WordList extends EventTarget {
  #box;
  #text;
  #track = new WordTrack();
  #spans = []; // in the text's order
  #parts = new Map(); // by span
  #stop = null; // the span that the keyboard reaches
  #marked = null; // a Part
  #movedAt = -Infinity;

  /** @param {HTMLElement} box which scrolls */
  constructor(box) {
    super();
    this.#box = box;
    this.#text = box.querySelector("[data-role='words']");
    this.#text.addEventListener("click", ({ target }) => this.#choose(target));
    this.#text.addEventListener("keydown", (event) => this.#press(event));
    for (const moved of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      box.addEventListener(moved, () => (this.#movedAt = performance.now()), { passive: true });
    }
  }

  /** Replaces the text. However it is cut into parts, it takes the same place. */
  show(text, parts) {
    const { scrollHeight, scrollTop, clientHeight } = this.#box;
    const follows = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    const hadFocus = this.#text.contains(document.activeElement);
    const place = Math.max(0, this.#spans.indexOf(this.#stop));
    this.#parts.clear();
    this.#stop = this.#marked = null;
    this.#track = new WordTrack(parts);
    this.#text.replaceChildren(...cutText(text, parts).map((piece) => this.#node(piece)));
    this.#spans = [...this.#parts.keys()];
    if (this.#spans.length > 0) this.#point(this.#spans[Math.min(place, this.#spans.length - 1)]);
    if (hadFocus) this.#stop?.focus({ preventScroll: true });
    if (follows) this.#box.scrollTop = this.#box.scrollHeight;
  }

  /** Marks the word that is heard there. @param {number | null} seconds null: none */
  mark(seconds) {
    const part = seconds === null ? null : this.#track.at(seconds + ROUNDING_SECONDS);
    if (part === this.#marked) return;
    this.#spanOf(this.#marked)?.removeAttribute("aria-current");
    this.#marked = part;
    const span = this.#spanOf(part);
    if (span === undefined) return;
    span.setAttribute("aria-current", "true");
    if (!this.#text.contains(document.activeElement)) this.#point(span);
    this.#scrollTo(span);
  }

  #node({ text, part }) {
    if (part === null) return document.createTextNode(text);
    const span = document.createElement("span");
    span.textContent = text;
    this.#parts.set(span, part);
    return span;
  }

  #spanOf(part) {
    return part === null ? undefined : this.#spans.find((span) => this.#parts.get(span) === part);
  }

  #choose(span) {
    const part = this.#parts.get(span);
    if (part === undefined) return;
    this.#point(span);
    this.dispatchEvent(new CustomEvent("choose", { detail: part }));
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    if (key === "Enter" || key === " ") {
      event.preventDefault();
      this.#choose(this.#stop);
      return;
    }
    const [at, last] = [this.#spans.indexOf(this.#stop), this.#spans.length - 1];
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[key];
    if (to === undefined) return;
    event.preventDefault();
    this.#point(this.#spans[Math.min(Math.max(to, 0), last)]);
    this.#stop.focus();
  }

  // Only one word is a button: a text of buttons could hardly be read aloud by a screen reader.
  #point(span) {
    if (span === this.#stop) return; // it would lose the focus
    for (const name of ["tabindex", "role"]) this.#stop?.removeAttribute(name);
    this.#stop = span;
    span.tabIndex = 0;
    span.role = "button";
  }

  #scrollTo(span) {
    if (performance.now() - this.#movedAt < READING_MS) return;
    const { top, bottom } = span.getBoundingClientRect();
    const box = this.#box.getBoundingClientRect();
    if (top >= box.top && bottom <= box.bottom) return;
    this.#box.scrollTop += top - box.top - box.height / 3;
  }
}

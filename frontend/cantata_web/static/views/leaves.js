// A book as pages: the word and the sentence that are heard are marked, and a word can be chosen.

import { t } from "../texts.js";
import { element, paragraph } from "./elements.js";

const LEAF = 2_400; // characters, a page of print
const SCROLLED = ["wheel", "touchmove"];
const SCROLL_KEYS = new Set(["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

/** Dispatches "choose" (detail: a place in the text), and "follow" when that changes. */
export class Leaves extends EventTarget {
  #box;
  #book = null;
  #paragraphs = []; // text nodes, by block
  #word = null;
  #follows = true;

  /** @param {HTMLElement} box scrolls */
  constructor(box) {
    super();
    this.#box = box;
    box.addEventListener("click", (event) => this.#choose(event));
    const leave = () => (this.follows = false);
    for (const type of SCROLLED) box.addEventListener(type, leave, { passive: true });
    box.addEventListener("pointerdown", ({ offsetX }) => {
      if (offsetX > box.clientWidth) leave(); // its scrollbar
    });
    box.addEventListener("keydown", ({ key }) => {
      if (SCROLL_KEYS.has(key)) leave();
    });
  }

  /** Whether it scrolls to what is heard; it ceases to when the reader scrolls. */
  get follows() {
    return this.#follows;
  }

  set follows(follows) {
    if (follows === this.#follows) return;
    this.#follows = follows;
    this.dispatchEvent(new Event("follow"));
    if (follows) this.#scroll("center");
  }

  show(book) {
    this.#book = book;
    this.#paragraphs = [];
    const leaves = [];
    let room = 0;
    for (const { kind, from, to } of book.blocks) {
      if (room <= 0 || (kind === "heading" && room < LEAF / 4)) {
        leaves.push(element("section"));
        leaves.at(-1).className = "leaf";
        room = LEAF;
      }
      const made = paragraph(book.text.slice(from, to), kind === "heading" ? "h3" : "p");
      this.#paragraphs.push(made.firstChild);
      leaves.at(-1).append(made);
      room -= to - from;
    }
    leaves.forEach((leaf, i) => leaf.append(element("small", t("{part} of {whole}", { part: i + 1, whole: leaves.length }))));
    this.#box.replaceChildren(...leaves);
    this.#box.scrollTop = 0;
    this.mark(null, null);
  }

  /** @param {{from, to} | null} word that is heard @param {{from, to} | null} sentence it is in */
  mark(word, sentence) {
    if (word?.from === this.#word?.from && word?.to === this.#word?.to) return;
    this.#word = word;
    highlight("cantata-word", this.#range(word));
    highlight("cantata-sentence", this.#range(sentence));
    if (this.#follows) this.#scroll("nearest");
  }

  /** Scrolls to a place. */
  goTo(place) {
    const index = this.#book.indexAt(place);
    this.#paragraphs[index]?.parentElement.scrollIntoView({ block: "center" });
  }

  #range(span) {
    if (span === null) return null;
    const index = this.#book.indexAt(span.from);
    const node = this.#paragraphs[index];
    const { from } = this.#book.blocks[index];
    const range = document.createRange();
    const at = (place) => Math.min(Math.max(0, place - from), node.length);
    range.setStart(node, at(span.from));
    range.setEnd(node, at(span.to));
    return range;
  }

  // Pages out of sight are not laid out: their paragraph comes into sight first.
  #scroll(where) {
    const range = this.#range(this.#word);
    if (range === null || !this.#box.checkVisibility()) return;
    const box = this.#box.getBoundingClientRect();
    const paragraph = range.startContainer.parentElement;
    let place = range.getBoundingClientRect();
    if (place.height === 0) {
      paragraph.scrollIntoView({ block: "center" });
      place = range.getBoundingClientRect();
    }
    const margin = box.height / 8;
    const inside = place.top >= box.top + margin && place.bottom <= box.bottom - margin;
    if (inside && where === "nearest") return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const by = place.top - box.top - box.height / 3;
    const far = Math.abs(by) > 2 * box.height;
    this.#box.scrollBy({ top: by, behavior: still || far ? "instant" : "smooth" });
  }

  #choose({ clientX, clientY }) {
    if (this.#book === null || !document.getSelection().isCollapsed) return;
    const caret = caretAt(clientX, clientY);
    const index = caret === null ? -1 : this.#paragraphs.indexOf(caret.node);
    if (index < 0) return;
    const place = this.#book.wordAt(this.#book.blocks[index].from + caret.offset);
    this.dispatchEvent(new CustomEvent("choose", { detail: place }));
  }
}

function highlight(name, range) {
  // Browsers of before 2025 may lack highlights; they read without them.
  if (range === null) globalThis.CSS.highlights?.delete(name);
  else globalThis.CSS.highlights?.set(name, new Highlight(range));
}

function caretAt(x, y) {
  if (document.caretPositionFromPoint) {
    const found = document.caretPositionFromPoint(x, y);
    return found && { node: found.offsetNode, offset: found.offset };
  }
  const found = document.caretRangeFromPoint?.(x, y);
  return found ? { node: found.startContainer, offset: found.startOffset } : null;
}

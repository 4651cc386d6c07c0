// Marks the word being heard. The text box cannot mark a part of its text, so a copy of the text
// lies behind it, set in the same type, and a patch of colour moves to where the word is there.

const TYPING_MS = 3_000;

export class Highlight {
  #box;
  #shadow;
  #text = document.createTextNode("");
  #patches = [];
  #word = null;
  #typedAt = -Infinity;

  /** @param {HTMLTextAreaElement} box */
  constructor(box, shadow) {
    this.#box = box;
    this.#shadow = shadow;
    shadow.append(this.#text);
    box.addEventListener("scroll", () => (shadow.scrollTop = box.scrollTop));
    box.addEventListener("input", () => (this.#typedAt = performance.now()));
    new ResizeObserver(() => this.#place()).observe(box);
  }

  /** @param {{from, to, text} | null} word shown only while it still stands there */
  show(word) {
    const stands = word !== null && this.#box.value.slice(word.from, word.to) === word.text;
    const next = stands ? word : null;
    const moved = next !== this.#word;
    const edited = next !== null && this.#text.data !== this.#box.value;
    if (!moved && !edited) return;
    this.#word = next;
    this.#place();
    if (moved && next !== null) this.#scrollTo();
  }

  #place() {
    const rects = this.#word === null ? [] : this.#rects();
    while (this.#patches.length < rects.length) {
      const patch = document.createElement("mark");
      this.#patches.push(patch);
      this.#shadow.append(patch);
    }
    this.#patches.forEach((patch, i) => {
      patch.hidden = i >= rects.length;
      if (patch.hidden) return;
      const { left, top, width, height } = rects[i];
      const place = { left, top, width, height };
      for (const [side, pixels] of Object.entries(place)) patch.style[side] = `${pixels}px`;
    });
    this.#shadow.dataset.word = this.#word?.text ?? "";
  }

  #rects() {
    if (this.#text.data !== this.#box.value) this.#text.data = this.#box.value;
    // Text from right to left has its scrollbar on the left.
    this.#shadow.style.left = `${this.#box.clientLeft}px`;
    this.#shadow.style.width = `${this.#box.clientWidth}px`;
    const range = document.createRange();
    range.setStart(this.#text, this.#word.from);
    range.setEnd(this.#text, this.#word.to);
    const origin = this.#shadow.getBoundingClientRect();
    return [...range.getClientRects()].map(({ left, top, width, height }) => ({
      left: left - origin.left,
      top: top - origin.top + this.#shadow.scrollTop,
      width,
      height,
    }));
  }

  // A long text follows the voice, unless the listener is writing in it.
  #scrollTo() {
    if (performance.now() - this.#typedAt < TYPING_MS) return;
    const [patch] = this.#patches;
    if (patch === undefined || patch.hidden) return; // another tab is shown
    const top = patch.offsetTop;
    const { scrollTop, clientHeight } = this.#box;
    const inside = top >= scrollTop && top + patch.offsetHeight <= scrollTop + clientHeight;
    if (!inside) this.#box.scrollTop = top - clientHeight / 3;
    this.#shadow.scrollTop = this.#box.scrollTop;
  }
}

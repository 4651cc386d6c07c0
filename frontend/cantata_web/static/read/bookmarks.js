// The book that was read last and the place in it, and places in others, kept in the browser.

import { Book } from "./book.js";

const BOOK = "book";
const PLACES = "places";
const MAX_PLACES = 30;

export class Bookmarks {
  #store;

  /** @param {BrowserStore} store */
  constructor(store) {
    this.#store = store;
  }

  /** The book that was read last; null if there is none. */
  get last() {
    const kept = this.#store.get(BOOK);
    return Array.isArray(kept?.blocks) ? new Book(kept.name, kept.blocks) : null;
  }

  /** Keeps a book. Returns whether the browser did. */
  keep(book) {
    const blocks = book.blocks.map(({ kind, from, to }) => ({ kind, text: book.text.slice(from, to) }));
    return this.#store.set(BOOK, { name: book.name, blocks });
  }

  placeIn(book) {
    const found = this.#places.find(([key]) => key === keyOf(book));
    return found === undefined ? 0 : Math.min(found[1], book.length - 1);
  }

  /** Returns whether the browser kept it. */
  mark(book, place) {
    const key = keyOf(book);
    const others = this.#places.filter(([other]) => other !== key);
    return this.#store.set(PLACES, [[key, place], ...others].slice(0, MAX_PLACES));
  }

  get #places() {
    const places = this.#store.get(PLACES, []);
    return Array.isArray(places) ? places : [];
  }
}

// FNV-1a, of enough of the text to tell books apart.
function keyOf({ text }) {
  let hash = 0x811c9dc5;
  const step = Math.max(1, Math.floor(text.length / 5_000));
  for (let i = 0; i < text.length; i += step) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return `${text.length}-${hash >>> 0}`;
}

// What the page keeps in the browser between visits, as JSON in localStorage.

/**
 * Named values of one server. Where the browser keeps nothing (storage is off or full), they last
 * until the page is closed.
 */
export class BrowserStore {
  #prefix;
  #storage;
  #unkept = new Map(); // values that the browser did not take, as JSON

  /** @param {URL} apiBase @param {Storage | null} storage */
  constructor(apiBase, storage = browserStorage()) {
    this.#prefix = `cantata ${apiBase.href} `;
    this.#storage = storage;
  }

  /** The value of that name, or `absent` if there is none that can be read. */
  get(name, absent = null) {
    const text = this.#unkept.get(name) ?? this.#read(name);
    if (text === null) return absent;
    try {
      return JSON.parse(text);
    } catch {
      return absent; // not written by this page
    }
  }

  /** Returns whether the browser has kept it. */
  set(name, value) {
    const text = JSON.stringify(value);
    try {
      this.#storage.setItem(this.#prefix + name, text);
      this.#unkept.delete(name);
      return true;
    } catch {
      this.#unkept.set(name, text);
      return false;
    }
  }

  #read(name) {
    return this.#storage?.getItem(this.#prefix + name) ?? null;
  }
}

function browserStorage() {
  try {
    return localStorage;
  } catch {
    return null; // reading the property throws where cookies are blocked
  }
}

// The API key: kept until the tab is closed, and requested when the server requires one.

/**
 * Kept per server, so that a key never goes to another one. Where the browser keeps nothing, a key
 * lasts until the page is closed or reloaded.
 */
export class KeyStore {
  #name;
  #storage;
  #unkept = null; // a key that the browser did not take

  /** @param {URL} apiBase @param {Storage | null} storage */
  constructor(apiBase, storage = tabStorage()) {
    this.#name = `cantata-api-key ${apiBase.origin}`;
    this.#storage = storage;
  }

  get key() {
    return this.#unkept ?? this.#storage?.getItem(this.#name) ?? null;
  }

  set key(key) {
    this.#unkept = null;
    try {
      if (key === null) this.#storage?.removeItem(this.#name);
      else this.#storage.setItem(this.#name, key);
    } catch {
      this.#unkept = key;
    }
  }

  get headers() {
    return this.key === null ? {} : { Authorization: `Bearer ${this.key}` };
  }

  /** A browser's WebSocket cannot send a key in any other way. */
  get subprotocols() {
    return this.key === null ? [] : ["cantata", `cantata-api-key.${this.key}`];
  }
}

function tabStorage() {
  try {
    return sessionStorage;
  } catch {
    return null; // reading the property throws where cookies are blocked
  }
}

/** Returns a function that asks for a key; resolves with it, or with null if the user declines. */
export function keyDialog(dialog) {
  const field = dialog.querySelector("input");
  const reason = dialog.querySelector("[data-role='key-reason']");
  let asked = null; // all who ask at the same time get the same answer
  return (sentence) => {
    asked ??= new Promise((resolve) => {
      reason.textContent = sentence;
      field.value = "";
      dialog.returnValue = "";
      dialog.addEventListener(
        "close",
        () => {
          asked = null;
          resolve(dialog.returnValue === "use" ? field.value.trim() : null);
        },
        { once: true },
      );
      dialog.showModal();
    });
    return asked;
  };
}

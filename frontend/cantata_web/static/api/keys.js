// The API key: kept until the tab is closed, and requested when the server requires one.

/** Kept per server, so that a key never goes to another one. */
export class KeyStore {
  #name;

  constructor(apiBase, storage = sessionStorage) {
    this.#name = `cantata-api-key ${apiBase.origin}`;
    this.storage = storage;
  }

  get key() {
    return this.storage.getItem(this.#name);
  }

  set key(key) {
    if (key === null) this.storage.removeItem(this.#name);
    else this.storage.setItem(this.#name, key);
  }

  get headers() {
    return this.key === null ? {} : { Authorization: `Bearer ${this.key}` };
  }

  /** A browser's WebSocket cannot send a key in any other way. */
  get subprotocols() {
    return this.key === null ? [] : ["cantata", `cantata-api-key.${this.key}`];
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

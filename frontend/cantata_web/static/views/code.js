// "This request as code": what the page would send now, to be copied.

import { LANGUAGES } from "../speech/code.js";
import { copyText } from "./clipboard.js";
import { statusLine } from "./status.js";

export class CodeView {
  #details;
  #menu;
  #code;
  #server;
  #request;

  /** @param {() => object} request the body of POST /v1/audio/speech as it would be sent now */
  constructor(root, { server, request }) {
    const find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#details = find("code");
    this.#code = find("code-text");
    this.#menu = root.querySelector("#cantata-language");
    this.#server = server;
    this.#request = request;
    this.#menu.append(...LANGUAGES.map(({ id, name }) => new Option(name, id)));
    for (const type of ["input", "change"]) root.addEventListener(type, () => this.refresh());
    this.#details.addEventListener("toggle", () => this.refresh());
    const show = statusLine(find("code-status"));
    find("copy-code").addEventListener("click", async () => {
      this.refresh();
      const copied = await copyText(this.#code.textContent);
      show(copied ? "The code is copied." : "The browser did not allow copying.", !copied);
    });
  }

  /** Call it after the text or a setting was changed by anything but its control. */
  refresh() {
    if (!this.#details.open) return;
    const { write } = LANGUAGES.find(({ id }) => id === this.#menu.value);
    const { base, hasKey: needsKey } = this.#server;
    this.#code.textContent = write({ base, body: this.#request(), needsKey });
  }
}

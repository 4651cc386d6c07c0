// "This request as code": what the page would send now, to be copied.

import { LANGUAGES } from "../speech/code.js";
import { t } from "../texts.js";
import { copyText } from "./clipboard.js";
import { statusLine } from "./status.js";

export class CodeView {
  #details;
  #menu;
  #code;
  #server;
  #request;

  /** @param {() => object} body of POST /v1/audio/speech as it would be sent now */
  constructor(panel, { server, choices, body }) {
    const find = (role) => panel.querySelector(`[data-role="${role}"]`);
    const root = panel.closest("[role='tabpanel']");
    this.#details = panel.closest("details");
    this.#code = find("code-text");
    this.#menu = panel.querySelector("#cantata-language");
    this.#server = server;
    this.#request = body;
    this.#menu.append(...LANGUAGES.map(({ id, name }) => new Option(name, id)));
    for (const type of ["input", "change"]) root.addEventListener(type, () => this.refresh());
    this.#details.addEventListener("toggle", () => this.refresh());
    choices.addEventListener("change", () => this.refresh());
    const show = statusLine(find("code-status"));
    find("copy-code").addEventListener("click", async () => {
      this.refresh();
      const copied = await copyText(this.#code.textContent);
      show(copied ? t("The code is copied.") : t("The browser did not allow copying."), !copied);
    });
    this.refresh();
  }

  refresh() {
    if (!this.#details.open) return;
    const { write } = LANGUAGES.find(({ id }) => id === this.#menu.value);
    const { base, hasKey: needsKey } = this.#server;
    this.#code.textContent = write({ base, body: this.#request(), needsKey });
  }
}

// One message of the chat, as it is shown.

import { t } from "../texts.js";
import { element, paragraph } from "./elements.js";

const WHO = { user: t("You"), assistant: t("Answer"), tool: t("Result") };

export class ShownMessage {
  entry = element("li");
  #message;
  #text = paragraph();
  #thoughts = null;
  #pictures = element("div");
  #calls = element("div");

  constructor(message) {
    this.#message = message;
    this.entry.dataset.from = message.role;
    this.#pictures.className = "shown";
    this.entry.append(element("strong", WHO[message.role]), this.#pictures, this.#text, this.#calls);
    this.refresh();
  }

  refresh() {
    const { text, thoughts, pictures, calls = [], sound } = this.#message;
    this.#text.textContent = text === "" && sound ? t("(spoken)") : text;
    this.#text.hidden = this.#text.textContent === "";
    if (thoughts) this.#think(thoughts);
    for (const url of pictures.slice(this.#pictures.children.length)) {
      this.#pictures.append(picture(url, this.#message.role));
    }
    this.#calls.replaceChildren(
      ...calls.filter(Boolean).map(({ name, arguments: given }) => {
        const line = element("p", `${t("Calls")} `);
        line.append(element("code", `${name}(${given})`));
        return line;
      }),
    );
  }

  #think(thoughts) {
    if (this.#thoughts === null) {
      const folded = element("details");
      this.#thoughts = paragraph();
      folded.append(element("summary", t("Thoughts")), this.#thoughts);
      this.entry.firstChild.after(folded);
    }
    this.#thoughts.textContent = thoughts;
  }
}

function picture(url, role) {
  const made = element("img");
  made.src = url;
  made.alt = role === "user" ? t("Your picture") : t("The picture that was drawn");
  return made;
}

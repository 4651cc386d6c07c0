// What both sides have said, as a list that follows its end.

import { t } from "../texts.js";
import { element, paragraph } from "./elements.js";

const NAMES = { user: t("You"), assistant: t("Server"), tool: t("Server calls") };
const NEAR_END_PX = 40; // a reader who has scrolled further up is not moved

export class TurnList {
  #box;
  #list;
  #silence;
  #lines = new Map(); // by a turn's id

  /** @param {HTMLElement} box which scrolls */
  constructor(box, transcript) {
    this.#box = box;
    this.#list = box.querySelector("ol");
    this.#silence = box.querySelector("[data-role='silence']");
    // An answer that was interrupted before its first word says nothing.
    const says = ({ text, cut }) => !cut || text.trim() !== "";
    transcript.addEventListener("change", () => this.#draw(transcript.turns.filter(says)));
  }

  #draw(turns) {
    const { scrollHeight, scrollTop, clientHeight } = this.#box;
    const follows = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    this.#silence.hidden = turns.length > 0;
    const shown = new Map(turns.map((turn) => [turn.id, this.#lines.get(turn.id) ?? line(turn)]));
    for (const [id, one] of this.#lines) if (!shown.has(id)) one.remove();
    this.#lines = shown;
    for (const turn of turns) {
      const one = shown.get(turn.id);
      if (one.parentElement === null) this.#list.append(one);
      const said = one.lastElementChild;
      const text = wording(turn);
      if (said.textContent !== text) said.textContent = text;
    }
    if (follows) this.#box.scrollTop = this.#box.scrollHeight;
  }
}

function line({ role }) {
  const made = element("li");
  made.dataset.from = role;
  made.append(element("strong", NAMES[role]), paragraph());
  return made;
}

function wording({ text, partial, cut }) {
  if (cut) return t("{text} … (interrupted)", { text: text.trimEnd() });
  if (partial) return `${text} …`;
  return text.trim() === "" ? t("(no words)") : text;
}

// The list of uploaded voices.

import { t } from "../texts.js";
import { button, element } from "./elements.js";

export class SavedVoices {
  #list;
  #title;
  #choices;
  #uploads;
  #act;

  /**
   * @param {{speakWith(voice), hear(voice), remove(voice)}} act what the buttons do
   */
  constructor(root, { choices, uploads, act }) {
    this.#list = root.querySelector("[data-role='saved']");
    this.#title = root.querySelector("[data-role='saved-title']");
    this.#choices = choices;
    this.#uploads = uploads;
    this.#act = act;
    choices.addEventListener("change", () => this.#refresh());
  }

  /** Where the focus goes when the button that had it is gone. */
  focus() {
    this.#title.focus();
  }

  #refresh() {
    const { uploaded } = this.#choices;
    const none = element("li", t("None yet."));
    this.#list.replaceChildren(
      ...(uploaded.length === 0 ? [none] : uploaded.map((voice) => this.#entry(voice))),
    );
  }

  #entry(voice) {
    const entry = element("li");
    const made = new Date(voice.created_at * 1000).toLocaleString();
    const speak = button(t("Speak with it"), t("Speak with it: {name}", voice), () =>
      this.#act.speakWith(voice),
    );
    const hear = button(t("Hear it"), t("Hear it: {name}", voice), () => this.#act.hear(voice));
    for (const one of [speak, hear]) one.disabled = voice.model === null;
    const last = this.#uploads.mayDelete(voice.id)
      ? button(t("Delete"), t("Delete {name}", voice), () => this.#act.remove(voice))
      : element("small", t("saved in another browser"));
    entry.append(element("strong", voice.name), element("span", made), hear, speak, last);
    if (voice.consent) entry.append(element("small", describeConsent(voice.consent)));
    return entry;
  }
}

function describeConsent({ kind, by, statement, given_at: at }) {
  const values = { by, statement, date: new Date(at * 1000).toLocaleDateString() };
  return kind === "spoken"
    ? t("Consent spoken by {by}, {date}: “{statement}”", values)
    : t("Consent attested by {by}, {date}: “{statement}”", values);
}

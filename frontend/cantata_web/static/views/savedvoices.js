// The list of uploaded voices.

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
    const none = element("li", "None yet.");
    this.#list.replaceChildren(
      ...(uploaded.length === 0 ? [none] : uploaded.map((voice) => this.#entry(voice))),
    );
  }

  #entry(voice) {
    const entry = element("li");
    const made = new Date(voice.created_at * 1000).toLocaleString();
    const speak = button("Speak with it", `Speak with ${voice.name}`, () =>
      this.#act.speakWith(voice),
    );
    const hear = button("Hear it", `Hear ${voice.name}`, () => this.#act.hear(voice));
    for (const one of [speak, hear]) one.disabled = voice.model === null;
    const last = this.#uploads.mayDelete(voice.id)
      ? button("Delete", `Delete ${voice.name}`, () => this.#act.remove(voice))
      : element("small", "saved in another browser");
    entry.append(element("strong", voice.name), element("span", made), hear, speak, last);
    if (voice.consent) entry.append(element("small", describeConsent(voice.consent)));
    return entry;
  }
}

function describeConsent({ kind, by, statement, given_at: at }) {
  const verb = kind === "spoken" ? "spoken" : "attested";
  return `Consent ${verb} by ${by}, ${new Date(at * 1000).toLocaleDateString()}: “${statement}”`;
}

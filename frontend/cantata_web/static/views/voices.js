// The tab with a card for each voice.

import { t } from "../texts.js";
import { fillMenu, labelVoice } from "./choices.js";
import { button, element } from "./elements.js";
import { statusLine } from "./status.js";

const MAX_OFFERED = 300; // characters of the text on Speak that is offered
const MAX_CHARACTERS = 600; // more would be long to hear in every voice
const MOODS = {
  "as it is": { label: t("as it is"), words: "" },
  calm: { label: t("calm"), words: "Speak calmly and slowly, with a low, even voice." },
  cheerful: { label: t("cheerful"), words: "Speak cheerfully, with a bright and smiling voice." },
  news: { label: t("news"), words: "Speak like a newsreader: clear, brisk and neutral." },
  story: { label: t("story"), words: "Read like a storyteller, with feeling and long pauses." },
  whisper: { label: t("whisper"), words: "Whisper, close to the microphone." },
  sad: { label: t("sad"), words: "Speak sadly, with a soft and falling voice." },
  angry: { label: t("angry"), words: "Speak angrily, loud and clipped." },
};

export class VoicesView {
  #find;
  #text;
  #mood;
  #choices;
  #settings;
  #preview;
  #speakWith;
  #show;
  #cards = []; // {voice, entry, hear}
  #queue = []; // voices that are still to be heard

  constructor(panel, { choices, settings, preview, speak, speakWith }) {
    this.#find = (role) => panel.querySelector(`[data-role="${role}"]`);
    this.#text = panel.querySelector("#cantata-voices-text");
    this.#mood = panel.querySelector("#cantata-mood");
    this.#choices = choices;
    this.#settings = settings;
    this.#preview = preview;
    this.#speakWith = speakWith;
    this.#show = statusLine(this.#find("voices-status"));
    this.#text.value = firstWords(speak.value);
    fillMenu(this.#mood, Object.entries(MOODS).map(([value, { label }]) => ({ value, label })), []);
    this.#text.addEventListener("input", () => this.#show(this.#tooLong, this.#tooLong !== ""));
    this.#find("hear-all").addEventListener("click", () => this.#hearAll());
    this.#find("hear-none").addEventListener("click", () => this.#stop());
    choices.addEventListener("change", () => this.#fill());
    preview.addEventListener("change", () => this.#refresh());
    preview.addEventListener("ended", () => this.#hearNext());
    preview.addEventListener("failed", ({ detail }) => {
      this.#queue = [];
      this.#show(detail, true);
    });
    this.#fill();
  }

  #fill() {
    const voices = this.#choices.voices.filter(({ model }) => model !== null);
    this.#cards = voices.map((voice) => this.#card(voice));
    this.#find("voice-cards").replaceChildren(...this.#cards.map(({ entry }) => entry));
    const directed = voices.some((voice) => this.#takesWords(voice));
    this.#find("mood-control").hidden = !directed;
    this.#refresh();
  }

  #card(voice) {
    const entry = element("li");
    const name = labelVoice(voice);
    const several = this.#choices.models.length > 1;
    const about = voice.description || t("No description.");
    const hear = button(t("Hear"), t("Hear {name}", { name }), () => this.#toggle(voice));
    const use = button(t("Use"), t("Use {name}", { name }), () => this.#use(voice));
    const actions = element("div");
    actions.className = "actions";
    actions.append(hear, use);
    entry.append(element("strong", name), element("p", about));
    if (several) entry.append(element("small", voice.model));
    entry.append(actions);
    return { voice, entry, hear };
  }

  #takesWords({ model }) {
    return Boolean(this.#choices.model(model)?.capabilities.instructions);
  }

  #directionsOf(voice) {
    const chosen = voice.model === this.#settings.voice?.model;
    const directions = chosen ? this.#settings.directions.request : {};
    const words = this.#takesWords(voice) ? MOODS[this.#mood.value].words : "";
    return words === "" ? directions : { ...directions, instructions: words };
  }

  #toggle(voice) {
    this.#queue = [];
    const same = this.#preview.playing === voice;
    if (same) this.#preview.stop();
    else this.#hear(voice);
  }

  #hear(voice) {
    const input = this.#text.value.trim();
    const problem = input === "" ? t("Write a text to hear first.") : this.#tooLong;
    this.#show(problem, problem !== "");
    if (problem !== "") {
      this.#queue = [];
      this.#text.focus();
      return;
    }
    // Another voice of the same id may be another model's: the preview tells them apart by id.
    this.#preview.stop();
    void this.#preview.toggle(voice, { ...this.#directionsOf(voice), input });
  }

  // A sentence; empty if it is not.
  get #tooLong() {
    const { length } = Array.from(this.#text.value.trim());
    if (length <= MAX_CHARACTERS) return "";
    const values = { length, most: MAX_CHARACTERS };
    return t("The text has {length} characters; at most {most} are heard here. Shorten it.", values);
  }

  #hearAll() {
    this.#queue = this.#cards.map(({ voice }) => voice);
    this.#hearNext();
  }

  #hearNext() {
    const next = this.#queue.shift();
    if (next !== undefined) this.#hear(next);
  }

  #stop() {
    this.#queue = [];
    this.#preview.stop();
  }

  #use(voice) {
    this.#stop();
    const asked = { model: voice.model, voice: voice.id };
    const words = this.#takesWords(voice) ? MOODS[this.#mood.value].words : "";
    this.#speakWith(words === "" ? asked : { ...asked, instructions: words });
  }

  #refresh() {
    const { playing } = this.#preview;
    this.#find("hear-none").disabled = playing === null;
    for (const { voice, entry, hear } of this.#cards) {
      const plays = voice === playing;
      const name = { name: labelVoice(voice) };
      hear.textContent = plays ? t("Stop") : t("Hear");
      hear.setAttribute("aria-label", plays ? t("Stop {name}", name) : t("Hear {name}", name));
      if (plays) entry.setAttribute("aria-current", "true");
      else entry.removeAttribute("aria-current");
    }
  }
}

// Whole sentences, as many as are soon heard.
function firstWords(text) {
  const tidy = text.replace(/\s+/g, " ").trim();
  if (tidy.length <= MAX_OFFERED) return tidy;
  const cut = tidy.slice(0, MAX_OFFERED);
  const end = cut.search(/[.!?][^.!?]*$/);
  return end > 0 ? cut.slice(0, end + 1) : cut;
}

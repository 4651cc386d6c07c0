// Who answers in the chat, and how.

import { t } from "../texts.js";
import { fillMenu } from "./choices.js";

const KEPT = "chatting";

/** Dispatches "change". */
export class ChatSettings extends EventTarget {
  #find;
  #settings;
  #store;
  #choices;
  #catalogue;
  #wanted;

  constructor(panel, { settings, store, choices, catalogue }) {
    super();
    this.#find = (role) => panel.querySelector(`[data-role="${role}"]`);
    this.#settings = settings;
    this.#store = store;
    this.#choices = choices;
    this.#catalogue = catalogue;
    this.#wanted = store.get(KEPT, {});
    this.#find("chat-instructions").value = this.#wanted.instructions ?? "";
    this.#find("chat-aloud").checked = this.#wanted.aloud ?? false;
    this.#find("chat-think").checked = this.#wanted.think ?? false;
    for (const role of ["model", "instructions", "tools", "aloud", "draws", "think"]) {
      this.#find(`chat-${role}`).addEventListener("change", () => this.#change());
    }
    for (const list of [choices, catalogue]) list.addEventListener("change", () => this.#offer());
    this.#offer();
  }

  get instructions() {
    return this.#find("chat-instructions").value;
  }

  /** The one that answers: an entry of /v1/models; undefined if there is none. */
  get model() {
    return this.#catalogue.answering.find(({ id }) => id === this.#find("chat-model").value);
  }

  takes(kind) {
    return Boolean(this.model?.input_modalities.includes(kind));
  }

  get aloud() {
    const { checked, disabled } = this.#find("chat-aloud");
    return checked && !disabled && !this.#draws && this.#tools === "";
  }

  /** Why no request can be sent; null if it can. */
  get problem() {
    if (this.model === undefined) return t("No model of this server answers.");
    try {
      if (this.#tools !== "" && !Array.isArray(JSON.parse(this.#tools))) throw new SyntaxError();
      return null;
    } catch {
      return t("The tools are not a JSON list of functions. Mend or empty that field.");
    }
  }

  /** Fields of the request, but for its messages. */
  get request() {
    const request = { model: this.model.id };
    if (this.#draws) return { ...request, modalities: ["text", "image"] };
    if (this.#find("chat-think").checked) request.chat_template_kwargs = { enable_thinking: true };
    if (this.#tools !== "") request.tools = JSON.parse(this.#tools);
    if (!this.aloud) return request;
    const audio = { format: "pcm16" };
    // A model with a voice of its own does not know the page's.
    if (!this.#speaksItself && this.#settings.voice) audio.voice = this.#settings.voice.id;
    return { ...request, modalities: ["text", "audio"], audio };
  }

  get #tools() {
    return this.#find("chat-tools").value.trim();
  }

  get #draws() {
    const { checked, disabled } = this.#find("chat-draws");
    return checked && !disabled;
  }

  get #speaksItself() {
    return this.model.output_modalities.includes("audio");
  }

  #offer() {
    const entries = this.#catalogue.answering.map(({ id }) => ({ value: id, label: id }));
    fillMenu(this.#find("chat-model"), entries, [this.#wanted.model]);
    this.#find("chat-model-control").hidden = entries.length < 2;
    this.#refresh();
  }

  #refresh() {
    const { model } = this;
    const offer = (role, offered) => {
      this.#find(role).disabled = !offered;
      this.#find(role).parentElement.hidden = !offered;
    };
    const speaks = this.#choices.models.length > 0;
    offer("chat-aloud", model !== undefined && (this.#speaksItself || speaks));
    offer("chat-draws", Boolean(model?.images?.conversations));
    this.dispatchEvent(new Event("change"));
  }

  #change() {
    this.#wanted = {
      model: this.#find("chat-model").value,
      instructions: this.instructions,
      aloud: this.#find("chat-aloud").checked,
      think: this.#find("chat-think").checked,
    };
    this.#store.set(KEPT, this.#wanted);
    this.#refresh();
  }
}

// The tab for chats: words, speech and pictures in and out, in one thread.

import { SpeechError } from "../api/errors.js";
import { Answer } from "../chat/answer.js";
import { Conversation } from "../chat/conversation.js";
import { Loud } from "../chat/loud.js";
import { t } from "../texts.js";
import { ShownMessage } from "./chatmessage.js";
import { ChatSettings } from "./chatsettings.js";
import { ChatSources } from "./chatsources.js";
import { nameFile, save } from "./save.js";
import { statusLine } from "./status.js";

const KEPT = "chat";

/** Dispatches "begin" when it speaks or records, and "sound" when that may have changed. */
export class ChatView extends EventTarget {
  conversation;
  loud = new Loud();
  #find;
  #field;
  #server;
  #store;
  #confirm;
  #show;
  #settings;
  #sources;
  #answer = null; // under way

  constructor(panel, { server, settings, store, choices, catalogue, confirm }) {
    super();
    this.#find = (role) => panel.querySelector(`[data-role="${role}"]`);
    this.#field = panel.querySelector("#cantata-message");
    this.#server = server;
    this.#store = store;
    this.#confirm = confirm;
    this.#show = statusLine(this.#find("chat-status"));
    this.#settings = new ChatSettings(panel, { settings, store, choices, catalogue });
    this.#sources = new ChatSources(panel, { server, catalogue, settings: this.#settings });
    const kept = store.get(KEPT, []);
    this.conversation = new Conversation(Array.isArray(kept) ? kept : []);
    this.#listen();
    this.#render();
  }

  get sounding() {
    return this.loud.sounding || this.#sources.recording;
  }

  /** Ends the answer under way, and its sound. */
  stop() {
    this.#answer?.stop();
    this.loud.stop();
  }

  #listen() {
    const on = (role, act) => this.#find(role).addEventListener("click", act);
    on("chat-send", () => void this.#send());
    on("chat-stop", () => this.stop());
    on("chat-again", () => void this.#again());
    on("chat-save", () => this.#save());
    on("chat-clear", () => void this.#clear());
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.#send();
    });
    this.loud.addEventListener("state", () => this.#heard());
    this.#sources.addEventListener("record", () => {
      this.dispatchEvent(new Event("begin"));
      this.#heard();
    });
    this.#sources.addEventListener("refused", ({ detail }) => this.#show(detail, true));
    this.#sources.addEventListener("told", ({ detail }) => this.#show(detail));
    this.#sources.addEventListener("spoken", ({ detail }) => {
      this.#heard();
      void this.#send(detail);
    });
    this.#settings.addEventListener("change", () => this.#refresh());
  }

  #heard() {
    this.dispatchEvent(new Event("sound"));
    this.#refresh();
  }

  /** @param {{text?, sound?}} spoken what the microphone heard, if it was that */
  async #send(spoken = {}) {
    if (this.#answer !== null) return;
    const [call] = this.conversation.openCalls;
    const text = (spoken.text ?? this.#field.value).trim();
    const pictures = this.#sources.pictures;
    if (text === "" && spoken.sound === undefined && pictures.length === 0) {
      this.#show(t("Write something first."), true);
      this.#field.focus();
      return;
    }
    const problem = this.#settings.problem;
    if (problem !== null) {
      this.#show(problem, true);
      return;
    }
    this.#field.value = "";
    this.#sources.clear();
    const message = call
      ? { role: "tool", text, callId: call.id }
      : { role: "user", text, pictures, sound: spoken.sound };
    this.#append(this.conversation.add(message));
    this.#keep();
    if (this.conversation.openCalls.length === 0) await this.#ask();
    else this.#refresh();
  }

  async #again() {
    if (!this.conversation.forgetAnswer()) return;
    this.#render();
    await this.#ask();
  }

  async #ask() {
    const { settings, aloud } = { settings: this.#settings, aloud: this.#settings.aloud };
    const messages = this.conversation.toRequest(settings.instructions);
    const message = this.conversation.add({ role: "assistant" });
    const shown = this.#append(message);
    const answer = new Answer(this.#server, { ...settings.request, messages }, message);
    this.#answer = answer;
    answer.addEventListener("change", () => {
      shown.refresh();
      this.#scroll();
    });
    answer.addEventListener("sound", ({ detail }) => this.loud.push(detail));
    if (aloud) {
      this.dispatchEvent(new Event("begin"));
      this.loud.prepare();
    }
    this.#refresh();
    this.#show(t("Waiting for the answer…"));
    await this.#finish(answer, message);
  }

  async #finish(answer, message) {
    let sentence = "";
    let isError = false;
    try {
      const whole = await answer.start();
      if (!whole) sentence = t("Stopped.");
      else if (answer.cut) sentence = t("The answer was cut: it was longer than the model may write.");
      else if (message.calls) sentence = t("It waits for a result: write it, and send.");
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      sentence = error.code === "context_length_exceeded"
        ? t("The conversation is too long for this model. Save it, and start a new one.")
        : error.message;
      isError = true;
    }
    this.#answer = null;
    this.loud.end();
    const { text, pictures, thoughts, calls } = message;
    if (text === "" && pictures.length === 0 && !thoughts && !calls) {
      this.conversation.messages.pop();
      this.#render();
    }
    if (!this.#keep() && !isError) {
      sentence = t("This browser's storage is full or off: save the chat, or it is lost with the page.");
      isError = true;
    }
    this.#refresh();
    this.#show(sentence, isError);
  }

  #append(message) {
    const shown = new ShownMessage(message);
    this.#find("thread").append(shown.entry);
    this.#refresh();
    this.#scroll();
    return shown;
  }

  #render() {
    const entries = this.conversation.messages.map((message) => new ShownMessage(message).entry);
    this.#find("thread").replaceChildren(...entries);
    this.#refresh();
    this.#scroll();
  }

  #scroll() {
    const box = this.#find("thread").parentElement;
    box.scrollTop = box.scrollHeight;
  }

  #refresh() {
    const busy = this.#answer !== null;
    const { empty, openCalls } = this.conversation;
    this.#find("chat-empty").hidden = !empty;
    this.#find("chat-send").disabled = busy;
    this.#find("chat-send").textContent = openCalls.length > 0 ? t("Send the result") : t("Send");
    this.#find("chat-stop").disabled = !busy && !this.loud.sounding;
    for (const role of ["chat-again", "chat-save", "chat-clear"]) {
      this.#find(role).disabled = busy || empty;
    }
  }

  /** Returns whether the browser kept it. */
  #keep() {
    return this.#store.set(KEPT, this.conversation.toStore());
  }

  #save() {
    const said = this.conversation.messages.find(({ text }) => text !== "")?.text ?? "";
    const name = nameFile(said);
    save(this.conversation.toMarkdown(), "md", "text/markdown", name);
    this.#show(t("{file} is in your downloads.", { file: `${name}.md` }));
  }

  async #clear() {
    const text = t("This chat is deleted from this browser. Save it first, if you need it.");
    if (!(await this.#confirm({ title: t("Delete this chat?"), text, act: t("Delete") }))) return;
    this.stop();
    this.conversation = new Conversation();
    this.#keep();
    this.#render();
    this.#show("");
    this.#field.focus();
  }
}

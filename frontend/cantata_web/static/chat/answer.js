// One answer: the request, and what comes of it. No DOM here.

import { asSpeechError, SpeechError } from "../api/errors.js";
import { readEvents } from "../api/events.js";
import { decodePcm } from "../talk/base64.js";
import { t } from "../texts.js";

/** Dispatches "change" when more of the message is there, and "sound" (detail: an Int16Array). */
export class Answer extends EventTarget {
  cut = false; // it was longer than the model may write
  #server;
  #body;
  #message;
  #abort = new AbortController();

  /** @param {object} body of the request @param {Message} message is filled */
  constructor(server, body, message) {
    super();
    this.#server = server;
    this.#body = { ...body, stream: true };
    this.#message = message;
  }

  /** Resolves with whether it was answered to its end; rejects with a SpeechError. */
  async start() {
    try {
      const response = await this.#server.request("v1/chat/completions", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(this.#body),
        signal: this.#abort.signal,
      });
      let ended = false;
      for await (const { data } of readEvents(response.body)) {
        if (data.error) throw asSpeechError(data.error);
        const [choice] = data.choices ?? [];
        if (choice === undefined) continue;
        this.#take(choice.delta);
        ended ||= choice.finish_reason !== null;
        this.cut ||= choice.finish_reason === "length";
      }
      if (!ended) throw new SpeechError(t("The connection broke before the end of the answer."));
      return true;
    } catch (error) {
      if (error.name === "AbortError") return false;
      throw error;
    }
  }

  /** Closes the request, which ends the work in the server. */
  stop() {
    this.#abort.abort();
  }

  #take(delta) {
    const message = this.#message;
    message.text += delta.content ?? "";
    message.text += delta.audio?.transcript ?? "";
    if (delta.reasoning_content) {
      message.thoughts = (message.thoughts ?? "") + delta.reasoning_content;
    }
    for (const { image_url: picture } of delta.images ?? []) message.pictures.push(picture.url);
    for (const call of delta.tool_calls ?? []) this.#takeCall(call);
    if (delta.audio?.data) {
      const detail = decodePcm(delta.audio.data);
      this.dispatchEvent(new CustomEvent("sound", { detail }));
    }
    this.dispatchEvent(new Event("change"));
  }

  #takeCall({ index, id, function: part }) {
    const calls = (this.#message.calls ??= []);
    calls[index] ??= { id, name: part.name, arguments: "" };
    calls[index].arguments += part.arguments ?? "";
  }
}

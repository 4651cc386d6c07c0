// What is said in one recording: the request, and what comes of it. No DOM here.

import { asSentence, asSpeechError, SpeechError } from "../api/errors.js";
import { readEvents } from "../api/events.js";
import { t } from "../texts.js";

// Worded for speech elsewhere: of these the server's own words are shown.
const OWN_WORDS = new Set(["chunk_timeout", "stage_died"]);

export const TranscriptionState = Object.freeze({
  LISTENING: "listening",
  DONE: "done",
  CANCELLED: "cancelled",
  FAILED: "failed",
});

/**
 * A word, a sentence, or a part of a long one, in seconds from the beginning of the recording.
 * @typedef {{text: string, start: number, end: number}} Part
 */

/** Dispatches "change". */
export class Transcription extends EventTarget {
  state = TranscriptionState.LISTENING;
  error = null; // a SpeechError
  text = ""; // that has been heard so far
  /** @type {Part[]} as they came; at the end, its sentences */
  passages = [];
  /** @type {Part[]} at the end, if the model tells when each word is said */
  words = [];
  seconds = null; // length of the recording; once all of it has been heard
  #server;
  #recording;
  #abort = new AbortController();

  /**
   * @param {Server} server
   * @param {{sound: Blob, name: string, model: string, language: string}} recording and who listens
   *   to it; without a language, they find out
   */
  constructor(server, recording) {
    super();
    this.#server = server;
    this.#recording = recording;
  }

  get over() {
    return this.state !== TranscriptionState.LISTENING;
  }

  /** @returns {Part[]} the smallest ones whose times are known */
  get parts() {
    return this.words.length > 0 ? this.words : this.passages;
  }

  /** Seconds of the recording that have been heard so far. */
  get heardSeconds() {
    return this.seconds ?? this.passages.at(-1)?.end ?? 0;
  }

  /** Resolves when it is over. */
  async start() {
    try {
      const response = await this.#server.request("v1/audio/transcriptions", {
        method: "POST",
        body: this.#form(),
        signal: this.#abort.signal,
      });
      for await (const { name, data } of readEvents(response.body)) this.#take(name, data);
      if (!this.over) throw new SpeechError(t("The connection broke before the end."));
    } catch (error) {
      if (this.over) return; // cancelled
      if (!(error instanceof SpeechError)) throw error;
      this.error = this.#reworded(error);
      this.#enter(TranscriptionState.FAILED);
    }
  }

  /** Closes the request, which ends the work in the server. What has been heard stays. */
  cancel() {
    if (this.over) return;
    this.#enter(TranscriptionState.CANCELLED);
    this.#abort.abort();
  }

  #form() {
    const { sound, name, model, language } = this.#recording;
    const form = new FormData();
    form.append("model", model);
    if (language !== "") form.append("language", language);
    form.append("response_format", "verbose_json");
    form.append("stream", "true");
    for (const one of ["word", "segment"]) form.append("timestamp_granularities[]", one);
    form.append("file", sound, name);
    return form;
  }

  #take(name, data) {
    if (name === "error") throw asSpeechError(data.error);
    if (this.over) return;
    if (data.type === "transcript.text.delta") {
      this.text += data.delta;
      this.passages.push({ text: data.delta.trim(), start: data.start, end: data.end });
      this.#enter(TranscriptionState.LISTENING);
    } else if (data.type === "transcript.text.done") {
      this.text = data.text;
      this.words = (data.words ?? []).map(({ word, start, end }) => ({ text: word, start, end }));
      const sentences = data.segments ?? [];
      if (sentences.length > 0) {
        this.passages = sentences.map(({ text, start, end }) => ({ text, start, end }));
      }
      this.seconds = data.usage.seconds;
      this.#enter(TranscriptionState.DONE);
    }
  }

  #reworded(error) {
    if (OWN_WORDS.has(error.code)) error.message = asSentence(error.detail);
    // The server calls it by the form's field.
    const called = () => `“${this.#recording.name}”`;
    if (error.param === "file") error.message = error.message.replace(/^File\b/, called);
    return error;
  }

  #enter(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

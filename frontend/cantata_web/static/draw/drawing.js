// One picture: its request, and what comes of it. No DOM here.

import { asSentence, asSpeechError, SpeechError } from "../api/errors.js";
import { readEvents } from "../api/events.js";
import { t } from "../texts.js";

const PREVIEWS = 3; // the most that the server sends
// Worded for speech elsewhere: of these the server's own words are shown.
const OWN_WORDS = new Set(["chunk_timeout", "stage_died"]);

export const DrawingState = Object.freeze({
  WAITING: "waiting", // for one of this page's own to end
  DRAWING: "drawing",
  DONE: "done",
  CANCELLED: "cancelled",
  FAILED: "failed",
});

/** Dispatches "change". */
export class Drawing extends EventTarget {
  state = DrawingState.WAITING;
  error = null; // a SpeechError
  step = 0;
  steps = null; // until the server has told
  size; // `WIDTHxHEIGHT`, or "auto" until the server has told
  previews = 0; // that have come
  file = null; // Blob: the latest preview, and at last the picture
  seconds = null; // that it took
  #server;
  #abort = new AbortController();
  #startedAt = 0;

  /**
   * @param {Server} server
   * @param {object} request fields of the API's request for one picture; `references`, Blobs that
   *   are to be edited; and `options`, fields of the model's own
   */
  constructor(server, request) {
    super();
    this.#server = server;
    this.request = request;
    this.size = request.size;
  }

  get over() {
    return this.state !== DrawingState.WAITING && this.state !== DrawingState.DRAWING;
  }

  /** Resolves when it is over. */
  async start() {
    this.#startedAt = performance.now();
    this.state = DrawingState.DRAWING;
    try {
      const answer = this.#server.request(...this.#call());
      this.#tell(); // once it is on its way: others begin after it
      const response = await answer;
      for await (const { name, data } of readEvents(response.body)) this.#take(name, data);
      if (!this.over) throw new SpeechError(t("The connection broke before the picture was done."));
    } catch (error) {
      if (this.over) return; // cancelled
      if (!(error instanceof SpeechError)) throw error;
      if (OWN_WORDS.has(error.code)) error.message = asSentence(error.detail);
      this.error = error;
      this.#enter(DrawingState.FAILED);
    }
  }

  /** Closes the request, which frees its slot in the server. */
  cancel() {
    if (this.over) return;
    this.#enter(DrawingState.CANCELLED);
    this.#abort.abort();
  }

  #call() {
    const { references, options: own, ...fields } = this.request;
    const asked = { ...fields, stream: true, partial_images: PREVIEWS, stream_progress: true };
    const options = { method: "POST", signal: this.#abort.signal };
    if (references.length === 0) {
      const headers = { "Content-Type": "application/json" };
      return ["v1/images/generations", { ...options, headers, body: JSON.stringify({ ...asked, ...own }) }];
    }
    const body = new FormData();
    for (const [name, value] of Object.entries(asked)) {
      if (value !== undefined) body.append(name, String(value));
    }
    // A form has only text; of the model's own fields the server reads it as JSON.
    for (const [name, value] of Object.entries(own)) body.append(name, JSON.stringify(value));
    for (const picture of references) body.append("image[]", picture, picture.name ?? "picture.png");
    return ["v1/images/edits", { ...options, body }];
  }

  #take(name, data) {
    if (name === "error") throw asSpeechError(data.error);
    if (this.over) return;
    if (name.endsWith(".progress")) {
      this.step = data.step;
      this.steps = data.steps;
    } else if (name.endsWith(".partial_image")) {
      this.previews = data.partial_image_index + 1;
      this.#show(data);
    } else if (name.endsWith(".completed")) {
      this.step = this.steps ?? this.step;
      this.seconds = (performance.now() - this.#startedAt) / 1000;
      this.state = DrawingState.DONE;
      this.#show(data);
    }
    this.#tell();
  }

  #show({ b64_json: base64, size, output_format: format }) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    this.file = new Blob([bytes], { type: `image/${format}` });
    this.size = size;
  }

  #enter(state) {
    this.state = state;
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

// The HTTP side of the server, and how its WebSocket is opened.

import { t } from "../texts.js";
import { asSentence, asSpeechError, SpeechError } from "./errors.js";

const SILENT = t("The server does not answer.");

/** Dispatches "trouble" when it could not be reached, or a connection to it was lost. */
export class Server extends EventTarget {
  #keys;
  #askKey;

  /**
   * @param {URL} base where the API's paths start
   * @param {KeyStore} keys
   * @param {(sentence) => Promise<string | null>} askKey asks the listener for a key
   */
  constructor(base, keys, askKey) {
    super();
    this.base = base;
    this.#keys = keys;
    this.#askKey = askKey;
  }

  get hasKey() {
    return this.#keys.key !== null;
  }

  /**
   * Resolves with a successful Response; rejects with a SpeechError.
   * @param {object} options of fetch, and `limitMs`: how long the server may take
   */
  async request(path, options = {}) {
    for (;;) {
      const response = await this.#fetch(path, options);
      if (response.ok) return response;
      const error = await refusal(response);
      if (response.status !== 401 || !(await this.#unlock(error))) throw error;
    }
  }

  async json(path, options) {
    return (await this.request(path, options)).json();
  }

  async text(path, limitMs) {
    const response = await this.request(path, { limitMs });
    try {
      return await response.text();
    } catch {
      throw new SpeechError(SILENT);
    }
  }

  openSocket(path = "v1/audio/speech/stream") {
    const url = new URL(path, this.base);
    url.protocol = this.base.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, this.#keys.subprotocols);
    socket.addEventListener("close", ({ wasClean }) => {
      if (!wasClean) this.#report();
    });
    return socket;
  }

  /**
   * Why a WebSocket could not be opened, which browsers do not say. Resolves with null when a key
   * was missing and is there now; rejects with a SpeechError otherwise.
   * @param {string} path that may be asked for over HTTP where the socket is allowed
   */
  async checkAccess(path = "metrics") {
    const before = this.#keys.key;
    await this.confirmAccess(path);
    if (this.#keys.key !== before) return;
    throw new SpeechError(t("The server refused the connection. Reload the page and try again."));
  }

  /**
   * Resolves when the listener may use what needs a key; asks for the key if it is missing.
   * Only a refusal has a body that matters: its reason.
   */
  async confirmAccess(path = "metrics") {
    const response = await this.#fetch(path, { method: "HEAD" });
    if (!response.ok) await this.request(path);
  }

  /** Resolves when the server has answered anything; rejects with a SpeechError if it does not. */
  async reach(limitMs) {
    await this.#fetch("ready", { limitMs });
  }

  /** Resolves with null if the server is ready, else with a sentence that says why it is not. */
  async whyNotReady(limitMs) {
    try {
      const response = await this.#fetch("ready", { limitMs });
      if (response.ok) return null;
      const { message, detail } = await refusal(response);
      return detail === null ? message : asSentence(detail);
    } catch (error) {
      return error.message;
    }
  }

  async #fetch(path, { limitMs, ...options } = {}) {
    const headers = { ...options.headers, ...this.#keys.headers };
    const signal = limitMs === undefined ? options.signal : AbortSignal.timeout(limitMs);
    try {
      return await fetch(new URL(path, this.base), { ...options, headers, signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (path !== "ready") this.#report();
      throw new SpeechError(error.name === "TimeoutError" ? SILENT : this.#unreachable);
    }
  }

  #report() {
    this.dispatchEvent(new Event("trouble"));
  }

  get #unreachable() {
    const here = document.location.origin;
    if (this.base.origin === here) return t("The server cannot be reached. Is it running?");
    return t(
      "The server at {server} cannot be reached, or does not allow this page: " +
        "it must be started with --allow-origin {page}.",
      { server: this.base.origin, page: here },
    );
  }

  async #unlock(error) {
    const wrong = this.#keys.key !== null;
    this.#keys.key = null;
    const key = await this.#askKey(
      wrong ? t("The server does not know this key.") : t("This server needs an API key."),
    );
    if (key === null) {
      error.message = t("The server needs an API key. Reload the page to enter one.");
      return false;
    }
    this.#keys.key = key;
    return true;
  }
}

async function refusal(response) {
  const { status } = response;
  const retryAfter = response.headers.get("retry-after");
  try {
    return asSpeechError((await response.json()).error, { status, retryAfter });
  } catch {
    const sentence = t("The server answered {status} without a reason.", { status: String(status) });
    return new SpeechError(sentence, { status });
  }
}

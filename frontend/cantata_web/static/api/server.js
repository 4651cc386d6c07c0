// The HTTP side of the server, and how its WebSocket is opened.

import { asSpeechError, SpeechError } from "./errors.js";

const RETRY_MS = 1_000;

export class Server {
  #keys;
  #askKey;

  /**
   * @param {URL} base where the API's paths start
   * @param {KeyStore} keys
   * @param {(sentence) => Promise<string | null>} askKey asks the listener for a key
   */
  constructor(base, keys, askKey) {
    this.base = base;
    this.#keys = keys;
    this.#askKey = askKey;
  }

  /** Resolves with a successful Response; rejects with a SpeechError. */
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

  openSocket() {
    const url = new URL("v1/audio/speech/stream", this.base);
    url.protocol = this.base.protocol === "https:" ? "wss:" : "ws:";
    return new WebSocket(url, this.#keys.subprotocols);
  }

  /**
   * Why a WebSocket could not be opened, which browsers do not say. Resolves with null when a key
   * was missing and is there now; rejects with a SpeechError otherwise.
   */
  async checkAccess() {
    const before = this.#keys.key;
    await this.request("metrics");
    if (this.#keys.key !== before) return;
    throw new SpeechError("The server refused the connection. Reload the page and try again.");
  }

  /** Resolves once the server is ready. `tell` receives a sentence for each state until then. */
  async untilReady(tell) {
    for (;;) {
      try {
        const response = await this.#fetch("ready");
        if (response.ok) return;
        tell("The server is warming up");
      } catch (error) {
        tell(error.message);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async #fetch(path, options = {}) {
    const headers = { ...options.headers, ...this.#keys.headers };
    try {
      return await fetch(new URL(path, this.base), { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new SpeechError(this.#unreachable);
    }
  }

  get #unreachable() {
    const here = document.location.origin;
    if (this.base.origin === here) return "The speech server cannot be reached. Is it running?";
    return (
      `The speech server at ${this.base.origin} cannot be reached, or does not allow this page: ` +
      `it must be started with --allow-origin ${here}.`
    );
  }

  async #unlock(error) {
    const wrong = this.#keys.key !== null;
    this.#keys.key = null;
    const key = await this.#askKey(
      wrong ? "The server does not know this key." : "This server speaks to those with a key.",
    );
    if (key === null) {
      error.message = "The server needs an API key. Reload the page to enter one.";
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
    return new SpeechError(`The server answered ${status} without saying why.`, { status });
  }
}

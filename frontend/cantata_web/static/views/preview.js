// Hearing a voice before it is chosen: a short sentence, requested like any other speech.

import { SpeechError } from "../api/errors.js";
import { encodeWav } from "../player/wav.js";

/**
 * Dispatches "change" when a preview begins or ends, "ended" when all of it was heard, and "failed"
 * (detail: a sentence).
 */
export class Preview extends EventTarget {
  playing = null; // the voice
  #server;
  #tell;
  #sounds = new Map(); // URLs of WAV files, by request
  #audio = null;

  /** @param {(sentence, isError) => void} tell */
  constructor(server, tell) {
    super();
    this.#server = server;
    this.#tell = tell;
  }

  /**
   * Plays the voice, or stops it if it is playing. Call it from the click.
   * @param {object} directions fields of the request beside model and voice; some models need them.
   *   `input` replaces the usual sentence
   */
  async toggle(voice, directions = {}) {
    const same = this.playing?.id === voice.id;
    this.stop();
    if (same) return;
    this.#enter(voice);
    try {
      const url = await this.#sound(voice, directions);
      if (this.playing !== voice) return;
      this.#audio = new Audio(url);
      this.#audio.addEventListener("ended", () => {
        this.stop();
        this.dispatchEvent(new Event("ended"));
      });
      await this.#audio.play();
    } catch (error) {
      if (this.playing === voice) this.stop();
      if (error instanceof SpeechError) {
        this.#tell(error.message, true);
        this.dispatchEvent(new CustomEvent("failed", { detail: error.message }));
      } else if (error.name !== "AbortError") {
        throw error; // play() was followed by stop()
      }
    }
  }

  stop() {
    this.#audio?.pause();
    this.#audio = null;
    if (this.playing !== null) this.#enter(null);
  }

  #enter(voice) {
    this.playing = voice;
    this.dispatchEvent(new Event("change"));
  }

  async #sound({ id, name, model }, directions) {
    const body = JSON.stringify({
      input: `Hello, I am ${name}. This is how I sound.`,
      model,
      voice: id,
      ...directions,
      response_format: "pcm",
    });
    if (!this.#sounds.has(body)) {
      const answer = await this.#server.request("v1/audio/speech", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
      });
      const [rate, channels] = ["x-sample-rate", "x-channels"].map((header) =>
        Number(answer.headers.get(header)),
      );
      const wav = encodeWav(new Int16Array(await answer.arrayBuffer()), rate, channels);
      this.#sounds.set(body, URL.createObjectURL(new Blob([wav], { type: "audio/wav" })));
    }
    return this.#sounds.get(body);
  }
}

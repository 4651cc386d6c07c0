// The WebSocket side: text goes out, PCM comes in. Knows the protocol and nothing about sound.

/** A fault worded as a sentence that can be shown to the listener. */
export class SpeechError extends Error {}

/**
 * One socket, kept open between utterances: the next sentence then starts without the round trips
 * of a new connection.
 */
export class SpeechSession {
  #socket = null;
  #utterance = null; // the callbacks of the utterance under way
  #busy = false; // the server still owes an audio.done, perhaps of an utterance that was cancelled

  constructor(url) {
    this.url = url;
  }

  /**
   * @param {object} config fields of session.config: model, voice, speed, seed
   * @param {string} text
   * @param {{started(message), audio(samples), finished(message), failed(error)}} callbacks
   */
  speak(config, text, callbacks) {
    const socket = this.#open();
    this.#utterance = callbacks;
    this.#busy = true;
    const send = () => {
      socket.send(JSON.stringify({ type: "session.config", response_format: "pcm", ...config }));
      socket.send(JSON.stringify({ type: "input.text", text }));
      socket.send(JSON.stringify({ type: "input.done" }));
    };
    if (socket.readyState === WebSocket.OPEN) send();
    else socket.addEventListener("open", send, { once: true });
  }

  cancel() {
    this.#utterance = null;
    if (this.#socket?.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify({ type: "input.cancel" }));
    } else {
      this.#drop();
    }
  }

  #open() {
    if (this.#socket?.readyState === WebSocket.OPEN && !this.#busy) return this.#socket;
    this.#drop();
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    let reached = false;
    socket.addEventListener("open", () => (reached = true));
    socket.addEventListener("message", ({ data }) => {
      if (socket === this.#socket) this.#receive(data);
    });
    socket.addEventListener("close", () => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      this.#fail(
        reached
          ? "The connection closed before the speech was complete."
          : "The speech server cannot be reached.",
      );
    });
    this.#socket = socket;
    return socket;
  }

  #receive(data) {
    if (data instanceof ArrayBuffer) {
      this.#utterance?.audio(new Int16Array(data));
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "audio.start") {
      this.#utterance?.started(message);
    } else if (message.type === "audio.done") {
      this.#busy = false;
      const utterance = this.#utterance;
      this.#utterance = null;
      utterance?.finished(message);
    } else if (message.type === "error") {
      // What follows a refusal is not ours to guess, so the next utterance takes a new socket.
      this.#drop();
      this.#fail(asSentence(message.error.message));
    }
  }

  #fail(sentence) {
    const utterance = this.#utterance;
    this.#utterance = null;
    utterance?.failed(new SpeechError(sentence));
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    this.#busy = false;
    socket?.close();
  }
}

function asSentence(message) {
  const capital = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}

// What a realtime session needs to go on over another connection: nothing is said twice, and what
// did not arrive is sent again.

const MAX_CHARACTERS = 4_000_000; // of messages that are kept: a minute of sound

export class Resumption {
  #token = null;
  #seconds = 0;
  #after = null; // the id of the last event that arrived
  #sent = []; // the last messages
  #first = 0; // how many were sent before those
  #characters = 0;
  #until = null; // when the server gives up, in ms; null: nothing is lost

  /** Whether the session can go on: it cannot before it has begun, nor when the server gave up. */
  get possible() {
    return this.#token !== null && (this.#until === null || performance.now() < this.#until);
  }

  /** The query of the address. */
  get query() {
    return String(new URLSearchParams({ resume: this.#token, after: this.#after }));
  }

  /** Whether the connection is lost, and the session not yet resumed. */
  get waiting() {
    return this.#until !== null;
  }

  /** The connection is lost. */
  lose() {
    this.#until ??= performance.now() + 1000 * this.#seconds;
  }

  /** Keeps a message that is sent now, or will be. */
  keep(message) {
    this.#sent.push(message);
    this.#characters += message.length;
    while (this.#characters > MAX_CHARACTERS) {
      this.#characters -= this.#sent.shift().length;
      this.#first += 1;
    }
  }

  /**
   * An event has arrived.
   * @returns {string[]} messages to send again
   */
  take({ type, event_id: id, resume, received }) {
    this.#after = id;
    if (type === "session.created" && resume) {
      this.#token = resume.token;
      this.#seconds = resume.seconds;
    }
    if (type !== "session.resumed") return [];
    this.#until = null;
    return this.#sent.slice(Math.max(0, received - this.#first));
  }
}

// What one turn was asked to speak, and how far its stream has come. No socket's and no player's
// state here.

export class Turn {
  playing = false; // its player has begun
  broken = false; // its stream ended too early
  resuming = false; // the rest of a broken stream was asked for and has not come
  resumed = false; // that has happened
  requested = false; // the server has its settings
  #config;
  #open; // more text may come
  #typed;
  #unspoken = []; // {text, base, committed}, in the order in which they are spoken
  #partFrame = 0; // where the sound of the first one begins, in frames of this turn
  #utteranceFrame = 0;
  #nextFrame = 0; // of what the stream sends next
  #keptFrames = 0; // of all that has come

  /**
   * @param {object} config fields of session.config
   * @param {boolean} typed whether its text comes in pieces, by `write` and `commit`
   */
  constructor(config = {}, typed = false) {
    this.#config = { ...config, timestamps: true };
    if (typed) this.#config.split_granularity = "sentence";
    this.#typed = typed;
    this.#open = typed;
  }

  /** A turn whose text came as a whole. */
  static of(text, config) {
    const turn = new Turn(config);
    turn.write(text, 0);
    turn.commit();
    return turn;
  }

  /** What has not been spoken to its end. */
  get text() {
    return this.#unspoken.map(({ text }) => text).join("");
  }

  get typed() {
    return this.#typed;
  }

  /** Whether more text may come. */
  get open() {
    return this.#open;
  }

  /** Whether all of its text has been spoken, and no more will come. */
  get complete() {
    return !this.#open && this.#unspoken.length === 0;
  }

  /** Whether its stream broke with a text unfinished. */
  get resumable() {
    return this.broken && this.#unspoken.length > 0;
  }

  /** Whether the stream has come without a break so far, as fast as the server makes it. */
  get steady() {
    return !this.#typed && !this.resumed;
  }

  /** Sends the settings and everything that has not been spoken. */
  request(session, callbacks) {
    this.requested = true;
    session.begin(this.#config, callbacks);
    for (const { text, committed } of this.#unspoken) {
      session.write(text);
      if (committed) session.commit();
    }
  }

  /** More of the text; `base` is where it stands in the listener's text, in UTF-16 units. */
  write(text, base) {
    const last = this.#unspoken.at(-1);
    if (last === undefined || last.committed) this.#unspoken.push({ text, base, committed: false });
    else last.text += text;
  }

  commit() {
    this.#unspoken.at(-1).committed = true;
  }

  /** No more text will come. */
  close() {
    this.#open = false;
  }

  /** The server has closed the connection, because no text came for long. */
  drop() {
    this.requested = false;
    this.#unspoken = [];
  }

  /** An utterance begins. */
  begin() {
    this.#utteranceFrame = this.#nextFrame;
  }

  /** Everything up to a commit has been spoken. */
  spoken() {
    this.#unspoken.shift();
    this.#partFrame = this.#nextFrame;
  }

  /** The stream ended too early, and so does the text. */
  break() {
    this.broken = true;
    this.resuming = false;
    this.#open = false;
  }

  /**
   * To be asked for again, from the last commit that was not spoken to its end. The same request
   * gives the same samples, so `fresh` leaves out what has come.
   */
  resume() {
    this.broken = false;
    this.resuming = true;
    this.resumed = true;
    this.#nextFrame = this.#partFrame;
    if (this.#unspoken.length > 0) this.commit();
  }

  /** What has not come before, of interleaved samples. */
  fresh(samples, channels) {
    const frames = samples.length / channels;
    const known = Math.min(this.#keptFrames - this.#nextFrame, frames);
    this.#nextFrame += frames;
    this.#keptFrames = Math.max(this.#keptFrames, this.#nextFrame);
    return known > 0 ? samples.slice(known * channels) : samples;
  }

  /** In seconds, where the sound begins that a resumed stream sends first. */
  resumesAt(sampleRate) {
    return this.#partFrame / sampleRate;
  }

  /** Of the utterance under way: the text that its words refer to, and when it begins. */
  place(sampleRate) {
    const { text: sent, base } = this.#unspoken[0];
    return { sent, base, atSeconds: this.#utteranceFrame / sampleRate };
  }
}

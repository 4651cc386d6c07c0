// Reads a book aloud: asks for a piece at a time, a little ahead of what is heard, and forgets what
// has been heard, so that a long book takes no more memory than a short one. No DOM here.

import { SpeechError } from "../api/errors.js";
import { SpeechSession } from "../api/session.js";
import { Phase } from "../player/playback.js";
import { Player } from "../player/player.js";
import { Position } from "../speech/position.js";
import { WordTrack } from "../speech/words.js";
import { t } from "../texts.js";
import { Pace } from "./pace.js";

const AHEAD_SECONDS = 20;
const BEHIND_SECONDS = 5;
const RESERVE_SECONDS = 0.08;
const MAX_RESERVE_SECONDS = 10;
const DEVICE_PATIENCE_MS = 3_000;
const MAX_TRIES = 5; // of one piece: 1, 2, 4 and 8 s apart
const USUAL_RATE = 24_000; // Hz
/** Codes of what passes by itself; what has none is a lost connection. */
const PASSING = new Set([null, "rate_limit_exceeded", "not_ready", "stage_died", "chunk_timeout"]);

export const Reading = Object.freeze({
  IDLE: "idle",
  WAITING: "waiting", // for the server
  PLAYING: "playing",
  PAUSED: "paused",
  DONE: "done",
  ERROR: "error",
});

/** Dispatches "state", and "place" some 12 times a second while it is heard. */
export class Narrator extends EventTarget {
  state = Reading.IDLE;
  error = null; // a sentence, in state ERROR
  book = null;
  #server;
  #request;
  #player = new Player(1);
  #pace = new Pace();
  #place = 0;
  #word = null;
  #run = null; // what is being read since it was started or moved; late callbacks of others are ignored

  /** @param {() => object} request the settings: fields of session.config */
  constructor(server, request) {
    super();
    this.#server = server;
    this.#request = request;
  }

  /** Whether it reads, or would if the server sent something. */
  get going() {
    return this.state === Reading.PLAYING || this.state === Reading.WAITING;
  }

  /** Where the word begins that is heard, in the book's text. */
  get place() {
    return this.#place;
  }

  /** The word that was heard at the last "place": {from, to}; null if none was. */
  get word() {
    return this.#word;
  }

  /** For the bar, both by the pace so far: {seconds, total}. */
  get time() {
    const { speed } = this.#request();
    const length = this.book?.length ?? 0;
    return { seconds: this.#pace.of(this.#place) / speed, total: this.#pace.of(length) / speed };
  }

  /** What is held of the sound, in seconds, and of the words: for tests. */
  get held() {
    return { seconds: this.#run?.aheadSeconds ?? 0, words: this.#run?.words.all.length ?? 0 };
  }

  set volume(volume) {
    this.#player.volume = volume;
  }

  /** Takes another book; nothing is read yet. */
  open(book, place = 0) {
    this.#halt();
    this.book = book;
    this.#pace.forget();
    this.#place = Math.min(place, Math.max(0, book.length - 1));
    this.#enter(Reading.IDLE);
  }

  /** Reads on from a place, or from where it is. Call it from the click. */
  play(place = this.#place) {
    if (this.state === Reading.PAUSED && place === this.#place && this.#run?.stale === false) {
      this.#player.unlock(this.#run.sampleRate);
      this.#enter(Reading.PLAYING);
      return;
    }
    this.#halt();
    this.error = null;
    this.#place = place;
    this.#player.unlock(USUAL_RATE);
    this.#run = new Run(this.#server, place);
    this.#enter(Reading.WAITING);
    this.#ask();
  }

  pause() {
    if (!this.going) return;
    if (this.#run.begun) {
      this.#player.pause();
      this.#run.position.hold();
    } else {
      this.#halt();
    }
    this.#enter(Reading.PAUSED);
  }

  /** Goes to a place: reads on from there, if it reads. */
  seek(place) {
    if (this.going) {
      this.play(place);
      return;
    }
    this.#halt();
    this.#place = place;
    this.#enter(this.book === null ? Reading.IDLE : Reading.PAUSED);
    this.dispatchEvent(new Event("place"));
  }

  /** The settings are others: what comes is asked for again. */
  change() {
    if (this.going) this.play(this.#place);
    else if (this.#run !== null) this.#run.stale = true;
  }

  stop() {
    this.#halt();
    if (this.state !== Reading.IDLE) this.#enter(Reading.PAUSED);
  }

  get #heardSeconds() {
    return Math.max(0, this.#run.position.seconds - this.#player.outputLatencySeconds);
  }

  #halt() {
    if (this.#run === null) return;
    this.#run.close();
    this.#run = null;
    this.#word = null;
    this.#player.stop();
  }

  // Of the run under way; ignored once another one has replaced it.
  #current(handle) {
    const run = this.#run;
    return (value) => {
      if (this.#run === run) handle(run, value);
    };
  }

  #ask() {
    const run = this.#run;
    if (run.piece !== null || run.over || run.aheadSeconds > AHEAD_SECONDS) return;
    const piece = this.book.pieceAt(run.next);
    if (piece === null) {
      run.over = true;
      if (run.begun) this.#player.end();
      else this.#finish();
      return;
    }
    run.start(piece);
    this.#send(run);
  }

  #send(run) {
    run.send(this.#request(), {
      started: this.#current((_, message) => this.#begin(message)),
      audio: this.#current((_, samples) => this.#push(run.fresh(samples))),
      words: this.#current((_, { words }) => run.place(words)),
      finished: () => {},
      spoken: this.#current(() => this.#spoken()),
      failed: this.#current((_, error) => this.#retry(error)),
    });
  }

  #begin({ sample_rate: sampleRate, channels = 1 }) {
    const run = this.#run;
    run.startUtterance();
    if (run.begun) return;
    Object.assign(run, { begun: true, sampleRate, channels });
    this.#player.begin({
      sampleRate,
      channels,
      reserveSeconds: run.reserveSeconds,
      listener: {
        audible: () => {},
        report: this.#current((_, report) => this.#note(report)),
        ended: this.#current(() => this.#finish()),
      },
    });
    setTimeout(this.#current(() => this.#checkDevice()), DEVICE_PATIENCE_MS);
  }

  #checkDevice() {
    if (this.state === Reading.PAUSED || !this.#player.stalled) return;
    this.#fail(new SpeechError(t("The browser has not opened a sound device.")));
  }

  #push(samples) {
    if (samples.length === 0) return;
    this.#run.frames += samples.length / this.#run.channels;
    this.#player.push(samples);
  }

  #spoken() {
    const run = this.#run;
    const { from, to, gapSeconds } = run.piece;
    if (run.begun) {
      this.#push(new Int16Array(Math.round(gapSeconds * run.sampleRate) * run.channels));
      this.#pace.note(to - from, run.pieceSeconds * this.#request().speed);
    }
    run.finish();
    this.#ask();
  }

  #retry(error) {
    const run = this.#run;
    if (!PASSING.has(error.code ?? null) || run.tries >= MAX_TRIES) {
      this.#fail(error);
      return;
    }
    setTimeout(this.#current(() => this.#send(run)), 1_000 * 2 ** (run.tries - 1));
  }

  #fail(error) {
    this.#halt();
    this.error = error.message;
    this.#enter(Reading.ERROR);
  }

  #finish() {
    this.#halt();
    this.#place = 0;
    this.#enter(Reading.DONE);
  }

  #note({ playedFrames, bufferedFrames, phase }) {
    const run = this.#run;
    const rate = run.sampleRate;
    run.playedFrames = playedFrames;
    if (this.state !== Reading.PAUSED) {
      const moving = phase === Phase.PLAYING;
      run.position.report({ seconds: playedFrames / rate, bufferedSeconds: bufferedFrames / rate, moving });
      if (moving && this.state === Reading.WAITING) this.#enter(Reading.PLAYING);
      if (phase === Phase.STARVED && this.state === Reading.PLAYING) this.#starve();
    }
    run.forget(this.#heardSeconds - BEHIND_SECONDS);
    this.#word = run.words.at(this.#heardSeconds);
    if (this.#word !== null) this.#place = this.#word.from;
    this.dispatchEvent(new Event("place"));
    this.#ask();
  }

  // A server that is slower than speech would stop in every sentence: rather seldom, and longer.
  #starve() {
    const run = this.#run;
    run.reserveSeconds = Math.min(MAX_RESERVE_SECONDS, 4 * run.reserveSeconds);
    this.#player.reserve(run.reserveSeconds);
    this.#enter(Reading.WAITING);
  }

  #enter(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

// The sound of a book from one place on.
class Run {
  next; // where the piece begins that is asked for next
  piece = null; // that is coming
  tries = 0;
  over = false; // nothing more will be asked for
  stale = false; // the settings have changed since
  begun = false;
  sampleRate = USUAL_RATE;
  channels = 1;
  frames = 0; // handed to the player
  playedFrames = 0;
  reserveSeconds = RESERVE_SECONDS;
  words = new WordTrack();
  position = new Position();
  #session;
  #firstFrame = 0; // of the piece
  #came = 0; // frames of the piece, this time
  #utteranceFrame = 0;

  constructor(server, place) {
    this.#session = new SpeechSession(server);
    this.next = place;
  }

  get aheadSeconds() {
    return (this.frames - this.playedFrames) / this.sampleRate;
  }

  get pieceSeconds() {
    return (this.frames - this.#firstFrame) / this.sampleRate;
  }

  start(piece) {
    this.piece = piece;
    this.tries = 0;
    this.#firstFrame = this.frames;
  }

  send(config, callbacks) {
    this.tries += 1;
    this.#came = 0;
    this.words = this.words.before(this.#firstFrame / this.sampleRate);
    this.#session.begin({ ...config, timestamps: true }, callbacks);
    this.#session.write(this.piece.text);
    this.#session.commit();
  }

  startUtterance() {
    this.#utteranceFrame = this.#firstFrame + this.#came;
  }

  /** What had not come before the connection broke: the same request gives the same samples. */
  fresh(samples) {
    const known = this.frames - this.#firstFrame - this.#came;
    this.#came += samples.length / this.channels;
    return known > 0 ? samples.slice(known * this.channels) : samples;
  }

  place(words) {
    const { text: sent, from: base } = this.piece;
    this.words.add(words, { sent, base, atSeconds: this.#utteranceFrame / this.sampleRate });
  }

  finish() {
    this.next = this.piece.to;
    this.piece = null;
  }

  forget(beforeSeconds) {
    this.words = this.words.since(beforeSeconds);
  }

  close() {
    this.#session.close();
  }
}

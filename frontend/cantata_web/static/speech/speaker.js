// One turn from the request to the last sample: joins the socket to the player and keeps the
// state, the figures, the words and the sound that was played. No DOM here.

import { SpeechError } from "../api/errors.js";
import { SpeechSession } from "../api/session.js";
import { nextReserveSeconds, Phase } from "../player/playback.js";
import { Player } from "../player/player.js";
import { freshMetrics } from "./figures.js";
import { WordTrack } from "./words.js";

export const State = Object.freeze({
  IDLE: "idle",
  WAITING: "waiting", // requested; no sound yet
  BUFFERING: "buffering", // sound is coming; none has been played
  PLAYING: "playing",
  LISTENING: "listening", // a text is being typed and all that was finished has been spoken
  DONE: "done",
  STOPPED: "stopped",
  ERROR: "error",
});

const BUSY = new Set([State.WAITING, State.BUFFERING, State.PLAYING, State.LISTENING]);
const START_RESERVE_SECONDS = 0.08;
const DEVICE_PATIENCE_MS = 3_000;

/**
 * Dispatches "begin" with each turn, "state", "metrics", and "samples" (detail: the Int16Array that
 * was received).
 */
export class Speaker extends EventTarget {
  state = State.IDLE;
  error = null; // a sentence, in state ERROR
  metrics = freshMetrics(START_RESERVE_SECONDS);
  words = new WordTrack();
  #player = new Player();
  #session;
  #turn = null; // identity of the current turn: late callbacks of an older one are ignored
  #typing = null; // {config, open, closing} of a turn whose text is still being typed
  #sent = []; // {text, base} of each commit that has not been spoken, and of what was sent since
  #played = [];
  #recording = null; // what a replay plays
  #reserveSeconds = START_RESERVE_SECONDS;
  #askedAt = 0;
  #reportedAt = 0;
  #moving = false; // the last report was of sound still playing
  #shownSeconds = 0; // never decreases, even if the clock was ahead of the sound
  #heardFrames = 0; // played when the sound under way was received

  constructor(server) {
    super();
    this.#session = new SpeechSession(server);
  }

  get busy() {
    return BUSY.has(this.state);
  }

  get replaying() {
    return this.#recording !== null;
  }

  /** Speaks `text`. Call it from the click. What is still playing is cut off. */
  speak({ text, ...config }) {
    const turn = this.#start(State.WAITING);
    this.#sent = [{ text, base: 0 }];
    this.#session.begin({ ...config, timestamps: true }, this.#callbacks(turn));
    this.#session.write(text);
    this.#session.commit();
  }

  /** Opens a turn whose text follows with `write`. Call it from the click. */
  listen(config) {
    this.#start(State.LISTENING);
    const typed = { ...config, split_granularity: "sentence", timestamps: true };
    this.#typing = { config: typed, open: false, closing: false };
  }

  /** More of the text; `base` is where it stands in the listener's text, in UTF-16 units. */
  write(text, base) {
    if (!this.#typing.open) {
      this.#typing.open = true;
      this.#sent = [];
      this.#session.begin(this.#typing.config, this.#callbacks(this.#turn));
    }
    const current = this.#sent.at(-1);
    if (current === undefined || current.committed) this.#sent.push({ text, base });
    else current.text += text;
    this.#session.write(text);
    this.#asked();
  }

  /** Commits everything that was written, so that it is spoken. */
  commit() {
    this.#sent.at(-1).committed = true;
    this.#session.commit();
    this.#asked();
  }

  /** No more text will be written: the turn ends when all of it has been heard. */
  close() {
    this.#typing.closing = true;
    if (this.#sent.length === 0) this.#leave();
  }

  /** Plays the last turn again, as it was heard. Call it from the click. */
  replay() {
    const recording = this.recording();
    const { metrics, words } = this;
    const turn = this.#start(State.BUFFERING);
    this.#recording = recording;
    this.words = words;
    const { sampleRate, channels } = metrics;
    const kept = { ...metrics, playedFrames: 0, bufferedSeconds: 0, stopped: false };
    this.metrics = { ...kept, silenceSeconds: null, receivedFrames: recording.length / channels };
    this.#openPlayer({ sample_rate: sampleRate, channels }, turn);
    this.dispatchEvent(new CustomEvent("samples", { detail: recording }));
    this.#player.push(recording.slice());
    this.#player.end();
    this.#watchDevice();
  }

  stop() {
    if (!this.busy) return;
    this.#session.cancel();
    this.#player.stop();
    // Without sound under way, or without a working device, nothing will report the end.
    if (this.state !== State.PLAYING || this.#player.stalled) this.#finish(State.STOPPED);
    else this.metrics.stopped = true;
  }

  /** Exactly what was played last, without the silence around and inside it; interleaved. */
  capturedPcm() {
    return joined(this.#played);
  }

  /** What the last turn that was spoken played. */
  recording() {
    return this.#recording ?? this.capturedPcm();
  }

  /** How much of the turn has been played. Between the reports it moves on by the clock. */
  get playedSeconds() {
    const { playedFrames, sampleRate, bufferedSeconds } = this.metrics;
    const since = performance.now() / 1000 - this.#reportedAt;
    const moved = this.#moving ? Math.min(since, bufferedSeconds) : 0;
    this.#shownSeconds = Math.max(this.#shownSeconds, playedFrames / sampleRate + moved);
    return this.#shownSeconds;
  }

  /** How much of it has left the loudspeaker. */
  get heardSeconds() {
    const latency = this.state === State.PLAYING ? this.#player.outputLatencySeconds : 0;
    return Math.max(0, this.playedSeconds - latency);
  }

  #start(state) {
    if (this.busy) this.#session.cancel();
    this.#player.stop();
    this.#played = [];
    this.#recording = null;
    this.#typing = null;
    this.#sent = [];
    this.#heardFrames = 0;
    this.#moving = false;
    this.#shownSeconds = 0;
    this.error = null;
    this.words = new WordTrack();
    const { sampleRate } = this.metrics; // the stream's own is known only at its start
    this.metrics = { ...freshMetrics(this.#reserveSeconds), sampleRate };
    this.#turn = {};
    this.#player.unlock(sampleRate);
    this.#askedAt = performance.now() / 1000;
    this.dispatchEvent(new Event("begin"));
    this.#enter(state);
    return this.#turn;
  }

  #callbacks(turn) {
    const current = (handle) => (value) => {
      if (this.#turn === turn) handle(value);
    };
    const callbacks = {
      started: current((message) => this.#begin(message, turn)),
      audio: current((samples) => this.#receive(samples)),
      words: current((message) => this.#place(message.words)),
      finished: current((message) => this.#complete(message)),
      spoken: current(() => this.#spoken()),
      failed: current((error) => this.#fail(error)),
    };
    // Typed text that was not finished is written again.
    if (this.#typing) callbacks.dropped = current(() => (this.#typing.open = false));
    return callbacks;
  }

  #begin(message, turn) {
    if (turn.playing) this.#player.wake();
    else this.#openPlayer(message, turn);
    turn.startFrames = this.metrics.receivedFrames;
  }

  #openPlayer(message, turn) {
    turn.playing = true;
    const { sample_rate: sampleRate, channels = 1 } = message;
    const current = (handle) => (value) => {
      if (this.#turn === turn) handle(value);
    };
    this.#player.begin({
      sampleRate,
      channels,
      reserveSeconds: this.#reserveSeconds,
      listener: {
        audible: current((seconds) => this.#hear(seconds)),
        report: current((report) => this.#note(report)),
        ended: current((silentAfter) => this.#end(silentAfter)),
      },
    });
    Object.assign(this.metrics, { sampleRate, channels, deviceRate: this.#player.deviceRate });
  }

  #receive(samples) {
    const { metrics } = this;
    if (this.state === State.WAITING || this.state === State.LISTENING) {
      metrics.ttfpSeconds = performance.now() / 1000 - this.#askedAt;
      this.#heardFrames = metrics.playedFrames;
      this.#enter(State.BUFFERING);
      this.#watchDevice();
    }
    metrics.chunks += 1;
    metrics.receivedFrames += samples.length / metrics.channels;
    this.dispatchEvent(new CustomEvent("samples", { detail: samples }));
    this.#player.push(samples);
    this.#measured();
  }

  #watchDevice() {
    const turn = this.#turn;
    setTimeout(() => {
      if (turn !== this.#turn || !this.#player.stalled) return;
      this.#session.cancel();
      this.#fail(new SpeechError("The browser has not opened a sound device."));
    }, DEVICE_PATIENCE_MS);
  }

  #place(words) {
    const { text, base } = this.#sent[0];
    const atSeconds = this.#turn.startFrames / this.metrics.sampleRate;
    this.words.add(words, { sent: text, base, atSeconds });
  }

  #complete(message) {
    this.metrics.server = message;
    if (this.#typing !== null) this.#player.rest();
    this.#measured();
  }

  #spoken() {
    this.#sent.shift();
    if (this.#typing !== null && !this.#typing.closing) return;
    if (this.#sent.length > 0) return;
    if (this.metrics.receivedFrames === 0) {
      this.#fail(new SpeechError("The speech server sent no sound for this text."));
      return;
    }
    this.#leave();
  }

  #leave() {
    this.#session.leave();
    if (this.#turn.playing) this.#player.end();
    else this.#finish(State.IDLE);
  }

  #asked() {
    if (this.state === State.LISTENING) this.#askedAt = performance.now() / 1000;
  }

  #hear(seconds) {
    this.metrics.audibleSeconds ??= seconds - this.#askedAt;
    this.metrics.outputLatencySeconds = this.#player.outputLatencySeconds;
    this.#measured();
  }

  #note(report) {
    const { metrics } = this;
    if (report.played.length > 0) this.#played.push(report.played);
    this.#reportedAt = performance.now() / 1000;
    this.#moving = report.phase === Phase.PLAYING;
    metrics.playedFrames = report.playedFrames;
    metrics.starvedFrames = report.starvedFrames;
    metrics.underruns = report.underruns;
    metrics.bufferedSeconds = report.bufferedFrames / metrics.sampleRate;
    const moving = report.playedFrames > this.#heardFrames;
    if (this.state === State.BUFFERING && moving) this.#enter(State.PLAYING);
    const rests = report.phase === Phase.RESTING && this.#typing !== null;
    if (this.state === State.PLAYING && rests) this.#enter(State.LISTENING);
    this.#measured();
  }

  #end(silentAfter) {
    this.metrics.silenceSeconds = silentAfter;
    this.#finish(this.metrics.stopped ? State.STOPPED : State.DONE);
  }

  #fail(error) {
    this.error = error.message;
    this.#player.stop();
    this.#finish(State.ERROR);
  }

  #finish(state) {
    if (state !== State.ERROR && this.metrics.playedFrames > 0 && !this.replaying) {
      this.#reserveSeconds = nextReserveSeconds(this.#reserveSeconds, this.metrics.underruns);
    }
    this.#turn = null;
    this.#typing = null;
    this.#enter(state);
  }

  #enter(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  #measured() {
    this.dispatchEvent(new Event("metrics"));
  }
}

function joined(parts) {
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = new Int16Array(total);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

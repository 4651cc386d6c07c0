// One utterance from the request to the last sample: joins the socket to the player and keeps the
// state, the metrics and the sound that was played. No DOM here.

import { nextReserveSeconds } from "./playback.js";
import { Player } from "./player.js";
import { SpeechSession } from "./session.js";

export const State = Object.freeze({
  IDLE: "idle",
  WAITING: "waiting", // asked; nothing has come yet
  BUFFERING: "buffering", // sound is coming; none has been played
  PLAYING: "playing",
  DONE: "done",
  STOPPED: "stopped",
  ERROR: "error",
});

const BUSY = new Set([State.WAITING, State.BUFFERING, State.PLAYING]);
const START_RESERVE_SECONDS = 0.08;
const DEVICE_PATIENCE_MS = 3_000;
const USUAL_SAMPLE_RATE = 24_000; // for the context made in the click, before the stream has told

/** Dispatches "state", "metrics", and "samples" (detail: the Int16Array that was received). */
export class Speaker extends EventTarget {
  state = State.IDLE;
  error = null; // a sentence, in state ERROR
  sampleRate = USUAL_SAMPLE_RATE;
  metrics = freshMetrics(START_RESERVE_SECONDS);
  #player = new Player();
  #session;
  #played = [];
  #reserveSeconds = START_RESERVE_SECONDS;
  #clickedAt = 0;
  #utterance = null; // identity of the utterance under way: late callbacks of an older one miss

  constructor(socketUrl) {
    super();
    this.#session = new SpeechSession(socketUrl);
  }

  get busy() {
    return BUSY.has(this.state);
  }

  /** Speaks `text`. Call it from the click. A sentence still playing is cut off. */
  speak({ text, ...config }) {
    this.#clickedAt = performance.now() / 1000;
    if (this.busy) this.#session.cancel();
    this.#player.stop();
    this.#played = [];
    this.error = null;
    this.metrics = freshMetrics(this.#reserveSeconds);
    const utterance = {};
    this.#utterance = utterance;
    this.#player.unlock(this.sampleRate);
    const current = (handle) => (value) => {
      if (this.#utterance === utterance) handle(value);
    };
    this.#enter(State.WAITING);
    this.#session.speak(config, text, {
      started: current((message) => this.#begin(message, current)),
      audio: current((samples) => this.#receive(samples)),
      finished: current((message) => this.#complete(message)),
      failed: current((error) => this.#fail(error)),
    });
  }

  stop() {
    if (!this.busy) return;
    this.#session.cancel();
    this.#player.stop();
    // Before any sound, or without a working device, nothing will report the end.
    if (this.state !== State.PLAYING || this.#player.stalled) this.#finish(State.STOPPED);
    else this.metrics.stopped = true;
  }

  /** Exactly what was played of this utterance, without the silence around and inside it. */
  capturedPcm() {
    const total = this.#played.reduce((sum, part) => sum + part.length, 0);
    const joined = new Int16Array(total);
    let at = 0;
    for (const part of this.#played) {
      joined.set(part, at);
      at += part.length;
    }
    return joined;
  }

  #begin(message, current) {
    this.sampleRate = message.sample_rate;
    this.metrics.sampleRate = message.sample_rate;
    this.#player.begin({
      sampleRate: message.sample_rate,
      reserveSeconds: this.#reserveSeconds,
      listener: {
        audible: current((seconds) => this.#hear(seconds)),
        report: current((report) => this.#note(report)),
        ended: current(() => this.#finish(this.metrics.stopped ? State.STOPPED : State.DONE)),
      },
    });
  }

  #receive(samples) {
    const { metrics } = this;
    metrics.ttfpSeconds ??= performance.now() / 1000 - this.#clickedAt;
    metrics.chunks += 1;
    metrics.receivedFrames += samples.length;
    this.dispatchEvent(new CustomEvent("samples", { detail: samples }));
    this.#player.push(samples);
    if (this.state === State.WAITING) {
      this.#enter(State.BUFFERING);
      const utterance = this.#utterance;
      setTimeout(() => this.#checkDevice(utterance), DEVICE_PATIENCE_MS);
    }
    this.#measured();
  }

  #checkDevice(utterance) {
    if (utterance !== this.#utterance || !this.#player.stalled) return;
    this.#session.cancel();
    this.#fail(new Error("The browser has not opened a sound device."));
  }

  #complete(message) {
    this.metrics.server = message;
    if (this.metrics.receivedFrames === 0) {
      this.#fail(new Error("The speech server sent no sound for this text."));
      return;
    }
    this.#player.end();
    this.#measured();
  }

  #hear(seconds) {
    this.metrics.audibleSeconds = seconds - this.#clickedAt;
    this.metrics.outputLatencySeconds = this.#player.outputLatencySeconds;
    this.#measured();
  }

  #note(report) {
    const { metrics } = this;
    if (report.played.length > 0) this.#played.push(report.played);
    metrics.playedFrames = report.playedFrames;
    metrics.starvedFrames = report.starvedFrames;
    metrics.underruns = report.underruns;
    metrics.bufferedSeconds = report.bufferedFrames / metrics.sampleRate;
    if (this.state === State.BUFFERING && report.playedFrames > 0) this.#enter(State.PLAYING);
    this.#measured();
  }

  #fail(error) {
    this.error = error.message;
    this.#player.stop();
    this.#finish(State.ERROR);
  }

  #finish(state) {
    if (state !== State.ERROR && this.metrics.playedFrames > 0) {
      this.#reserveSeconds = nextReserveSeconds(this.#reserveSeconds, this.metrics.underruns);
    }
    this.#utterance = null;
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

function freshMetrics(reserveSeconds) {
  return {
    ttfpSeconds: null, // click to first binary frame
    audibleSeconds: null, // click to first sound at the loudspeaker
    outputLatencySeconds: null,
    sampleRate: USUAL_SAMPLE_RATE,
    reserveSeconds,
    chunks: 0,
    receivedFrames: 0,
    playedFrames: 0,
    bufferedSeconds: 0,
    starvedFrames: 0, // frames of silence that the listener heard inside the utterance
    underruns: 0,
    stopped: false,
    server: null, // the stream's audio.done
  };
}

// One turn from the request to the last sample: joins the socket to the player and keeps the
// state, the figures, the words and the sound that was played. No DOM here.

import { SpeechError } from "../api/errors.js";
import { SpeechSession } from "../api/session.js";
import { nextReserveSeconds, Phase } from "../player/playback.js";
import { SeekablePlayer } from "../player/seekable.js";
import { t } from "../texts.js";
import { freshMetrics } from "./figures.js";
import { planReserve, restOf, slowRate } from "./pace.js";
import { Position } from "./position.js";
import { Recording } from "./recording.js";
import { BUSY, SOUNDING, State } from "./states.js";
import { Turn } from "./turn.js";
import { WordTrack } from "./words.js";

const START_RESERVE_SECONDS = 0.08;
const DEVICE_PATIENCE_MS = 3_000;

/**
 * Dispatches "begin" with each turn, "state", "metrics", and "samples" (detail: the Int16Array that
 * was received).
 */
export class Speaker extends EventTarget {
  state = State.IDLE;
  error = null; // a sentence, in state ERROR, and before it while the sound that came is played
  metrics = freshMetrics(START_RESERVE_SECONDS);
  words = new WordTrack();
  #player = new SeekablePlayer(1);
  #session;
  #turn = null; // the current one: late callbacks of an older one are ignored
  #played = new Recording();
  #replayed = null; // the samples that a replay plays
  #soughtFrame = null; // where it goes on after a pause, if the listener moved
  #furthestFrame = null; // that was heard, once the listener has moved
  #earlierGaps = []; // before that
  #reserveSeconds = START_RESERVE_SECONDS;
  #askedAt = 0;
  #position = new Position();
  #heardFrames = 0; // played when the sound under way was received

  constructor(server) {
    super();
    this.#session = new SpeechSession(server);
  }

  get busy() {
    return BUSY.has(this.state);
  }

  get replaying() {
    return this.#replayed !== null;
  }

  /** Whether sound is heard, or may be at any moment. */
  get sounding() {
    return SOUNDING.has(this.state);
  }

  /** Whether the stream broke in a way that `resume` can continue. */
  get resumable() {
    return Boolean(this.#turn?.resumable);
  }

  /** Speaks `text`. Call it from the click. What is still playing is cut off. */
  speak({ text, ...config }) {
    this.#start(Turn.of(text, config), State.WAITING);
    this.#request();
  }

  /** Continues a turn whose stream broke, at the sample where it broke. Call it from the click. */
  resume() {
    const { sampleRate } = this.metrics;
    this.#turn.resume();
    this.error = null;
    this.words = this.words.before(this.#turn.resumesAt(sampleRate));
    this.#player.unlock(sampleRate);
    this.#request();
    this.#enter(this.busy ? this.state : State.WAITING);
  }

  /** Opens a turn whose text follows with `write`. Call it from the click. */
  listen(config) {
    this.#start(new Turn(config, true), State.LISTENING);
  }

  /** More of the text; `base` is where it stands in the listener's text, in UTF-16 units. */
  write(text, base) {
    if (!this.#turn.requested) this.#request();
    this.#turn.write(text, base);
    this.#session.write(text);
    this.#noteRequest();
  }

  /** Commits everything that was written, so that it is spoken. */
  commit() {
    this.#turn.commit();
    this.#session.commit();
    this.#noteRequest();
  }

  /** No more text will be written: the turn ends when all of it has been heard. */
  close() {
    this.#turn.close();
    if (this.#turn.complete) this.#leave();
  }

  /** Plays the last turn again, as it was heard. Call it from the click. */
  replay(fromSeconds = 0) {
    const words = this.words.all;
    this.#playAgain(this.recording(), fromSeconds, { metrics: this.metrics, words });
  }

  /** Goes to a place of what has come, or of what was heard last. Call it from the click. */
  seek(seconds) {
    const { metrics } = this;
    if (!this.busy) {
      if (metrics.playedFrames > 0) this.replay(seconds);
      return;
    }
    if (metrics.receivedFrames === 0) return;
    const frame = Math.min(Math.round(seconds * metrics.sampleRate), metrics.receivedFrames);
    this.#furthestFrame = Math.max(this.#furthestFrame ?? 0, metrics.playedFrames);
    this.#earlierGaps = metrics.gaps;
    this.#position = new Position(frame / metrics.sampleRate);
    metrics.playedFrames = frame;
    if (this.state === State.PAUSED) this.#soughtFrame = frame;
    else this.#goTo(frame);
    this.#measured();
  }

  #goTo(frame) {
    this.#soughtFrame = null;
    this.#player.seek(frame);
    this.#enter(State.PLAYING);
  }

  set volume(volume) {
    this.#player.volume = volume;
  }

  /** How fast it is heard, at the same pitch: 1 as it was spoken. */
  get rate() {
    return this.#player.rate;
  }

  set rate(rate) {
    this.#player.rate = rate;
  }

  /** Plays an earlier turn from `fromSeconds` on. Call it from the click. */
  play({ samples, sampleRate, channels, words }, fromSeconds) {
    const metrics = { ...freshMetrics(this.#reserveSeconds), sampleRate, channels };
    this.#playAgain(samples, fromSeconds, { metrics, words });
  }

  #playAgain(recording, fromSeconds, { metrics, words }) {
    const { sampleRate, channels } = metrics;
    this.#start(new Turn(), State.BUFFERING);
    this.#replayed = recording;
    this.words = new WordTrack(words);
    const kept = { ...metrics, playedFrames: 0, bufferedSeconds: 0, stopped: false, gaps: [] };
    this.metrics = { ...kept, silenceSeconds: null, receivedFrames: recording.length / channels };
    this.#openPlayer({ sample_rate: sampleRate, channels });
    this.dispatchEvent(new CustomEvent("samples", { detail: recording.slice() }));
    this.#player.push(recording.slice());
    this.#player.end();
    if (fromSeconds > 0) this.seek(fromSeconds);
    this.#watchDevice();
  }

  stop() {
    if (!this.busy) return;
    this.error = null;
    this.#turn.broken = false;
    this.#session.cancel();
    this.#player.stop();
    // Without sound under way, or without a working device, nothing will report the end.
    const heard = this.state === State.PLAYING || this.state === State.STARVED;
    if (!heard || this.#player.stalled) this.#finish(State.STOPPED);
    else this.metrics.stopped = true;
  }

  /** Holds the sound where it is; more of it may arrive. */
  pause() {
    if (!this.sounding) return;
    this.#player.pause();
    this.#position.hold();
    this.#enter(State.PAUSED);
  }

  /** After `pause`. */
  unpause() {
    if (this.state !== State.PAUSED) return;
    this.#player.unlock(this.metrics.sampleRate);
    if (this.#soughtFrame !== null) {
      this.#goTo(this.#soughtFrame);
      return;
    }
    this.#enter(this.metrics.playedFrames > this.#heardFrames ? State.PLAYING : State.BUFFERING);
  }

  /** Exactly what was played last, without the silence around and inside it; interleaved. */
  capturedPcm() {
    return this.#played.samples;
  }

  /** What the last turn that was spoken played, up to where it was heard at most. */
  recording() {
    if (this.#replayed !== null) return this.#replayed;
    if (this.#furthestFrame === null) return this.capturedPcm();
    const heard = Math.max(this.#furthestFrame, this.metrics.playedFrames);
    return this.#player.kept.slice(0, heard * this.metrics.channels);
  }

  /** How much of the turn has been played. */
  get playedSeconds() {
    return this.#position.seconds;
  }

  /** How much of it has left the loudspeaker. */
  get heardSeconds() {
    const latency = this.busy ? this.#player.outputLatencySeconds : 0;
    return Math.max(0, this.playedSeconds - latency);
  }

  #start(turn, state) {
    if (this.busy) this.#session.cancel();
    this.#player.stop();
    this.#played = new Recording();
    this.#replayed = null;
    this.#soughtFrame = null;
    this.#furthestFrame = null;
    this.#earlierGaps = [];
    this.#heardFrames = 0;
    this.#position = new Position();
    this.error = null;
    this.words = new WordTrack();
    const { sampleRate } = this.metrics; // the stream's own is known only at its start
    this.metrics = { ...freshMetrics(this.#reserveSeconds), sampleRate };
    this.#turn = turn;
    this.#player.unlock(sampleRate);
    this.#askedAt = performance.now() / 1000;
    this.dispatchEvent(new Event("begin"));
    this.#enter(state);
  }

  #request() {
    this.#turn.request(this.#session, this.#callbacks());
  }

  // Of the current turn; ignored once another one has replaced it.
  #current(handle) {
    const turn = this.#turn;
    return (value) => {
      if (this.#turn === turn) handle(value);
    };
  }

  #callbacks() {
    const current = (handle) => this.#current(handle);
    const callbacks = {
      started: current((message) => this.#begin(message)),
      audio: current((samples) => this.#receive(samples)),
      words: current((message) => this.#place(message.words)),
      finished: current((message) => this.#complete(message)),
      spoken: current(() => this.#spoken()),
      failed: current((error) => this.#break(error)),
    };
    if (this.#turn.open) callbacks.dropped = current(() => this.#turn.drop());
    return callbacks;
  }

  #begin(message) {
    if (!this.#turn.playing) this.#openPlayer(message);
    else if (!this.#turn.resuming) this.#player.wake();
    this.#turn.begin();
  }

  #openPlayer(message) {
    const { sample_rate: sampleRate, channels = 1 } = message;
    const current = (handle) => this.#current(handle);
    this.#turn.playing = true;
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

  #receive(received) {
    const { metrics } = this;
    const samples = this.#turn.fresh(received, metrics.channels);
    if (samples.length === 0) return;
    if (this.#turn.resuming) {
      this.#turn.resuming = false;
      this.#player.wake();
    }
    if (this.state === State.WAITING || this.state === State.LISTENING) {
      metrics.ttfpSeconds ??= performance.now() / 1000 - this.#askedAt;
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
      const paused = this.state === State.PAUSED;
      if (turn !== this.#turn || paused || !this.#player.stalled) return;
      this.#session.cancel();
      this.#fail(new SpeechError(t("The browser has not opened a sound device.")));
    }, DEVICE_PATIENCE_MS);
  }

  #place(words) {
    this.words.add(words, this.#turn.place(this.metrics.sampleRate));
  }

  #complete(message) {
    this.metrics.server = message;
    if (this.#turn.typed) this.#player.rest();
    this.#measured();
  }

  #spoken() {
    this.#turn.spoken();
    if (!this.#turn.complete) return;
    if (this.metrics.receivedFrames === 0) {
      this.#fail(new SpeechError(t("The server sent no sound for this text.")));
      return;
    }
    this.#leave();
  }

  #leave() {
    this.#session.leave();
    if (this.#turn.playing) this.#player.end();
    else this.#finish(State.IDLE);
  }

  #noteRequest() {
    if (this.state === State.LISTENING) this.#askedAt = performance.now() / 1000;
  }

  #hear(seconds) {
    if (this.replaying) return;
    this.metrics.audibleSeconds ??= seconds - this.#askedAt;
    this.metrics.outputLatencySeconds = this.#player.outputLatencySeconds;
    this.#measured();
  }

  #note(report) {
    const { metrics } = this;
    const { phase } = report;
    this.#played.add(report.played);
    if (this.#soughtFrame !== null) return; // of before the listener moved
    const base = this.#player.baseFrame;
    const playedFrames = base + report.playedFrames;
    const gaps = [...this.#earlierGaps, ...report.gaps.map((gap) => ({ ...gap, atFrame: base + gap.atFrame }))];
    gaps.sort((one, other) => one.atFrame - other.atFrame);
    const starvedFrames = gaps.reduce((sum, { frames }) => sum + frames, 0);
    const underruns = gaps.length;
    const bufferedSeconds = report.bufferedFrames / metrics.sampleRate;
    Object.assign(metrics, { playedFrames, starvedFrames, underruns, gaps, bufferedSeconds });
    if (this.state !== State.PAUSED) {
      const seconds = playedFrames / metrics.sampleRate;
      const moving = phase === Phase.PLAYING;
      this.#position.report({ seconds, bufferedSeconds, moving, rate: this.rate });
      this.#follow(phase, playedFrames > this.#heardFrames);
    }
    this.#measured();
  }

  #follow(phase, heard) {
    if (this.state === State.BUFFERING && heard) this.#enter(State.PLAYING);
    if (this.state === State.STARVED && phase !== Phase.STARVED) this.#enter(State.PLAYING);
    if (this.state !== State.PLAYING) return;
    if (phase === Phase.STARVED) this.#starve();
    else if (phase === Phase.RESTING) this.#rest();
  }

  #starve() {
    const { metrics } = this;
    // Between typed clauses, and while a stream was broken, the server had nothing to send.
    const firstAt = this.#askedAt + metrics.ttfpSeconds;
    metrics.receivingSeconds = this.#turn.steady ? performance.now() / 1000 - firstAt : null;
    metrics.waitSeconds = this.#collect(slowRate(metrics));
    this.#enter(State.STARVED);
  }

  // From a server that is slower than speech, enough to play the rest in one go; returns how long
  // that takes, or null.
  #collect(rate) {
    const { receivedFrames, sampleRate } = this.metrics;
    const text = this.#turn.text;
    const rest = rate && restOf(text, this.words.all, receivedFrames / sampleRate);
    if (!rest) return null;
    const { reserveSeconds, waitSeconds } = planReserve(rest, rate);
    this.#player.reserve(Math.max(this.#reserveSeconds, reserveSeconds));
    return waitSeconds;
  }

  // All that has come has been played, and more may follow.
  #rest() {
    if (this.#turn.broken) this.#finish(State.ERROR);
    else if (this.#turn.resuming) this.#enter(State.WAITING);
    else if (this.#turn.typed) this.#enter(this.#turn.open ? State.LISTENING : State.WAITING);
  }

  #end(silentAfter) {
    this.metrics.silenceSeconds = silentAfter;
    this.#finish(this.metrics.stopped ? State.STOPPED : State.DONE);
  }

  // What has arrived is played to its end, with the error beside it.
  #break(error) {
    if (!this.#turn.playing || this.metrics.receivedFrames === 0) {
      this.#fail(error);
      return;
    }
    this.error = error.message;
    this.#turn.break();
    this.#player.halt();
    const played = this.state === State.WAITING || this.state === State.LISTENING;
    if (played) this.#finish(State.ERROR);
    else this.#enter(this.state);
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
    if (!this.#turn?.broken) this.#turn = null;
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

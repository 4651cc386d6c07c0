// The page's side of the sound: owns the AudioContext and forwards PCM to its outlet.

import { openOutlet } from "./outlet.js";
import { Phase } from "./playback.js";

const FADE_SECONDS = 0.02;
const STAMP_SECONDS = 0.5; // an output timestamp older than that is of before a pause
const IDLE_SUSPEND_MS = 30_000; // an open context keeps the sound hardware awake

export class Player {
  #context = null;
  #wantedRate = 0; // the device may run at another; the renderer then resamples
  #outlet = null;
  #waiting = []; // messages from before the outlet was open
  #turn = 0;
  #idleTimer = null;
  #paused = false;
  #listener = null;
  #stoppedAt = null; // on the context's clock
  #volume;
  #gain = null;
  #rate = 1;
  #device = "";

  /** @param {number | null} volume 0 to 1; null: it is never changed */
  constructor(volume = null) {
    this.#volume = volume;
  }

  set volume(volume) {
    this.#volume = volume;
    if (this.#gain !== null) this.#gain.gain.value = volume;
  }

  /** Seconds of sound in a second: faster or slower at the same pitch. */
  get rate() {
    return this.#rate;
  }

  set rate(rate) {
    this.#rate = rate;
    if (this.#context !== null) this.#post({ type: "rate", rate });
  }

  /** The id of the device that plays, where the browser can choose; empty: the system's choice. */
  set device(id) {
    this.#device = id;
    this.#chooseDevice();
  }

  // One that is gone leaves the sound where it is.
  #chooseDevice() {
    this.#context?.setSinkId?.(this.#device).catch(() => {});
  }

  /**
   * Prepares the sound device. Call it from the click itself: browsers let a context start only
   * while they handle a user's action.
   */
  unlock(sampleRate) {
    this.#keepAwake();
    this.#paused = false;
    if (this.#wantedRate !== sampleRate) this.#create(sampleRate);
    // Not awaited: it settles only once the device runs. Without a device there is no sound, and
    // the stall shows in the meters.
    void this.#context.resume();
  }

  /**
   * Starts a turn; sound follows once `reserveSeconds` of it are there.
   * @param {{audible(seconds), report(report), ended(silentAfter)}} listener `audible` is given
   *   the time on performance.now()'s clock, in seconds, at which the first sound left the
   *   loudspeaker; `ended` the seconds from `stop` to silence, or null if it was not stopped
   */
  begin({ sampleRate, channels, reserveSeconds, listener }) {
    this.unlock(sampleRate);
    this.#turn += 1;
    this.#listener = listener;
    this.#stoppedAt = null;
    const fadeSeconds = FADE_SECONDS;
    const { rate } = this;
    this.#post({ type: "begin", sampleRate, channels, reserveSeconds, fadeSeconds, rate });
  }

  /** Hands over `samples` (Int16Array), whose memory then belongs to the audio thread. */
  push(samples) {
    this.#post({ type: "pcm", samples }, [samples.buffer]);
  }

  /** Collects so much sound before it goes on, while it waits for some. */
  reserve(seconds) {
    this.#post({ type: "reserve", seconds });
  }

  /** The utterance is complete; silence until `wake` is no underrun. */
  rest() {
    this.#post({ type: "rest" });
  }

  /** The stream broke: what was pushed is played; silence after it, until `wake`, is no underrun. */
  halt() {
    this.#post({ type: "halt" });
  }

  wake() {
    if (!this.#paused) this.unlock(this.#wantedRate);
    this.#post({ type: "wake" });
  }

  /** Holds the sound where it is, until `unlock`. */
  pause() {
    this.#paused = true;
    void this.#context?.suspend();
  }

  end() {
    this.#post({ type: "end" });
  }

  /** Fades out; `ended` follows when silence is reached. */
  stop() {
    this.#stoppedAt ??= this.#context?.currentTime ?? null;
    this.#post({ type: "stop" });
  }

  /** True when the device is not taking any sound, so that `ended` could not come. */
  get stalled() {
    return this.#context?.state !== "running" || this.#outlet === null;
  }

  /** Hz at which the device takes sound; null before the first click. */
  get deviceRate() {
    return this.#context?.sampleRate ?? null;
  }

  /** From a sample's rendering to its leaving the loudspeaker, as far as the browser knows. */
  get outputLatencySeconds() {
    return this.#context === null ? 0 : outputLatencyOf(this.#context);
  }

  #create(sampleRate) {
    void this.#context?.close();
    this.#outlet = null;
    this.#wantedRate = sampleRate;
    const context = openContext(sampleRate);
    this.#context = context;
    if (this.#device !== "") this.#chooseDevice();
    const opened = (outlet) => {
      if (context !== this.#context) return;
      this.#outlet = outlet;
      for (const [message, transfer] of this.#waiting.splice(0)) outlet.send(message, transfer);
    };
    const failed = (error) => {
      // A context that was replaced meanwhile is closed, and its worklet is never loaded.
      if (context === this.#context) throw error;
    };
    const receive = (message) => this.#receive(message);
    void openOutlet(context, receive, (node) => this.#connect(node)).then(opened, failed);
  }

  // To the device, through the volume where there is one.
  #connect(node) {
    const { context } = node;
    if (this.#volume === null) {
      node.connect(context.destination);
      return;
    }
    this.#gain = context.createGain();
    this.volume = this.#volume;
    node.connect(this.#gain).connect(context.destination);
  }

  #keepAwake() {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = null;
  }

  #post(message, transfer = []) {
    const numbered = { ...message, turn: this.#turn };
    if (this.#outlet === null) this.#waiting.push([numbered, transfer]);
    else this.#outlet.send(numbered, transfer);
  }

  #receive(message) {
    if (message.turn !== this.#turn) return;
    if (message.type === "audible") {
      this.#listener.audible(leavesAt(this.#context, message.contextTime));
      return;
    }
    this.#listener.report(message);
    if (message.ended || message.phase === Phase.RESTING) {
      this.#idleTimer ??= setTimeout(() => void this.#context.suspend(), IDLE_SUSPEND_MS);
    } else {
      this.#keepAwake();
    }
    if (!message.ended) return;
    this.#listener.ended(this.#stoppedAt === null ? null : message.contextTime - this.#stoppedAt);
  }
}

// When the frame that was rendered for `contextTime` leaves the loudspeaker, in seconds on
// performance.now()'s clock.
function leavesAt(context, contextTime) {
  const now = performance.now() / 1000;
  const stamp = readingMayHang() ? null : context.getOutputTimestamp();
  const stampedAt = (stamp?.performanceTime ?? 0) / 1000;
  // A device that has just been opened or woken has not said yet where it is.
  if (stampedAt > 0 && now - stampedAt < STAMP_SECONDS) {
    return stampedAt + contextTime - stamp.contextTime;
  }
  return now + contextTime - context.currentTime + outputLatencyOf(context);
}

// WHY: for its latency and timestamps Firefox holds a lock that its audio thread takes, and asks the
// sound server, which may be waiting for that thread: with PulseAudio the page then hangs. SCOPE:
// there the word that is marked runs ahead by the device's latency. It can go when Firefox answers
// at once.
function outputLatencyOf(context) {
  return (readingMayHang() ? 0 : context.outputLatency) || context.baseLatency || 0;
}

function readingMayHang() {
  return navigator.userAgent.includes("Firefox/");
}

// At the sound's own rate no sample changes on its way; where the device refuses, at the device's.
function openContext(sampleRate) {
  try {
    return new AudioContext({ sampleRate, latencyHint: "interactive" });
  } catch (error) {
    if (error.name !== "NotSupportedError") throw error;
    return new AudioContext({ latencyHint: "interactive" });
  }
}

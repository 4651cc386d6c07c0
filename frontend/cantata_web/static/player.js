// The page's side of the audio thread: owns the AudioContext and forwards PCM to the worklet.

const FADE_SECONDS = 0.02;
const IDLE_SUSPEND_MS = 30_000; // an open context keeps the sound hardware awake

export class Player {
  #context = null;
  #node = null;
  #waiting = []; // messages from before the worklet was loaded
  #turn = 0;
  #idleTimer = null;
  #listener = null;

  /**
   * Prepares the sound device. Call it from the click itself: browsers let a context start only
   * while they handle a user's action.
   */
  unlock(sampleRate) {
    clearTimeout(this.#idleTimer);
    if (this.#context?.sampleRate !== sampleRate) this.#create(sampleRate);
    // Not awaited: it settles only once the device runs. Without a device there is no sound, and
    // the stall shows in the meters.
    void this.#context.resume();
  }

  /**
   * Starts an utterance; sound follows once `reserveSeconds` of it are there.
   * @param {{audible(seconds), report(report), ended()}} listener `audible` is given the time on
   *   performance.now()'s clock, in seconds, at which the first sound left the loudspeaker
   */
  begin({ sampleRate, reserveSeconds, listener }) {
    this.unlock(sampleRate);
    this.#turn += 1;
    this.#listener = listener;
    this.#post({
      type: "begin",
      reserveFrames: Math.round(reserveSeconds * sampleRate),
      fadeFrames: Math.round(FADE_SECONDS * sampleRate),
    });
  }

  /** Hands over `samples` (Int16Array), whose memory then belongs to the audio thread. */
  push(samples) {
    this.#post({ type: "pcm", samples }, [samples.buffer]);
  }

  end() {
    this.#post({ type: "end" });
  }

  /** Fades out; `ended` follows when silence is reached. */
  stop() {
    this.#post({ type: "stop" });
  }

  /** True when the device is not taking any sound, so that `ended` could not come. */
  get stalled() {
    return this.#context?.state !== "running" || this.#node === null;
  }

  /** From a sample's rendering to its leaving the loudspeaker, as far as the browser knows. */
  get outputLatencySeconds() {
    return this.#context?.outputLatency || this.#context?.baseLatency || 0;
  }

  #create(sampleRate) {
    void this.#context?.close();
    this.#node = null;
    const context = new AudioContext({ sampleRate, latencyHint: "interactive" });
    if (context.audioWorklet === undefined) {
      throw new Error(
        "Browsers play live sound only on secure pages: open this one as localhost or over HTTPS.",
      );
    }
    this.#context = context;
    void context.audioWorklet.addModule(new URL("worklet.js", import.meta.url)).then(() => {
      if (context !== this.#context) return;
      this.#node = new AudioWorkletNode(context, "cantata-player", {
        numberOfInputs: 0,
        outputChannelCount: [1],
      });
      this.#node.port.onmessage = ({ data }) => this.#receive(data);
      this.#node.connect(context.destination);
      for (const [message, transfer] of this.#waiting.splice(0)) {
        this.#node.port.postMessage(message, transfer);
      }
    });
  }

  #post(message, transfer = []) {
    const numbered = { ...message, turn: this.#turn };
    if (this.#node === null) this.#waiting.push([numbered, transfer]);
    else this.#node.port.postMessage(numbered, transfer);
  }

  #receive(message) {
    if (message.turn !== this.#turn) return;
    if (message.type === "audible") {
      const agoSeconds = this.#context.currentTime - message.contextTime;
      this.#listener.audible(
        performance.now() / 1000 - agoSeconds + this.outputLatencySeconds,
      );
      return;
    }
    this.#listener.report(message);
    if (!message.ended) return;
    this.#idleTimer = setTimeout(() => void this.#context.suspend(), IDLE_SUSPEND_MS);
    this.#listener.ended();
  }
}

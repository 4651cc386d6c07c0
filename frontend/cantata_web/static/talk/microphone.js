// The microphone as packets of 16-bit PCM.

import { openMicrophone } from "../clone/microphone.js";

// An open loudspeaker beside the microphone must not interrupt the answer.
const ASKED = { channelCount: 1, echoCancellation: true, noiseSuppression: true };

export class Microphone {
  /** The id of the device to open; empty: the system's choice. */
  device = "";
  #stream = null;
  #context = null;
  #starts = 0;

  /**
   * Resolves with true once it hears, or with false if it was closed meanwhile; rejects with a
   * SpeechError where it may not. Call it from the click.
   * @param {{heard(samples), ended()}} listener `heard` is given packets of `PACKET_FRAMES`
   *   samples; `ended` is called if the microphone is taken away
   */
  async open({ heard, ended }) {
    this.#starts += 1;
    const start = this.#starts;
    const stream = await openMicrophone(this.#asked);
    if (start !== this.#starts) {
      release(stream);
      return false;
    }
    this.#stream = stream;
    for (const track of stream.getTracks()) track.addEventListener("ended", ended);
    const context = new AudioContext({ latencyHint: "interactive" });
    this.#context = context;
    try {
      await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
    } catch (error) {
      // A context that was closed meanwhile never loads it.
      if (start === this.#starts) throw error;
    }
    if (start !== this.#starts) return false;
    const node = new AudioWorkletNode(context, "cantata-microphone", { channelCount: 1 });
    node.port.onmessage = ({ data }) => {
      if (start === this.#starts) heard(data);
    };
    // It puts out silence; only what leads to the loudspeaker is run.
    context.createMediaStreamSource(stream).connect(node).connect(context.destination);
    void context.resume();
    return true;
  }

  get #asked() {
    return this.device === "" ? ASKED : { ...ASKED, deviceId: { exact: this.device } };
  }

  close() {
    this.#starts += 1;
    if (this.#stream !== null) release(this.#stream);
    void this.#context?.close();
    this.#stream = this.#context = null;
  }
}

function release(stream) {
  for (const track of stream.getTracks()) track.stop();
}

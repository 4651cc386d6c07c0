// The microphone as packets of 16-bit PCM.

import { openMicrophone } from "../clone/microphone.js";
import { Packets } from "./packets.js";

// An open loudspeaker beside the microphone must not interrupt the answer.
const ASKED = { channelCount: 1, echoCancellation: true, noiseSuppression: true };

/** Dispatches "open" when it has opened its device, or another one. */
export class Microphone extends EventTarget {
  /** The id of the device to open; empty: the system's choice. */
  device = "";
  /** What it hears; null while it is closed. */
  stream = null;
  #packets = null;
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
    this.stream = stream;
    for (const track of stream.getTracks()) track.addEventListener("ended", ended);
    this.#packets = new Packets();
    const opened = await this.#packets.open(stream, heard);
    if (opened) this.dispatchEvent(new Event("open"));
    return opened;
  }

  get #asked() {
    return this.device === "" ? ASKED : { ...ASKED, deviceId: { exact: this.device } };
  }

  close() {
    this.#starts += 1;
    if (this.stream !== null) release(this.stream);
    this.#packets?.close();
    this.stream = this.#packets = null;
  }
}

function release(stream) {
  for (const track of stream.getTracks()) track.stop();
}

// The sound of a stream as packets of 16-bit PCM, at the rate of a talk.

export class Packets {
  #context = new AudioContext({ latencyHint: "interactive" });
  #closed = false;

  /**
   * Resolves with whether it hears: not if it was closed meanwhile.
   * @param {MediaStream} stream
   * @param {(samples: Int16Array) => void} heard is given packets of `PACKET_FRAMES` samples
   */
  async open(stream, heard) {
    const context = this.#context;
    try {
      await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
    } catch (error) {
      // A context that was closed meanwhile never loads it.
      if (!this.#closed) throw error;
    }
    if (this.#closed) return false;
    const node = new AudioWorkletNode(context, "cantata-microphone", { channelCount: 1 });
    node.port.onmessage = ({ data }) => {
      if (!this.#closed) heard(data);
    };
    // It puts out silence; only what leads to the loudspeaker is run.
    context.createMediaStreamSource(stream).connect(node).connect(context.destination);
    void context.resume();
    return true;
  }

  close() {
    this.#closed = true;
    void this.#context.close();
  }
}

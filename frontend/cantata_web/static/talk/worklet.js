// The audio thread's side of the microphone.

import { Capture } from "./capture.js";

class CantataMicrophone extends AudioWorkletProcessor {
  constructor() {
    super();
    const post = (samples) => this.port.postMessage(samples, [samples.buffer]);
    this.capture = new Capture(sampleRate, post);
  }

  process([[heard]]) {
    if (heard !== undefined) this.capture.push(heard);
    return true;
  }
}

registerProcessor("cantata-microphone", CantataMicrophone);

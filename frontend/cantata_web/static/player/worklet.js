// The audio thread.

import { Renderer } from "./renderer.js";

class CantataPlayer extends AudioWorkletProcessor {
  constructor() {
    super();
    const post = (message, transfer) => this.port.postMessage(message, transfer);
    this.renderer = new Renderer(post, sampleRate);
    this.port.onmessage = ({ data }) => this.renderer.receive(data);
  }

  process(_inputs, [block]) {
    this.renderer.render(block, currentTime);
    return true;
  }
}

registerProcessor("cantata-player", CantataPlayer);

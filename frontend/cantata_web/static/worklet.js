// The audio thread.

import { Renderer } from "./renderer.js";

class CantataPlayer extends AudioWorkletProcessor {
  constructor() {
    super();
    this.renderer = new Renderer((message, transfer) => this.port.postMessage(message, transfer));
    this.port.onmessage = ({ data }) => this.renderer.receive(data);
  }

  process(_inputs, [[block]]) {
    this.renderer.render(block, currentTime);
    return true;
  }
}

registerProcessor("cantata-player", CantataPlayer);

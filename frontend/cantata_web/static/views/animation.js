// Drawing while something moves: some 20 times a second, not 60, because the page often shares its
// processor with the server.

const REST_MS = 40;

export class Animation {
  running = false;
  #draw;

  /** @param {() => boolean} draw returns whether there will be more to draw */
  constructor(draw) {
    this.#draw = draw;
  }

  /** Draws from the next frame on, until `draw` returns false. */
  start() {
    if (this.running) return;
    this.running = true;
    requestAnimationFrame(() => this.#frame());
  }

  #frame() {
    this.running = this.#draw();
    if (this.running) setTimeout(() => requestAnimationFrame(() => this.#frame()), REST_MS);
  }
}

// How loud a recording is, along its length.

export class LevelLine {
  #canvas;
  #context;

  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
  }

  clear() {
    this.#canvas.width = this.#canvas.clientWidth;
    this.#canvas.height = this.#canvas.clientHeight;
  }

  /** @param {number} peak 0..1 @param {number} place 0..1, of the line's width */
  append(peak, place) {
    const { width, height } = this.#canvas;
    const tall = Math.max(2, Math.sqrt(peak) * height);
    this.#context.fillStyle = getComputedStyle(this.#canvas).color;
    this.#context.fillRect(place * width, (height - tall) / 2, 2, tall);
  }
}

// The drawing of an utterance: what has arrived in a quiet colour, what has been played in a bright
// one. The whole utterance always fits: when the bars run out, neighbours merge.

const BAR_SECONDS = 0.02;
const BAR_PIXELS = 3;
const GAP_PIXELS = 2;
const LEAST_HEIGHT = 2;

export class Waveform {
  #canvas;
  #context;
  #peaks = []; // one per BAR_SECONDS, 0..1
  #partial = { peak: 0, frames: 0 };
  #barFrames = 480;
  #playedFrames = 0;

  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    new ResizeObserver(() => this.#resize()).observe(canvas);
  }

  clear(sampleRate) {
    this.#peaks = [];
    this.#partial = { peak: 0, frames: 0 };
    this.#barFrames = Math.round(sampleRate * BAR_SECONDS);
  }

  append(samples) {
    const partial = this.#partial;
    for (const sample of samples) {
      partial.peak = Math.max(partial.peak, Math.abs(sample) / 32768);
      partial.frames += 1;
      if (partial.frames === this.#barFrames) {
        this.#peaks.push(partial.peak);
        partial.peak = 0;
        partial.frames = 0;
      }
    }
  }

  /** @param {number} playedFrames everything before it is drawn as played */
  draw(playedFrames) {
    this.#playedFrames = playedFrames;
    const { width, height } = this.#canvas;
    const style = getComputedStyle(this.#canvas);
    const scale = window.devicePixelRatio || 1;
    const step = (BAR_PIXELS + GAP_PIXELS) * scale;
    const places = Math.max(1, Math.floor(width / step));
    let group = 1;
    while (this.#peaks.length > places * group) group *= 2;

    this.#context.clearRect(0, 0, width, height);
    const playedBars = playedFrames / this.#barFrames / group;
    for (let place = 0; place < places; place += 1) {
      const peak = this.#peak(place * group, group);
      const arrived = place < playedBars ? "--wave-played" : "--wave-ahead";
      const kind = peak === null ? "--wave-empty" : arrived;
      // The square root lets quiet consonants show beside loud vowels.
      const reach = peak === null ? 0 : Math.sqrt(peak) * (height - 8 * scale);
      const tall = Math.max(LEAST_HEIGHT * scale, reach);
      this.#context.fillStyle = style.getPropertyValue(kind);
      this.#context.fillRect(place * step, (height - tall) / 2, BAR_PIXELS * scale, tall);
    }
  }

  #peak(from, count) {
    if (from >= this.#peaks.length) return null;
    let peak = 0;
    for (const value of this.#peaks.slice(from, from + count)) peak = Math.max(peak, value);
    return peak;
  }

  #resize() {
    const scale = window.devicePixelRatio || 1;
    this.#canvas.width = Math.max(1, Math.round(this.#canvas.clientWidth * scale));
    this.#canvas.height = Math.max(1, Math.round(this.#canvas.clientHeight * scale));
    this.draw(this.#playedFrames);
  }
}

// The drawing of a turn on a staff of five lines: what has arrived in a quiet colour, what has been
// played in a bright one. The whole turn always fits: when the bars run out, neighbours merge.

const BAR_SECONDS = 0.02;
const BAR_PIXELS = 3;
const GAP_PIXELS = 2;
const STAFF_LINES = 5;

export class Waveform {
  #canvas;
  #context;
  #peaks = []; // one per BAR_SECONDS, 0..1
  #partial = { peak: 0, samples: 0 };
  #playedSeconds = 0;

  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    new ResizeObserver(() => this.#resize()).observe(canvas);
  }

  clear() {
    this.#peaks = [];
    this.#partial = { peak: 0, samples: 0 };
  }

  /** @param {number} samplesPerSecond of all channels together */
  append(samples, samplesPerSecond) {
    const partial = this.#partial;
    const barSamples = Math.round(samplesPerSecond * BAR_SECONDS);
    for (const sample of samples) {
      partial.peak = Math.max(partial.peak, Math.abs(sample) / 32768);
      partial.samples += 1;
      if (partial.samples === barSamples) {
        this.#peaks.push(partial.peak);
        partial.peak = 0;
        partial.samples = 0;
      }
    }
  }

  /** @param {number} playedSeconds everything before it is drawn as played */
  draw(playedSeconds) {
    this.#playedSeconds = playedSeconds;
    const { width, height } = this.#canvas;
    const style = getComputedStyle(this.#canvas);
    const colour = (name) => style.getPropertyValue(name);
    const scale = window.devicePixelRatio || 1;
    const step = (BAR_PIXELS + GAP_PIXELS) * scale;
    const places = Math.max(1, Math.floor(width / step));
    let group = 1;
    while (this.#peaks.length > places * group) group *= 2;

    this.#context.clearRect(0, 0, width, height);
    this.#drawStaff(width, height, scale, colour("--wave-empty"));
    const playedBars = playedSeconds / BAR_SECONDS / group;
    const bars = Math.ceil(this.#peaks.length / group);
    for (let place = 0; place < bars; place += 1) {
      // The square root lets quiet consonants show beside loud vowels.
      const reach = Math.sqrt(this.#peak(place * group, group)) * (height - 8 * scale);
      const tall = Math.max(2 * scale, reach);
      this.#context.fillStyle = colour(place < playedBars ? "--wave-played" : "--wave-ahead");
      this.#context.beginPath();
      this.#context.roundRect(
        place * step, (height - tall) / 2, BAR_PIXELS * scale, tall, (BAR_PIXELS * scale) / 2,
      );
      this.#context.fill();
    }
  }

  #drawStaff(width, height, scale, colour) {
    this.#context.fillStyle = colour;
    for (let line = 0; line < STAFF_LINES; line += 1) {
      const y = Math.round((height * (line + 1)) / (STAFF_LINES + 1));
      this.#context.fillRect(0, y, width, scale);
    }
  }

  #peak(from, count) {
    let peak = 0;
    for (let i = from; i < Math.min(from + count, this.#peaks.length); i += 1) {
      peak = Math.max(peak, this.#peaks[i]);
    }
    return peak;
  }

  #resize() {
    const scale = window.devicePixelRatio || 1;
    this.#canvas.width = Math.max(1, Math.round(this.#canvas.clientWidth * scale));
    this.#canvas.height = Math.max(1, Math.round(this.#canvas.clientHeight * scale));
    this.draw(this.#playedSeconds);
  }
}

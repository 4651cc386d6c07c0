// The drawing of a turn on a staff of five lines: what has arrived in a quiet colour, what has been
// played in a bright one, and where the sound was waited for, a block. The left channel reaches up
// from the middle, the right one down. The whole turn always fits: when the bars run out,
// neighbours merge.

import { columns, Peaks, soundBefore, withGaps } from "./timeline.js";

const BAR_SECONDS = 0.02;
const BAR_PIXELS = 3;
const GAP_PIXELS = 2;
const STAFF_LINES = 5;
const WAITED_SHARE = 0.7; // of the height

export class Waveform {
  #canvas;
  #context;
  #peaks = null; // known with the first samples
  #playedSeconds = 0;
  #gaps = [];
  #cells = []; // as drawn
  #pixelsPerCell = 1; // of the screen

  /** @param {(seconds: number) => void} seek somebody clicked on the sound at that place */
  constructor(canvas, seek = () => {}) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    new ResizeObserver(() => this.#resize()).observe(canvas);
    canvas.addEventListener("click", ({ offsetX }) => {
      const place = Math.floor(offsetX / this.#pixelsPerCell);
      if (place < this.#cells.length) seek(soundBefore(this.#cells, place) * BAR_SECONDS);
    });
  }

  clear() {
    this.#peaks = null;
  }

  /** @param {Int16Array} samples interleaved */
  append(samples, sampleRate, channels) {
    this.#peaks ??= new Peaks(sampleRate, channels, BAR_SECONDS);
    this.#peaks.append(samples);
  }

  /**
   * @param {number} playedSeconds everything before it is drawn as played
   * @param {{at: number, seconds: number}[]} gaps where in the sound it was waited for, and how long
   */
  draw(playedSeconds, gaps = []) {
    this.#playedSeconds = playedSeconds;
    this.#gaps = gaps;
    const { width, height } = this.#canvas;
    const style = getComputedStyle(this.#canvas);
    const colour = (name) => style.getPropertyValue(name);
    const scale = window.devicePixelRatio || 1;
    const step = (BAR_PIXELS + GAP_PIXELS) * scale;
    const places = Math.max(1, Math.floor(width / step));
    const cells = withGaps(this.#peaks?.cells ?? [], gaps, BAR_SECONDS);
    let group = 1;
    while (cells.length > places * group) group *= 2;
    this.#cells = cells;
    this.#pixelsPerCell = (BAR_PIXELS + GAP_PIXELS) / group;

    this.#context.clearRect(0, 0, width, height);
    this.#drawStaff(width, height, scale, colour("--wave-empty"));
    const drawn = columns(cells, group, playedSeconds / BAR_SECONDS);
    drawn.forEach(({ peaks, waited, played }, place) => {
      if (waited) {
        this.#context.fillStyle = colour("--gap");
        const tall = WAITED_SHARE * height;
        this.#context.fillRect(place * step, (height - tall) / 2, step, tall);
        return;
      }
      // The square root lets quiet consonants show beside loud vowels.
      const [up, down] = peaks.map((peak) =>
        Math.max(scale, (Math.sqrt(peak) * (height - 8 * scale)) / 2),
      );
      this.#context.fillStyle = colour(played ? "--wave-played" : "--wave-ahead");
      this.#context.beginPath();
      this.#context.roundRect(
        place * step, height / 2 - up, BAR_PIXELS * scale, up + down, (BAR_PIXELS * scale) / 2,
      );
      this.#context.fill();
    });
  }

  #drawStaff(width, height, scale, colour) {
    this.#context.fillStyle = colour;
    for (let line = 0; line < STAFF_LINES; line += 1) {
      const y = Math.round((height * (line + 1)) / (STAFF_LINES + 1));
      this.#context.fillRect(0, y, width, scale);
    }
  }

  #resize() {
    const scale = window.devicePixelRatio || 1;
    this.#canvas.width = Math.max(1, Math.round(this.#canvas.clientWidth * scale));
    this.#canvas.height = Math.max(1, Math.round(this.#canvas.clientHeight * scale));
    this.draw(this.#playedSeconds, this.#gaps);
  }
}
